"""Which columns a tier may read: a scored forecaster is shown no others, so that the tier it states is true."""

from grokscope.forecast.prefix import Prefix

__all__ = ["column_tier", "seen_at_tier"]

OF_COLUMNS = {
    "weight_decay": 0,
    "learning_rate": 0,
    "train_loss": 1,
    "train_accuracy": 1,
    "train_relative_error": 1,
    "norm": 2,
    "update_norm": 2,
    "update_cosine": 2,
    "embedding_rank": 2,
    "embedding_entropy": 2,
    "logit_map_fsd": 2,
    "logit_map_rank": 2,
    "singular_participation": 2,
    "output_entropy_train": 3,
    "train_margin": 3,
    "train_fsd": 3,
    "train_rank": 3,
    "train_spectral_entropy": 3,
    "train_share": 3,
    "input_fsd": 4,
    "input_rank": 4,
    "output_entropy": 4,
    "output_entropy_validation": 4,  # of rows whose labels are not read
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
