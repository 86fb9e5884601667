"""Runs of twelve steps, which may be interrupted at any of them."""

from grokscope.specs import Architecture, Cadence, RunSpec, Training

STEPS = 12


def tiny(seed: int = 0, steps: int = STEPS, **training: object) -> RunSpec:
    return RunSpec(
        task="add_mod7",
        train_fraction=0.7,
        architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
        training=Training(steps=steps, batch_size=16, **training),
        checkpoints=Cadence(every=4, at=(6,) if steps > 6 else ()),
        measurements=Cadence(every=2),
    ).with_seed(seed)
