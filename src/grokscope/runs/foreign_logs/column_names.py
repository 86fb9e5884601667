"""What other programs call the columns of a log.

A name is split into words (`val/acc`, `valAcc` and `val_acc` alike), and is known if it says what was measured and on
which rows. Where several columns mean the same, that with the lowest rank is read.
"""

import re
from functools import lru_cache

__all__ = ["READ", "STEP", "column_meaning", "run_and_column"]

STEP = "step"
READ = (
    "train_accuracy",
    "validation_accuracy",
    "train_loss",
    "validation_loss",
    "norm",
    "weight_decay",
    "learning_rate",
    "fsd",
    "rank",
    "answer_share",
    "restricted_loss",
    "train_relative_error",
    "validation_relative_error",
)
"""Columns that are kept, by the names that our own logs use."""
STEPS = {"step": 1, "steps": 1, "iter": 2, "iteration": 2, "iterations": 2, "it": 3, "update": 3, "updates": 3}
EPOCHS = {"epoch": 10, "epochs": 10}  # read as steps where nothing else counts them
ROWS = {
    "train": {"train": 0, "training": 0, "tr": 1, "trn": 1},
    "validation": {"validation": 0, "val": 0, "valid": 0, "heldout": 1, "dev": 1, "eval": 2, "test": 3, "testing": 3},
}
QUANTITIES = {
    "accuracy": {"accuracy", "acc", "accuracies", "top1"},
    "loss": {"loss", "nll", "ce", "xent", "crossentropy"},
}
OTHERS = {"std", "var", "min", "max", "best", "smooth", "smoothed", "ema", "top5", "grad", "gradient", "gap", "log"}
"""Words of columns that are something else: a smoothed or best accuracy says nothing of when it was first reached."""
OF_WEIGHTS = {"weight", "weights", "param", "params", "parameter", "parameters", "w", "l2", "total", "model"}
BARE = 5  # the rank of `loss` and `accuracy`, which mean the training set where another column is of validation


@lru_cache(maxsize=4096)
def column_meaning(name: str) -> tuple[str, int] | None:
    """Our name of a column and its rank; None for one that is not read.

    >>> column_meaning("valAcc"), column_meaning("eval/loss"), column_meaning("loss")
    (('validation_accuracy', 0), ('validation_loss', 2), ('train_loss', 5))
    >>> column_meaning("grad_norm")
    """
    if name in READ or name == STEP:
        return name, -1
    words = _words(name)
    if not words or OTHERS & {*words}:
        return None
    if (step := _step_rank(words)) is not None:
        return STEP, step
    for quantity, names in QUANTITIES.items():
        if names & {*words}:
            return _of_rows(quantity, words, names)
    if "norm" in words and {*words} <= {"norm", *OF_WEIGHTS}:
        return "norm", len(words)
    if words in (["weight", "decay"], ["wd"]):
        return "weight_decay", len(words)
    return ("learning_rate", len(words)) if words in (["learning", "rate"], ["lr"]) else None


def run_and_column(name: str) -> tuple[str, str]:
    """The run that a column of a W&B export is of, and its metric; of other columns an empty run.

    >>> run_and_column("mild-sun-3 - val_acc"), run_and_column("val_acc")
    (('mild-sun-3', 'val_acc'), ('', 'val_acc'))
    """
    run, apart, metric = name.rpartition(" - ")
    return (run.strip(), metric.strip()) if apart and run.strip() else ("", name)


def _words(name: str) -> list[str]:
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    text = re.sub(r"held[ _-]?out", "heldout", spaced.lower())
    return [word for word in re.split(r"[^a-z0-9]+", re.sub(r"cross[ _-]?entropy", "crossentropy", text)) if word]


def _step_rank(words: list[str]) -> int | None:
    """Such as `_step`, `global_step`, `trainer/global_step`, `epoch`."""
    if words[-1] in STEPS and {*words[:-1]} <= {"global", "trainer", "train", "training"}:
        return STEPS[words[-1]] + len(words)
    return EPOCHS[words[0]] if words[0] in EPOCHS and len(words) == 1 else None


def _of_rows(quantity: str, words: list[str], names: set[str]) -> tuple[str, int]:
    for rows, known in ROWS.items():
        found = [known[word] for word in words if word in known]
        if found:
            strange = [word for word in words if word not in known and word not in names]
            return f"{rows}_{quantity}", found[0] + 10 * len(strange)
    strange = [word for word in words if word not in names]
    return f"train_{quantity}", BARE + 10 * len(strange)
