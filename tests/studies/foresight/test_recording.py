"""Whether a run of the collection records what its forecasters are to read: a real run of a cell, of a few steps."""

from dataclasses import replace
from math import isfinite
from pathlib import Path

import pytest

from grokscope.forecast.tiers import column_tier
from grokscope.jobs import run_all
from grokscope.measures.tier_signals import TIER_COLUMNS
from grokscope.runs import Store, open_runs
from grokscope.runs.measuring import Measuring
from grokscope.specs import Cadence
from grokscope.studies.foresight import STUDY
from grokscope.studies.foresight.cells import CELLS, OF_PAIRS, RECORDED

PAIRS = ("add_mod97-w4-f0.4", "shuffled-w4")
OTHERS = ("parity_n12_k2_tokens", "add_mod97-mlp-w1")


def test_what_is_to_be_recorded_is_of_its_tier_and_leaves_nothing_out() -> None:
    for tier, names in RECORDED.items():
        assert [column_tier(name) for name in names] == [tier] * len(names)
    assert {*TIER_COLUMNS} <= {name for names in RECORDED.values() for name in names}
    assert {*range(6)} == {*RECORDED}


@pytest.mark.parametrize("names", [PAIRS, OTHERS[:1], OTHERS[1:]])
def test_every_evaluation_of_a_run_of_a_cell_has_them(names: tuple[str, ...], tmp_path: Path) -> None:
    [part, *_] = STUDY.run_sets
    plan = STUDY.plan(part.experiments, str(tmp_path), n_seeds=1, precision="float32", device="cpu")
    assert plan.stop_after_grokking == 2000
    specs = [CELLS[name].spec for name in names]
    short = [replace(spec, training=replace(spec.training, steps=1), measurements=Cadence(every=1)) for spec in specs]
    run_all(short, Store(tmp_path), compiled=False, keep="none", measuring=Measuring.from_plan(plan))
    for run in open_runs(tmp_path):
        log = run.record.evaluations
        assert log["step"] == [0, 1]
        assert sum(name.startswith("norm_") for name in log) >= 2, "norms of blocks"
        is_pairs = not run.spec.task.startswith("parity")
        lacking = set() if is_pairs else {*OF_PAIRS}
        if run.spec.architecture.kind == "mlp":  # which is given one-hot vectors
            lacking |= {"embedding_rank", "embedding_entropy"}
        for name in (name for names in RECORDED.values() for name in names if name not in lacking):
            assert isfinite(log[name][-1]), (run.name, name)  # before the first step there is no update
