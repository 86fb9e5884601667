"""Table 7 is accuracy less what zeroing costs; the claims of §5.5 and §8 can hold and can fail."""

from dataclasses import replace
from functools import partial

import built
import pytest
from paper_runs import evidence as followed
from planted import only, run
from planted_claims import world

from grokscope.studies import Verdict, judge
from grokscope.studies.synchronization.ablation import CLAIMS
from grokscope.studies.synchronization.experiments import EXPERIMENTS
from grokscope.view.table import Cell

table = partial(built.table, "tab-ablation")

OWN = "add_mod97_s42"


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


def test_what_holds_over_primes_says_nothing_of_runs_of_one_prime() -> None:
    """Pooled, primes that need no block-0 MLP and that FSD leads would pass for runs that do."""
    claims = {claim.name: claim for claim in CLAIMS}
    found = world("leads-where-primes-do-nothing", True)
    assert judge(claims["leads-where-primes-do-nothing"], found).verdict is Verdict.REPRODUCED
    within = judge(claims["leads-where-nothing-is-done"], found)
    assert within.verdict is not Verdict.REPRODUCED
    assert abs(within.effects["lost and led"].value) < 0.3
