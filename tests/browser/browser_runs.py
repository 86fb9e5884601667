"""Tiny runs, and names that a page must survive."""

from dataclasses import replace

from grokscope.runs.records import RunRecord
from grokscope.specs import Architecture, Cadence, Fork, RunSpec, Training

HOSTILE_TASKS = (
    "<img src=x onerror=\"document.title='broken'\">",
    "</script><script>document.title='broken'</script>",
    "\"quoted\" and 'quoted' `too`",
    "=1+1",
    "long" * 2500,
)
HOSTILE_TEXT = "\u202egnp.exe\u2066"  # which no run's task may be
TINY = RunSpec(
    task="add_mod7",
    train_fraction=0.6,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=12, batch_size=16, learning_rate=0.05),
    checkpoints=Cadence(every=4),
    measurements=Cadence(every=2),
)
TINY_AGAIN = TINY.with_seed(7)
HOSTILE_FOLDER = f"<img src=x onerror=document.title='broken'>-{TINY_AGAIN.content_hash}"
TINY_FORK = replace(TINY, fork=Fork(TINY.content_hash, 4), training=replace(TINY.training, weight_decay=3.0))


def decayed(spec: RunSpec, weight_decay: float) -> RunSpec:
    """The same run with another λ."""
    return replace(spec, training=replace(spec.training, weight_decay=weight_decay))


def dipping(record: RunRecord) -> RunRecord:
    """The run with two dips after it grokked: of one evaluation, and of the last three."""
    values = [*record.evaluations["validation_accuracy"]]
    values[-8] = 0.2
    values[-3:] = 0.2, 0.3, 0.2
    outcome = replace(record.outcome, outcome="unstable_after")
    return replace(record, outcome=outcome, evaluations={**record.evaluations, "validation_accuracy": values})


def dropping(record: RunRecord) -> RunRecord:
    """The run with dropout, and with a seed of its own."""
    spec = replace(record.spec, training=replace(record.spec.training, dropout=0.1))
    return replace(record, spec=spec.with_seed(99))
