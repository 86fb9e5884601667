"""Small runs that were measured while they were trained."""

from dataclasses import replace
from pathlib import Path

from grokscope.jobs import run_all
from grokscope.runs import (
    Measuring,
    RunFolder,
    Store,
    run_name,
)
from grokscope.specs import Architecture, Cadence, Fork, RunSpec, Training

STEPS = 12
MEASURES = ("fsd", "paper_restricted", "fsd@sum", "fsd@additive")
ADD = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=2, width=16, heads=2, mlp_width=32),
    training=Training(steps=STEPS, batch_size=16),
    checkpoints=Cadence(every=4, at=(6,)),
    measurements=Cadence(every=2),
)
MULT, S3 = replace(ADD, task="mult_mod7"), replace(ADD, task="S3")
FORK = replace(ADD, fork=Fork(ADD.content_hash, 6), training=replace(ADD.training, weight_decay=3.0))


def train_recorded(path: Path) -> Store:
    store = Store(path)
    specs = [FORK, MULT, S3, ADD]  # a fork named before its parent
    run_all(specs, store, compiled=False, measuring=Measuring(MEASURES))
    return store


def folder(store: Store, spec: RunSpec) -> RunFolder:
    return store.find(run_name(spec))
