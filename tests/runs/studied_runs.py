"""Runs that were trained for studies."""

from grokscope.runs import Store, run_name
from grokscope.specs import Architecture, Cadence, Membership, RunSpec, Training

__all__ = ["BASE", "LAW", "MADE_FOR_BASE", "OTHER", "RUNS", "SPEC", "studies"]

SPEC = RunSpec(
    task="add_mod5",
    train_fraction=0.6,
    architecture=Architecture(layers=1, width=8, heads=2, mlp_width=8),
    training=Training(steps=4, batch_size=8),
    checkpoints=Cadence(every=4),
    measurements=Cadence(every=2),
)
RUNS = (SPEC, SPEC.with_seed(1))
BASE, LAW = Membership("synchronization", "base", "add_mod5_s0"), Membership("synchronization", "law", "add_mod5_s0")
OTHER = Membership("bakeoff", "tuning", "plain")
MADE_FOR_BASE = ((LAW, BASE), ())


def studies(store: Store, spec: RunSpec = SPEC) -> tuple[Membership, ...]:
    return store.find(run_name(spec)).record(with_logs=False).made_for
