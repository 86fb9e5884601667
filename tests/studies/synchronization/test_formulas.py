"""Table 6 is read at the first checkpoint after grokking; the claims of §5.4 can hold and can fail."""

from dataclasses import replace
from functools import partial

import built
from paper_runs import evidence as followed
from planted import agree, only, run

from grokscope.studies.synchronization.experiments import EXPERIMENTS

table = partial(built.table, "tab-kan")

OWN = "add_mod97_s42"


def test_fits_are_read_at_the_first_checkpoint_after_grokking() -> None:
    spec = EXPERIMENTS["base"](None, "float32")[OWN]
    made = run(spec, grok=3900, sync=1500, log={"rank": {500: 6.0, 4000: 1.0}})
    values = {"rank_one_share": 0.94, "r2_rank_1": 0.986, "kan_trained_r2": 0.992, "kan_agreement": 1.0, "kan_r2": 0.9}
    measured = {"step": [3500, 4000]} | {name: [0.5, value] for name, value in values.items()}
    found = table(only("base", **{OWN: replace(made, checkpoints=measured)}))
    agree(found, [OWN], [column.name for column in found.columns[1:-1]])
    assert found.cell(OWN, "KAN R², closed form").ours == 0.9
    assert all(cell.quantity for cell in found.rows[0][1:])


def test_fits_are_found_where_accuracy_falls_again_before_the_next_checkpoint() -> None:
    made = run(EXPERIMENTS["base"](None, "float32")[OWN], grok=3900, sync=1500)
    place = made.evaluations["step"].index(4000)
    dipped = [0.9 if i == place else value for i, value in enumerate(made.evaluations["validation_accuracy"])]
    seen = made.evaluations | {"validation_accuracy": dipped}
    dipping = replace(made, evaluations=seen, checkpoints={"step": [4000], "kan_trained_r2": [0.9]})
    assert table(only("base", **{OWN: dipping})).cell(OWN, "KAN R²").ours == 0.9


def test_all_seeds_have_medians_and_no_dominant_frequency() -> None:
    found = table(followed(True))
    row = next(cells for cells in found.rows if cells[0].ours == "add_mod97, all seeds")
    assert [cell.n for cell in row[1:]] == [10, 10, None, 10, 10, 10, None, 10]
