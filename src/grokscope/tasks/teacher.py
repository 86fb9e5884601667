"""Linear teacher and student: y = w*·x + ε, whose training has a closed form (ridge regression)."""

import numpy as np

from grokscope.shapes import Float
from grokscope.tasks.kinds import Kind, Number, Numbers
from grokscope.tasks.row_groups import RowGroup
from grokscope.tasks.task import Task

__all__ = ["TEACHER", "teacher_weights"]

FRESH_ROWS = 2000


def teacher_weights(features: int, seed: int = 0) -> Float[np.ndarray, " features"]:
    """w*, Gaussian with length near 1.

    >>> round(float(np.linalg.norm(teacher_weights(400))), 1)
    1.0
    """
    from grokscope.tasks.sampling import GRID, gaussian  # loads torch; other names can be checked without it

    weights: np.ndarray = np.round(gaussian(seed, 0, features) / features**0.5 * GRID) / GRID
    return weights


def _teacher_task(name: str, numbers: Numbers) -> Task:
    """N rows x ~ N(0, 1) to train on and fresh ones to validate, both with noise of the same size in their answers."""
    from grokscope.tasks.sampling import gaussian

    features, train, fresh = (int(numbers[letters]) for letters in ("d", "n", "v"))
    seed = int(numbers["seed"])
    inputs = gaussian(seed, 1, train + fresh, features)
    noise = numbers["noise"] * gaussian(seed, 2, train + fresh)
    answers = inputs @ teacher_weights(features, seed) + noise
    rows = np.arange(train + fresh)
    return Task(
        name=name,
        title=f"a linear teacher of {features} features, with {train} rows to learn it from",
        answers=answers[:, None],
        classes=1,
        vectors=inputs,
        row_groups=(RowGroup("given", "train", rows[:train]), RowGroup("fresh", "validation", rows[train:])),
        success=numbers["success"],
    )


TEACHER = Kind(
    "ridge",
    (
        Number("d", 1, 4096),
        Number("n", 1, 2**16),
        Number("v", 1, 2**16, default=FRESH_ROWS),
        Number("noise", 0, 10, default=0, is_whole=False),
        Number("success", 0.001, 0.999, default=0.1, is_whole=False),
        Number("seed", 0, 10**9, default=0),
    ),
    _teacher_task,
    "ridge_d100_n200",
    "y = w*·x + noise from n rows of d features: real answers, needs --loss mse and a linear model",
)
