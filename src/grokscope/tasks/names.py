"""Tasks by name: every kind of task, and the nearest name where there is none."""

import re
from functools import lru_cache
from pathlib import Path

from grokscope.errors import InputError, nearest, shown
from grokscope.specs.run import OWN_ROWS, TABLE
from grokscope.tasks.additions import MISSING, SUMS
from grokscope.tasks.controls import LATIN, RANDOM
from grokscope.tasks.families import FAMILIES, is_group_name, named_group
from grokscope.tasks.group import Group
from grokscope.tasks.kinds import Kind
from grokscope.tasks.operations import MODULAR, OPERATIONS, group_task, modular_task
from grokscope.tasks.own_rows import own_rows, pinned_rows
from grokscope.tasks.parity import PARITY
from grokscope.tasks.table_file import pinned_table, table_group
from grokscope.tasks.task import Task
from grokscope.tasks.teacher import TEACHER
from grokscope.tasks.two_hop import TWO_HOP

__all__ = ["KINDS", "group_of", "named_task", "pinned_task_name"]

KINDS: tuple[Kind, ...] = (SUMS, MISSING, PARITY, TWO_HOP, TEACHER, LATIN, RANDOM)
"""What has a word and numbers for a name, as `grokscope tasks` lists it."""
# The shapes a name can have, with 1 for every number, and how each is completed: what a mistyped name is compared with.
SHAPES = {
    "poly_a1+ab+b1_mod1": "poly_a2+ab+b2_mod{}",
    **{f"{name}_mod1": f"{name}_mod{{}}" for name in OPERATIONS},
    **{f"{letters}1": f"{letters}{{}}" for letters in FAMILIES},
    # An example with one number takes the person's own; with several it is shown as it is.
    **{
        kind.shape: re.sub(r"[0-9]+", "{}", kind.example) if kind.shape.count("1") == 1 else kind.example
        for kind in KINDS
    },
}


def named_task(name: str, runs_code: bool = True) -> Task:
    """The task with this name; each is made once, a user's own anew whenever its file has changed.

    A name `file.py:function` runs that function, unless `runs_code` is false: then it is rejected.

    >>> named_task("div_mod97").rows
    9312
    """
    if OWN_ROWS.fullmatch(name) and not name.startswith(TABLE):
        return own_rows(name, runs_code)
    return group_task(name, table_group(name)) if name.startswith(TABLE) else _built_in_task(name)


@lru_cache(maxsize=64)
def _built_in_task(name: str) -> Task:
    if match := MODULAR.fullmatch(name):
        return modular_task(name, match)
    if is_group_name(name):
        return group_task(name, named_group(name))
    for kind in KINDS:
        if task := kind.task(name):
            return task
    raise InputError(f"{shown(name)} is not a task (`grokscope tasks` lists them){_nearest(name)}")


def group_of(name: str) -> Group:
    """The group with this name, or that of a task or table with this name.

    >>> group_of("add_mod97").name
    'Z97'
    """
    if is_group_name(name):
        return named_group(name)
    group = named_task(name).group
    if group is None:
        raise InputError(f"{shown(name)} is not a group's operation; `grokscope tasks {name}` shows what it is")
    return group


def pinned_task_name(name: str) -> str:
    """The name a spec should hold: for a user's own file, with the digest of its content; any other as it is.

    >>> pinned_task_name("add_mod97")
    'add_mod97'
    """
    if name.startswith(TABLE):
        return pinned_table(name)
    return pinned_rows(name) if OWN_ROWS.fullmatch(name) else name


def _nearest(name: str) -> str:
    """A suggestion with the person's own number in it: `ad_mod97` is near `add_mod97`; or how a file is named."""
    ending = Path(name).suffix
    if ending == ".py":
        return "; a function that gives rows is named as FILE.py:FUNCTION"
    if ending in (".json", ".csv", ".npy"):
        return "; a group's table is named as table:FILE, and rows are a .npz or .parquet file"
    if re.fullmatch(r"\.[A-Za-z]\w*", ending) or "/" in name:
        return "; rows of your own are a .npz or .parquet file, or FILE.py:FUNCTION"
    shape = nearest(re.sub(r"[0-9]+", "1", name), SHAPES)
    numbers = re.findall(r"[0-9]{1,4}", name) or ["97"]
    return f"; did you mean {SHAPES[shape].format(numbers[-1])!r}?" if shape else ""
