"""Runs of a few steps and a few shapes."""

from dataclasses import replace

from grokscope.specs import Architecture, Cadence, Fork, RunSpec, Training

TINY = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=8, batch_size=16),
    checkpoints=Cadence(every=4),
    measurements=Cadence(every=4),
)


WIDE = replace(TINY, architecture=Architecture(layers=1, width=32, heads=2, mlp_width=32))


CHILD = replace(TINY, fork=Fork(TINY.content_hash, 4))
