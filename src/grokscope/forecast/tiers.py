"""Which columns a tier may read: a scored forecaster is shown no others, so that the tier it states is true."""

from grokscope.forecast.prefix import Prefix

__all__ = ["column_tier", "seen_at_tier"]

OF_COLUMNS = {
    "weight_decay": 0,
    "learning_rate": 0,
    "train_loss": 1,
    "train_accuracy": 1,
    "norm": 2,
    "update_norm": 2,
    "update_cosine": 2,
}
BEGINNINGS = {"norm_": 2}
HIGHEST = 5  # of what is not named here: who wants it has to say so


def column_tier(name: str) -> int:
    """The lowest tier that may read a column.

    >>> [column_tier(name) for name in ("train_loss", "norm_embedding", "validation_loss", "fsd", "a_column_of_mine")]
    [1, 2, 5, 5, 5]
    """
    found = OF_COLUMNS.get(name)
    if found is None:
        found = next((tier for beginning, tier in BEGINNINGS.items() if name.startswith(beginning)), HIGHEST)
    return found


def seen_at_tier(run: Prefix, tier: int) -> Prefix:
    """A run with the columns of a tier alone.

    >>> import numpy as np
    >>> run = Prefix(np.array([0]), {"train_loss": np.ones(1), "validation_loss": np.ones(1)})
    >>> [*seen_at_tier(run, 1).columns], [*seen_at_tier(run, 5).columns]
    (['train_loss'], ['train_loss', 'validation_loss'])
    """
    columns = {name: values for name, values in run.columns.items() if column_tier(name) <= tier}
    return Prefix(run.steps, columns, run.configuration)
