"""Logs with chosen values."""

from collections.abc import Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

shares = st.lists(st.floats(0, 1), min_size=1, max_size=12)
few = settings(max_examples=25, deadline=None)


def log(**columns: Sequence[float]) -> dict[str, Any]:
    """A log with looks every 500 steps; a run that memorises at once and never groks, where not said otherwise."""
    size = len(next(iter(columns.values())))
    usual = {
        "step": [500 * i for i in range(size)],
        "train_accuracy": [0.1, *[1.0] * (size - 1)],
        "validation_accuracy": [0.1] * size,
    }
    return usual | columns
