"""What is held out together: parameters and thresholds are fitted to the runs of other folds."""

from hashlib import sha256
from typing import Literal

from grokscope.forecast.cases import Case

__all__ = ["FOLDS", "Split", "fold_of"]

Split = Literal["cell", "family", "architecture"]
FOLDS = 5  # of cells


def fold_of(case: Case, split: Split = "cell") -> str:
    """The fold of a run: cells are dealt to five by a digest of their key; families and architectures are their own.

    >>> from grokscope.forecast.cases import usable_cases
    >>> from grokscope.specs import RunSpec
    >>> log = {"step": [0, 100, 200], "train_accuracy": [0.1, 1.0, 1.0], "validation_accuracy": [0.0, 0.1, 0.99]}
    >>> [case] = usable_cases([(RunSpec(), log)])
    >>> fold_of(case, "family"), fold_of(case, "architecture"), 0 <= int(fold_of(case)) < FOLDS
    ('modular arithmetic', 'attention', True)
    """
    if split == "cell":
        return str(int(sha256(case.cell.encode()).hexdigest(), 16) % FOLDS)
    return case.family if split == "family" else case.architecture
