"""Runs of seconds, and how their stores are compared."""

import json
from collections.abc import Callable
from pathlib import Path

from grokscope.specs import Architecture, Cadence, RunSpec, Training

Count = Callable[..., None]
SMALL = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=30, batch_size=16),
    checkpoints=Cadence(every=10),
    measurements=Cadence(every=10),
)


def seeds(count: int, spec: RunSpec = SMALL) -> tuple[RunSpec, ...]:
    """The same run from other seeds."""
    return tuple(spec.with_seed(seed) for seed in range(count))


def contents(store: Path) -> dict[str, object]:
    """Every file of every run to its last byte, but for the commit, which may change while tests run."""
    found: dict[str, object] = {}
    for path in sorted(path for path in store.rglob("*") if path.is_file() and path.parent.parent == store):
        name = str(path.relative_to(store))
        if not name.startswith(("plans/", "jobs/")):
            found[name] = path.read_bytes()
        if path.name == "outcome.json":
            found[name] = {**json.loads(path.read_bytes()), "provenance": None, "sha256": None}
    return found
