"""A collection of runs to fit and to score forecasters on: which grok, when, and which cannot."""

from typing import Any

from grokscope.studies import Study
from grokscope.studies.foresight.experiments import EXPERIMENTS, quick_runs
from grokscope.studies.foresight.sealing import require_seal
from grokscope.studies.run_set import RunSet

__all__ = ["STUDY"]

OPTIONS: dict[str, Any] = {"stop_after_grokking": 2000, "keep": "none", "signals": True, "tier_signals": True}
SPEED = 3.0  # most models have one layer of width 64, an eighth of the operations of the paper's model
SPLITS = tuple(  # parts of one split only, so that development is trained before test
    RunSet(
        split,
        {name: runs for name, runs in EXPERIMENTS.items() if name.startswith(split)},
        plan_options=OPTIONS,
        speed=SPEED,
    )
    for split in ("development", "test")
)
STUDY = Study(
    name="foresight",
    title="Is grokking seen coming? Runs that grok soon, late, by chance, or never",
    experiments=EXPERIMENTS,
    quick=quick_runs,
    plan_options=OPTIONS,
    run_sets=SPLITS,
    guard=require_seal,
)
"""Runs end 2,000 steps after they grok, so that it is seen whether they stay so; the others at their budget, which is
at least five times the time that the clock of the development runs gives."""
