"""What is to be learnt: all pairs, their answers, and the bases in which the answers can be read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from grokscope.errors import InputError, did_you_mean, require, shown
from grokscope.shapes import Int
from grokscope.tasks.group import Group, frozen
from grokscope.tasks.modes import Modes

__all__ = ["Basis", "BasisName", "Task", "train_size"]

BasisName = Literal["additive", "multiplicative", "isotypic"]


@dataclass(frozen=True, eq=False)
class Basis:
    """A group on some of the answers, and the modes of functions on it."""

    name: BasisName
    """`additive`: frequencies of Z_p; `multiplicative`: frequencies of the discrete logarithm; `isotypic`: irreps."""
    answers: Int[np.ndarray, " elements"]
    """The answer that stands at each group element, in the modes' order; answers left out (0, for
    multiplication) are not in the group."""
    modes: Modes
    """The modes."""


@dataclass(frozen=True, eq=False)
class Task:
    """A binary operation on n symbols, learnt as [a, b, separator] → answer."""

    name: str
    """As it is written everywhere, `add_mod97` or `S5`."""
    title: str
    """What it is, for a person."""
    symbols: int
    """n: the tokens 0 … n − 1, and as many classes."""
    inputs: Int[np.ndarray, "inputs 2"]
    """Every pair (a, b) that has an answer, in lexicographic order."""
    answers: Int[np.ndarray, " inputs"]
    """The answer of each."""
    sums: Int[np.ndarray, " inputs"] | None
    """(a + b) mod n, the paper's reading of multiplication; None where symbols are not numbers."""
    bases: Mapping[BasisName, Callable[[], Basis]]
    """The bases in which the answers can be read, built when asked for; the faithful one first."""
    group: Group | None
    """The group, where the operation is a group's."""

    def __post_init__(self) -> None:
        for array in (self.inputs, self.answers, self.sums):
            if array is not None:
                frozen(array)

    @property
    def separator(self) -> int:
        """The token after a and b; the paper's sep = p."""
        return self.symbols

    @property
    def vocabulary(self) -> int:
        """Tokens: the symbols and the separator, p + 1."""
        return self.symbols + 1

    @property
    def classes(self) -> int:
        """Possible answers, p."""
        return self.symbols

    @property
    def tokens(self) -> Int[np.ndarray, "inputs 3"]:
        """[a, b, separator] of every pair."""
        return np.concatenate([self.inputs, np.full((len(self.inputs), 1), self.separator)], axis=1)

    def basis(self, name: str = "") -> Basis:
        """The basis with this name, by default the faithful one: that of the operation's own group."""
        for known, build in self.bases.items():
            if name in ("", known):
                return build()
        raise InputError(f"{self.name} has no basis {shown(name)}{did_you_mean(name, self.bases)}")


def train_size(task: Task, train_fraction: float) -> int:
    """How many pairs are trained on, whatever the seed: at least one.

    >>> from grokscope.tasks import named_task
    >>> train_size(named_task("add_mod97"), 0.3)  # of 9,409 pairs
    2822
    """
    require(0 < train_fraction < 1, "train_fraction must lie in (0, 1)", train_fraction)
    count = len(task.inputs)
    # The decimal as written, not its nearest double: 0.29 of 100 pairs are 29.
    size = int(Fraction(str(train_fraction)) * count)
    require(size != 0, f"train_fraction {train_fraction} of the {count} pairs of {task.name} leaves no training pair")
    return size
