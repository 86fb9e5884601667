"""Which evaluations of a run are kept where space is short: all near what happens, every 500 steps elsewhere."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isnan

__all__ = ["LEVELS", "RULE", "kept_evaluations"]

BEGINNING = 1_000  # steps in which a run memorises, and loss spikes
EVERY = 500
LEVELS: dict[str, tuple[float, ...]] = {
    "train_accuracy": (0.5, 0.9, 0.95, 0.99, 0.999),
    "validation_accuracy": (0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 0.9, 0.95, 0.99),
    "fsd": (0.3, 0.5, 0.8, 0.9),
    "rank": (1.5, 2.5, 3.5, 6.5, 10.5),
    "train_loss": (0.01, 0.1, 0.5),
    "validation_loss": (0.1, 0.5, 1.0, 2.0),
    "train_relative_error": (1.0,),
    "validation_relative_error": (1.0,),
}
RULE = (
    f"An evaluation is kept if its step is a multiple of {EVERY}, if it is the first or the last of its run, within "
    f"the first {BEGINNING:,} steps of it, if λ differs from that of a neighbour, or if between it and a neighbour a "
    "column crosses a level: "
    + "; ".join(f"{name} {', '.join(f'{level:g}' for level in levels)}" for name, levels in LEVELS.items())
    + ". All others are left out. So every step at which such a level is first reached, left or reached again is that "
    "of all evaluations."
)
"""The rule in words, as a data sheet states it."""


def kept_evaluations(columns: Mapping[str, Sequence[int | float]]) -> list[int]:
    """The places of the evaluations that are kept, in order.

    >>> steps = list(range(0, 3001, 100))
    >>> accuracy = [1.0 if step >= 2300 else 0.0 for step in steps]
    >>> [steps[i] for i in kept_evaluations({"step": steps, "validation_accuracy": accuracy})][11:]
    [1500, 2000, 2200, 2300, 2500, 3000]
    """
    steps = columns["step"]
    if not steps:
        return []
    kept = {0, len(steps) - 1}
    kept |= {i for i, step in enumerate(steps) if step % EVERY == 0 or step - steps[0] <= BEGINNING}
    sides = [_sides(columns, i) for i in range(len(steps))]
    for i, (before, after) in enumerate(pairwise(sides)):
        if before != after:
            kept |= {i, i + 1}
    return sorted(kept)


def _sides(columns: Mapping[str, Sequence[int | float]], place: int) -> tuple[object, ...]:
    """On which side of every level an evaluation is, and its λ; a value that is undefined is on a side of its own."""
    found: list[object] = [columns["weight_decay"][place]] if "weight_decay" in columns else []
    for name, levels in LEVELS.items():
        if name in columns:
            value = columns[name][place]
            found.append(None if isnan(value) else sum(value >= level for level in levels))
    return tuple(found)
