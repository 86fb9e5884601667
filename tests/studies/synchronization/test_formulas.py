"""Table 6 is read at the first checkpoint after grokking; the claims of §5.4 can hold and can fail."""

from dataclasses import replace

import pytest
from judged import CLAIMS, finding, is_decisive, only
from paper_runs import evidence as followed
from paper_runs import record_of
from planted import EMPTY, agree, run

from grokscope.studies import Evidence, Verdict, judge
from grokscope.studies.synchronization.experiments import EXPERIMENTS
from grokscope.studies.synchronization.formulas import FITS, TABLES
from grokscope.view.table import Table

OWN = "add_mod97_s42"


def table(found: Evidence) -> Table:
    built = TABLES[0].build(found)
    assert isinstance(built, Table)
    return built


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


def test_without_runs_every_cell_is_empty_and_a_note_says_so() -> None:
    found = table(EMPTY)
    assert any(note.startswith("Not trained, so left empty:") for note in found.notes)
    assert all(cell.ours is None for row in found.rows for cell in row[1:])
    bare = {name: replace(one, checkpoints={}) for name, one in followed(True).records["base"].items()}
    assert any(
        note.startswith("The fits at that checkpoint were not measured") for note in table(only("base", **bare)).notes
    )
    for name in ("kan-agreement", "rank-1-fit", "kan-fails-at-131"):
        assert judge(CLAIMS[name], only("base", **bare)).verdict is Verdict.TOO_FEW, name


@pytest.mark.parametrize("name", ["kan-agreement", "rank-1-fit", "rank-two-at-113", "kan-fails-at-131"])
def test_claims_hold_on_runs_that_follow_the_paper_and_fail_on_others(name: str) -> None:
    assert is_decisive(name)


def test_ranks_are_counted_without_the_exception() -> None:
    found = finding("rank-one-after")
    assert (found.value, found.verdict, found.n) == ("8 of 8 have rank 1", Verdict.REPRODUCED, 8)
    base = followed(True).records["base"]
    other = {OWN: record_of(base[OWN].spec, 4000, 1500, rank_1=2500, final_rank=2.0)}
    assert judge(CLAIMS["rank-one-after"], only("base", **(base | other))).verdict is Verdict.PARTLY


def test_an_amplitude_ratio_of_one_is_not_two_orders_of_magnitude() -> None:
    assert finding("amplitude").verdict is Verdict.REPRODUCED
    base = followed(True).records["base"]
    full = base[OWN].evaluations | {"answer_share": [1.0 for _ in base[OWN].evaluations["step"]]}
    changed = only("base", **(base | {OWN: replace(base[OWN], evaluations=full)}))
    assert judge(CLAIMS["amplitude"], changed).verdict is Verdict.NOT


def test_seeds_that_do_not_grok_are_left_out_of_what_only_grokked_runs_have() -> None:
    base = followed(True).records["base"]
    never = only("base", **(base | {"add_mod97_s7": record_of(base["add_mod97_s7"].spec, None, None)}))
    assert "49 runs" in judge(CLAIMS["kan-agreement"], never).all_seeds


def test_the_key_frequencies_contradict_the_prime_whatever_the_runs_give() -> None:
    for found in (
        finding("key-frequencies"),
        finding("key-frequencies", False),
        judge(CLAIMS["key-frequencies"], EMPTY),
    ):
        assert found.verdict is Verdict.INCONSISTENT
        assert "end at 48" in found.why
    assert finding("key-frequencies").value == "dominant at the last evaluation: 5, 5, 5, 5, 5"
    assert judge(CLAIMS["key-frequencies"], EMPTY).value == "not measured"


def test_the_claim_on_131_is_about_a_cell_of_the_table() -> None:
    found = table(followed(True))
    claim = CLAIMS["kan-fails-at-131"]
    heading = FITS["kan_r2"][0]
    assert claim.quantity.key == found.cell("add_mod131_s42", heading).quantity
    assert claim.all_seeds is not None
    assert claim.all_seeds.key == found.cell("add_mod131, all seeds", heading).quantity
