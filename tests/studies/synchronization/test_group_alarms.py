"""False alarms of FSD_gen on S5, against counts; the claim on runs that never grok."""

from functools import partial

import built
from exact import clopper_pearson, same_share
from planted import EMPTY, evidence

from grokscope.studies.synchronization.group_alarms import SUPPLEMENTS
from grokscope.view.table import Cell, Table

table = partial(built.table, "sup-s5-false")
(ITEM,) = SUPPLEMENTS

SEEDS = (0, 1, 42, 2, 7)


def sentence(found: Table) -> str:
    assert ITEM.sentence is not None  # it names S5, whose 5 is no number of the table
    return ITEM.sentence(found)


def test_false_alarms_are_counted_by_train_fraction_and_outcome() -> None:
    never = {f"S5_f0.3_s{s}": {"sync": 500 if s < 2 else None, "control_fsd": 1000 if s == 0 else None} for s in SEEDS}
    grokked = {f"S5_f0.7_s{seed}": {"grok": 3000, "sync": 2000 if seed else 3500} for seed in SEEDS}
    found = table(evidence("symmetric", never | grokked))
    same_share(found.cell("30%, never grokked", "FSD_gen fired"), 2, 5)
    same_share(found.cell("all, never grokked", "FSD_gen fired"), 2, 5)
    same_share(found.cell("30%, never grokked", "Control ≥ 0.80 fired"), 1, 5)
    same_share(found.cell("70%, grokked", "Fired before grokking"), 4, 5)
    assert found.cell("30%, never grokked", "Median step fired").ours == "never"
    assert found.cell("30%, never grokked", "Steps after memorisation (median)").ours == 500
    assert found.cell("70%, grokked", "Control ≥ 0.80 fired") == Cell()
    assert found.cell("50%, grokked", "Runs").ours == "no runs"
    low, high = clopper_pearson(2, 5)
    assert f"fires in 0.40 [{low:.2f}, {high:.2f}], n = 5 of the runs of S5 that never grok" in sentence(found)


def test_without_runs_every_row_says_so_and_the_sentence_too() -> None:
    found = table(EMPTY)
    assert all(row[1].ours == "no runs" for row in found.rows)
    assert "not known" in sentence(found)
