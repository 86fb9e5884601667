"""Records of a run and its forks, with chosen times to grok."""

from dataclasses import replace

from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import Fork, Membership, RunSpec

__all__ = ["PARENT", "demo", "fork_record", "record", "spec_of_fork"]

PARENT = RunSpec().with_seed(42)
STEP = 1000


def record(spec: RunSpec, grokked: int | None, *made_for: Membership, norm: float = 50.0) -> RunRecord:
    """A finished run, evaluated every 100 steps, that groks at a step."""
    steps = list(range(spec.fork.step if spec.fork else 0, 6001, 100))
    validation = [1.0 if grokked is not None and step >= grokked else 0.1 for step in steps]
    evaluations = {"step": steps, "train_accuracy": [1.0] * len(steps), "validation_accuracy": validation}
    evaluations |= {"fsd": [0.1] * len(steps), "norm": [norm] * len(steps)}
    outcome = RunOutcome("never" if grokked is None else "grokked", grokked=grokked)
    return RunRecord(spec, outcome, evaluations, {}, made_for)


def spec_of_fork(parent: RunSpec, decay: float, **options: object) -> RunSpec:
    fork = replace(Fork(parent.content_hash, STEP), **options)
    return replace(parent, fork=fork, training=replace(parent.training, weight_decay=decay))


def fork_record(parent: RunSpec, decay: float, time: int | None, *made_for: Membership, **options: object) -> RunRecord:
    """A fork with this λ that groks so many steps after it."""
    return record(spec_of_fork(parent, decay, **options), None if time is None else STEP + time, *made_for)


def demo() -> list[RunRecord]:
    """A run with λ = 1 and two forks of it: λ·Δt is 2,700, 3,600 and 3,600."""
    return [record(PARENT, 3700), fork_record(PARENT, 2.0, 1800), fork_record(PARENT, 3.0, 1200)]
