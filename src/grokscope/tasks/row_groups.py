"""Named groups of rows, each with the rule by which it is split."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from grokscope.errors import InputError, require, shown
from grokscope.shapes import Int
from grokscope.tasks.group import frozen

__all__ = ["DRAWN", "RowGroup", "Rule", "check_groups"]

Rule = Literal["drawn", "train", "validation", "held_out"]
DRAWN: Rule = "drawn"
NAME = re.compile("[a-z][a-z0-9_]{0,39}")  # it becomes a column of logs, SQL and Parquet
RESERVED = ("train", "validation", "restricted")  # they have columns already; restricted_loss is the paper's


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Some rows of a task, and which of them are trained on."""

    name: str
    """What to call them."""
    rule: Rule
    """`drawn`: a share of them is drawn by the split seed, the rest is validation; `train`: always trained on;
    `validation`: never trained on; `held_out`: never trained on, and reported apart under the group's name."""
    rows: Int[np.ndarray, " members"]
    """Which rows."""
    share: float | None = None
    """The share that is drawn, where the task names it; else it is the run's train_fraction."""

    def __post_init__(self) -> None:
        frozen(self.rows)


def check_groups(task: str, groups: Sequence[RowGroup], rows: int) -> None:
    """Reject groups that do not part the rows, or that leave nothing to train on or to validate with."""
    names = [group.name for group in groups]
    for group in groups:
        _check_group(task, group, rows)
        require(names.count(group.name) == 1, f"{task} has two groups of rows with the name {shown(group.name)}")
    found = np.concatenate([group.rows for group in groups])
    counts = np.bincount(found, minlength=rows)
    if counts.max() > 1:
        row = int(counts.argmax())
        both = " and ".join(shown(group.name) for group in groups if (group.rows == row).any())
        raise InputError(f"the groups of rows of {task} must not overlap, got row {row} in {both}")
    if counts.min() == 0:
        raise InputError(f"each row of {task} must belong to a group, got row {int(counts.argmin())} in none")
    rules = {group.rule for group in groups if len(group.rows)}
    require(rules & {"drawn", "train"}, f"{task} has no row to train on")
    require(rules & {"drawn", "validation"}, f"{task} has no row for validation")


def _check_group(task: str, group: RowGroup, rows: int) -> None:
    rule = f"a group of rows of {task} needs a name of lower-case letters, digits and _, not {' or '.join(RESERVED)}"
    # A group that is split or trained on has no columns of its own, and may be called what it is.
    free = group.rule != "held_out" and group.name in RESERVED
    require(free or (NAME.fullmatch(group.name) and group.name not in RESERVED), rule, group.name)
    inside = len(group.rows) == 0 or (group.rows.min() >= 0 and group.rows.max() < rows)
    require(inside, f"rows of the group {shown(group.name)} of {task} must lie in 0 … {rows - 1}")
    require(group.rule != "held_out" or len(group.rows), f"the group {shown(group.name)} of {task} has no row")
    if group.share is not None:
        require(0 < group.share < 1, f"the share of the group {shown(group.name)} of {task} must lie in (0, 1)",
                group.share)  # fmt: skip
