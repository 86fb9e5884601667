"""Table 7 is accuracy less what zeroing costs; the claims of §5.5 and §8 can hold and can fail."""

from dataclasses import replace

import pytest
from judged import CLAIMS, finding, is_decisive, only
from paper_runs import evidence as followed
from planted import EMPTY, run

from grokscope.studies import Evidence, Verdict, judge
from grokscope.studies.synchronization.ablation import TABLES
from grokscope.studies.synchronization.experiments import EXPERIMENTS
from grokscope.view.table import Cell, Table

OWN = "add_mod97_s42"


def table(found: Evidence) -> Table:
    built = TABLES[0].build(found)
    assert isinstance(built, Table)
    return built


def test_ablations_are_read_at_the_first_checkpoint_after_grokking() -> None:
    made = run(EXPERIMENTS["base"](None, "float32")[OWN], grok=3900, sync=1500)
    values = {"drop_mlp0_zero": 0.118, "drop_attn1_zero": 0.944}
    measured = {"step": [3500, 4000]} | {name: [0.5, value] for name, value in values.items()}
    found = table(only("base", **{OWN: replace(made, checkpoints=measured)}))
    assert found.cell("None (original)", "Accuracy (%)").ours == pytest.approx(100)
    assert found.cell("Zero block 0 MLP", "Drop (pp)").ours == pytest.approx(11.8)
    assert found.cell("Zero block 1 attention", "Accuracy (%)").ours == pytest.approx(5.6)
    assert found.cell("Zero block 1 MLP", "Drop (pp)") == Cell(None, 88.0)
    assert len(found.columns) == 3


def test_all_seeds_have_medians() -> None:
    found = table(followed(True))
    assert found.cell("Zero block 0 MLP", "Drop (pp), all seeds").ours == pytest.approx(12)
    assert found.cell("Zero block 0 MLP", "Drop (pp), all seeds").n == 10
    assert CLAIMS["ablation-drops"].quantity.key == found.cell("Zero block 0 MLP", "Drop (pp)").quantity


def test_without_runs_every_cell_is_empty_and_a_note_says_so() -> None:
    found = table(EMPTY)
    assert found.notes[-1] == f"Not trained, so left empty: {OWN}."
    assert all(cell.ours is None for row in found.rows for cell in row[1:])
    bare = {name: replace(one, checkpoints={}) for name, one in followed(True).records["base"].items()}
    for name in ("ablation-order", "ablation-drops", "block-1-after-block-0"):
        assert judge(CLAIMS[name], only("base", **bare)).verdict is Verdict.TOO_FEW, name


@pytest.mark.parametrize("name", ["ablation-order", "ablation-drops", "block-1-after-block-0"])
def test_claims_hold_on_runs_that_follow_the_paper_and_fail_on_others(name: str) -> None:
    assert is_decisive(name)
    assert finding(name).all_seeds_verdict is Verdict.REPRODUCED


def test_the_value_is_the_order_and_the_sizes() -> None:
    assert finding("ablation-order").value == "mlp0 0.120 < mlp1 0.880 < attn0 0.890 < attn1 0.944"
    assert "4 of 4 drops are within 10 points" in finding("ablation-drops").why
