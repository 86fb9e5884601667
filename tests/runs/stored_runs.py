"""What the runs are that the fixture `path` stores: two tasks and a fork, eight steps each."""

from dataclasses import replace

from grokscope.specs import Architecture, Cadence, Fork, RunSpec, Training

__all__ = ["ADD", "FORK", "S3", "STEPS"]

STEPS = 8
ADD = RunSpec(
    task="add_mod11",
    train_fraction=0.6,
    architecture=Architecture(layers=2, width=16, heads=2, mlp_width=32),
    training=Training(steps=STEPS, batch_size=16),
    checkpoints=Cadence(every=4),
    measurements=Cadence(every=4),
).with_seed(3)
S3 = replace(ADD, task="S3", architecture=replace(ADD.architecture, causal=True, activation="relu"))
FORK = replace(ADD, fork=Fork(ADD.content_hash, 4), training=replace(ADD.training, weight_decay=2.0))
