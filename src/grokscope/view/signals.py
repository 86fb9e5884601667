"""What each column of a collection is, and the tier of information that it needs."""

import re

from grokscope.forecast import TIERS
from grokscope.measures.tier_signals import TIER_COLUMNS

__all__ = ["describe_column"]

# The first pattern that matches a whole name → tier, meaning. Keys and facts of runs have no tier.
COLUMNS: tuple[tuple[str, int | None, str], ...] = (
    ("run", None, "the run's name, which ends in the content hash of its spec"),
    ("cell", None, "the cell: hash of the spec without seeds"),
    ("step", None, "optimiser steps taken"),
    ("spec", 0, "the spec as JSON"),
    ("details", None, "the outcome as JSON"),
    ("undefined", None, "columns of the run's evaluations, and of its checkpoints, that are nowhere defined, as JSON"),
    ("made_for", None, "study, experiment and name of the run, as JSON"),
    ("train_loss", 1, "mean loss over all training pairs"),
    ("train_accuracy", 1, "share of the training pairs answered right"),
    ("weight_decay", 0, "λ in force"),
    ("norm", 2, "‖W‖ of all parameters"),
    ("norm_.+", 2, "‖W‖ of one block"),
    ("update_norm", 2, "‖u‖ of Adam's last step u = η m̂ / (√v̂ + ε), without weight decay"),
    ("update_cosine", 2, "cosine of that step and the weights"),
    ("fingerprint", 2, "53 bits of the exact bits of weights and moments: equal states have equal fingerprints"),
    ("validation_loss", 5, "mean loss over the validation pairs"),
    ("validation_accuracy", 5, "share of the validation pairs answered right"),
    *((name, tier, meaning) for name, (tier, meaning) in TIER_COLUMNS.items()),
    ("fsd(_mode)?(@.+)?", 5, "frequency synchronisation degree of block 0, or its dominant mode"),
    ("rank(@.+)?", 5, "median Fourier rank of block 0's neurons"),
    ("answer_share(@.+)?", 5, "share of block 0's activation variance that depends on the answer"),
    (r".+\.(read|first)\.answer\.(fsd|rank)_.+", 5, "FSD or rank by one reading (measure `readings`), by answers"),
    (
        r".+\.(read|first)\.(a|difference)\.(fsd|rank)_.+",
        4,
        "FSD or rank by one reading (measure `readings`), by inputs",
    ),
    (
        "memorized|grokked|synchronized|stable|stability|stable_from",
        5,
        "first step at which it happened, or its status",
    ),
    ("split_seed|initialization_seed|order_seed", 0, "a seed"),
    ("outcome|failed_at|stopped_early|last_step", 5, "how and where the run ended"),
    ("parent|fork_step", 0, "the run it continues, and from which step"),
    ("commit|device", None, "what the run was made with"),
    ("runs|experiments", None, "how many runs, and in which experiments"),
    (
        "task|train_fraction|shuffled_labels|learning_rate|steps|layers|width|optimizer|precision|norm_hold|trigger",
        0,
        "a setting of the run",
    ),
)


def describe_column(column: str) -> str:
    """What a column is, with its tier.

    >>> describe_column("train_loss")
    'mean loss over all training pairs (tier 1: training losses and accuracies)'
    """
    found = ((tier, meaning) for pattern, tier, meaning in COLUMNS if re.fullmatch(pattern, column))
    tier, meaning = next(found, (5, "a column of a measure at checkpoints: `grokscope measure` lists them"))
    return meaning if tier is None else f"{meaning} (tier {tier}: {TIERS[tier]})"
