"""What an evaluation has to reach for an event: of classes an accuracy, of real answers a squared error.

The one place that decides it: lists, summaries, the page, triggers and closed loops read evaluations through here.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["RELATIVE_ERRORS", "judged_columns", "judged_row", "success_level"]

RELATIVE_ERRORS = {"train_accuracy": "train_relative_error", "validation_accuracy": "validation_relative_error"}
"""Of real answers: the column that decides in place of an accuracy. It is the mean squared error over what counts as
success, the task's share of the answers' variance, so that 1 is success."""
MOST_OF_FAILURE = 0.9  # below every threshold of memorising and grokking, and not below that of having learnt nothing


def success_level(relative_error: float) -> float:
    """What stands for an accuracy where answers are real: 1 with success, else the success error over the error.

    So a run memorises and groks where its mean squared error comes to success, and has a dip where that is more than
    twice what counts as success. NaN stays NaN.

    >>> [success_level(error) for error in (0.3, 1.0, 1.05, 4.0)]
    [1.0, 1.0, 0.9, 0.25]
    """
    if relative_error > 1:
        return min(1 / relative_error, MOST_OF_FAILURE)
    return 1.0 if relative_error <= 1 else relative_error


def judged_row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """An evaluation with accuracies as events read them; of classes as it is.

    >>> judged_row({"step": 0, "train_accuracy": 0.97, "train_relative_error": 0.5})["train_accuracy"]
    1.0
    """
    if RELATIVE_ERRORS["train_accuracy"] not in row:
        return row
    errors = {accuracy: row[error] for accuracy, error in RELATIVE_ERRORS.items() if error in row}
    return {**row, **{name: None if error is None else success_level(error) for name, error in errors.items()}}


def judged_columns(log: Mapping[str, Any]) -> Mapping[str, Any]:
    """A log's columns with accuracies as events read them; of classes as they are.

    >>> judged_columns({"train_accuracy": [0.0, 0.5], "train_relative_error": [4.0, 0.9]})["train_accuracy"]
    [0.25, 1.0]
    """
    found = {accuracy: log[error] for accuracy, error in RELATIVE_ERRORS.items() if error in log}
    return {**log, **{name: [success_level(error) for error in errors] for name, errors in found.items()}}
