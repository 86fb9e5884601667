"""What is to be learnt: rows with their answers, how they are split, and the bases in which they can be read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from grokscope.errors import InputError, did_you_mean, require, shown
from grokscope.shapes import Bool, Float, Int
from grokscope.tasks.group import Group, frozen
from grokscope.tasks.modes import Modes
from grokscope.tasks.row_groups import DRAWN, RowGroup, check_groups

__all__ = ["Basis", "BasisName", "Condition", "ConditionName", "PairTable", "Task", "train_size"]

BasisName = Literal["additive", "multiplicative", "isotypic", "walsh"]
ConditionName = Literal["answer", "sum", "input"]
MAX_ROWS = 2**22  # of 64-bit words: what every run of a stack has on the device, several times over
MAX_SYMBOLS = 2**20  # tokens, classes, outputs or features: a weight matrix has a row or a column for each
MAX_LENGTH = 2**12  # tokens of a sequence: attention compares every two of them
LARGEST = 1e18  # real numbers: their squares are still 32-bit numbers


@dataclass(frozen=True, eq=False)
class Basis:
    """A group on some of the conditions under which activations are averaged, and the modes of functions on it."""

    name: BasisName
    """`additive`: frequencies of Z_p; `multiplicative`: frequencies of the discrete logarithm; `isotypic`: irreps;
    `walsh`: subsets of bits."""
    answers: Int[np.ndarray, " elements"]
    """The answer, or other condition, that stands at each group element, in the modes' order; answers left out (0, for
    multiplication) are not in the group."""
    modes: Modes
    """The modes."""
    condition: ConditionName = "answer"
    """What it is read on: the mean activation for each answer, for each sum a + b, or for each input."""


@dataclass(frozen=True, eq=False)
class Condition:
    """Something that every row has, over whose values activations are averaged."""

    values: Int[np.ndarray, " rows"]
    """Of each row."""
    size: int
    """How many values there are: 0 … size − 1."""

    def __post_init__(self) -> None:
        frozen(self.values)


@dataclass(frozen=True, eq=False)
class PairTable:
    """Of a binary operation on n symbols, what a list of rows does not say."""

    symbols: int
    """n: the tokens 0 … n − 1, and as many classes."""
    group: Group | None = None
    """The group, where the operation is a group's."""


@dataclass(frozen=True, eq=False)
class Task:
    """Rows: sequences of tokens or vectors, each with the answer that is learnt."""

    name: str
    """As it is written everywhere, `add_mod97`, `S5` or `parity_n40_k3`."""
    title: str
    """What it is, for a person."""
    answers: Int[np.ndarray, " rows"] | Float[np.ndarray, "rows outputs"]
    """The class of each row, or its real values."""
    classes: int
    """Possible answers, or outputs where answers are real."""
    tokens: Int[np.ndarray, "rows length"] | None = None
    """What a sequence model reads, the separator at the end included."""
    vectors: Float[np.ndarray, "rows features"] | None = None
    """What a model reads that takes vectors."""
    vocabulary: int = 0
    """Tokens 0 … vocabulary − 1."""
    row_groups: tuple[RowGroup, ...] = ()
    """Every row in one of them; if not given, the split draws from all rows."""
    bases: Mapping[BasisName, Callable[[], Basis]] = field(default_factory=dict)
    """The bases in which activations can be read, built when asked for; the faithful one first. May be empty."""
    conditions: Mapping[ConditionName, Condition] = field(default_factory=dict)
    """What activations can be averaged over besides the answers."""
    success: float = 0.0
    """Of real answers: the share of their variance below which a squared error counts as success."""
    pairs: PairTable | None = None
    """What else is known where the rows are all pairs of symbols that have an answer."""

    def __post_init__(self) -> None:
        for array in (self.tokens, self.vectors, self.answers):
            if array is not None:
                frozen(array)
        self._check_rows()
        groups = self.row_groups or (RowGroup("all", DRAWN, np.arange(self.rows)),)
        check_groups(self.name, groups, self.rows)
        object.__setattr__(self, "row_groups", groups)
        self._require_variance()

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.answers)

    @property
    def is_real(self) -> bool:
        """Whether answers are real values; else they are classes."""
        return self.answers.ndim == 2

    @property
    def length(self) -> int:
        """Positions of a sequence; 0 where inputs are vectors."""
        return 0 if self.tokens is None else self.tokens.shape[1]

    @property
    def features(self) -> int:
        """Numbers of a vector; 0 where inputs are sequences."""
        return 0 if self.vectors is None else self.vectors.shape[1]

    @property
    def held_out(self) -> tuple[str, ...]:
        """Names of the groups of rows that are never trained on and reported apart."""
        return tuple(group.name for group in self.row_groups if group.rule == "held_out")

    @cached_property
    def is_held_out(self) -> Bool[np.ndarray, " rows"]:
        """Which rows are never trained on and reported apart."""
        mask = np.zeros(self.rows, dtype=bool)
        for group in self.row_groups:
            mask[group.rows] = group.rule == "held_out"
        return frozen(mask)

    @cached_property
    def variance(self) -> float:
        """Of real answers around their mean, the mean over outputs; rows that are held out do not count."""
        inside = np.concatenate([group.rows for group in self.row_groups if group.rule != "held_out"])
        return float(self.answers[inside].var(axis=0).mean())

    @property
    def success_error(self) -> float:
        """The squared error below which a real answer counts as right: success · variance."""
        return self.success * self.variance

    @property
    def symbols(self) -> int:
        """N of a pair table: the tokens 0 … n − 1, and as many classes."""
        return self._pair_table("symbols").symbols

    @property
    def inputs(self) -> Int[np.ndarray, "rows 2"]:
        """Every pair (a, b) of a pair table that has an answer, in lexicographic order."""
        self._pair_table("inputs a and b")
        assert self.tokens is not None
        return self.tokens[:, :2]

    @property
    def separator(self) -> int:
        """The token after a and b of a pair table; the paper's sep = p."""
        return self._pair_table("separator").symbols

    @property
    def sums(self) -> Int[np.ndarray, " rows"] | None:
        """(a + b) mod n, the paper's reading of multiplication; None where symbols are not numbers."""
        return self.conditions["sum"].values if "sum" in self.conditions else None

    @property
    def group(self) -> Group | None:
        """The group, where the task is a group's operation."""
        return None if self.pairs is None else self.pairs.group

    @property
    def is_read_in_irreps(self) -> bool:
        """Whether its faithful basis is that of a group's irreps: its FSD is FSD_gen."""
        return next(iter(self.bases), None) == "isotypic"

    def basis(self, name: str = "") -> Basis:
        """The basis with this name, by default the faithful one: that of the operation's own group."""
        require(self.bases or name, f"{self.name} has no basis to read activations in")
        for known, build in self.bases.items():
            if name in ("", known):
                return build()
        raise InputError(f"{self.name} has no basis {shown(name)}{did_you_mean(name, self.bases)}")

    def condition(self, name: str = "") -> Condition:
        """What activations are averaged over: by default what the faithful basis is read on, or else the answers."""
        name = name or (self.basis().condition if self.bases else "answer")
        if name in self.conditions:
            return self.conditions[name]  # type: ignore[index]
        if name != "answer":
            why = " a + b to condition on: its symbols are not numbers" if name == "sum" else " to condition on"
            raise InputError(f"{self.name} has no {name}s{why}")
        require(not self.is_real, f"{self.name} has real answers: there are no means by answer")
        return self._by_answer

    @cached_property
    def _by_answer(self) -> Condition:
        return Condition(self.answers, self.classes)

    def _pair_table(self, what: str) -> PairTable:
        if self.pairs is None:
            raise InputError(f"{self.name} has no {what}: it is not a table of pairs")
        return self.pairs

    def _check_rows(self) -> None:
        """One kind of input, as many inputs as answers, and values in their ranges."""
        inputs = [part for part in (self.tokens, self.vectors) if part is not None]
        require(len(inputs) == 1, f"{self.name} needs either tokens or vectors, got {len(inputs)} of them")
        (given,) = inputs
        self._require_arrays()
        require(0 < self.rows <= MAX_ROWS, f"{self.name} must have 1 to {MAX_ROWS:,} rows", self.rows)
        require(len(given) == self.rows, f"{self.name} has {len(given):,} rows and {self.rows:,} answers")
        require(given.shape[1] >= 1, f"each row of {self.name} must have at least one input", given.shape[1])
        self._require_sizes()
        if self.tokens is not None:
            self._require_range("token", self.tokens, self.vocabulary)
        else:
            self._require_numbers("input", self.vectors)
        if self.is_real:
            self._require_numbers("answer", self.answers)
            rule = f"each answer of {self.name} must have {self.classes} values, as many as there are outputs"
            require(self.answers.shape[1] == self.classes, rule, self.answers.shape[1])
            require(0 < self.success < 1, f"the success of {self.name} must lie in (0, 1)", self.success)
        else:
            self._require_range("answer", self.answers, self.classes)

    def _require_arrays(self) -> None:
        """Arrays of the right types: whole numbers for tokens and classes, real ones for vectors and real answers."""
        cases = {
            "tokens": (self.tokens, "whole numbers [rows, length]", ((2, "biu"),)),
            "vectors": (self.vectors, "real numbers [rows, features]", ((2, "f"),)),
            "answers": (self.answers, "whole numbers [rows] or real ones [rows, outputs]", ((1, "biu"), (2, "f"))),
        }
        for what, (array, rule, kinds) in cases.items():
            if array is not None and not any(array.ndim == ndim and array.dtype.kind in kind for ndim, kind in kinds):
                got = f"{array.dtype} {array.shape}"
                raise InputError(f"the {what} of {self.name} must be {rule}, got {got}")

    def _require_sizes(self) -> None:
        """Sizes for which a model can have weights."""
        require(self.classes >= 1, f"{self.name} needs at least one class or output", self.classes)
        cases = {
            "classes or outputs": (self.classes, MAX_SYMBOLS),
            "tokens": (self.vocabulary, MAX_SYMBOLS),
            "features in a vector": (self.features, MAX_SYMBOLS),
            "tokens in a sequence": (self.length, MAX_LENGTH),
        }
        for what, (size, most) in cases.items():
            require(size <= most, f"{self.name} may have at most {most:,} {what}", size)

    def _require_variance(self) -> None:
        """Real answers that vary: what counts as success is a share of their variance."""
        if not self.is_real:
            return
        seen = np.float32(self.answers[~self.is_held_out])  # as runs are trained; a difference that is lost is none
        limit = np.float32(self.success_error)
        if not (np.ptp(seen, axis=0).max() > 0 < limit):
            what = "success is a share of their variance"
            raise InputError(f"the answers of {self.name} must vary, for {what}, got {self.variance:.3g}")

    def _require_range(self, what: str, values: np.ndarray, limit: int) -> None:
        if values.min() < 0 or values.max() >= limit:
            outside: Bool[np.ndarray, "..."] = (values < 0) | (values >= limit)
            row = int(np.argwhere(outside)[0][0])
            got = values[outside].flat[0]
            raise InputError(f"each {what} of {self.name} must lie in 0 … {limit - 1}, got {got} in row {row}")

    def _require_numbers(self, what: str, values: np.ndarray | None) -> None:
        if values is None:
            return
        inside: Bool[np.ndarray, "..."] = np.abs(values) < LARGEST  # which NaN is not
        if not inside.all():
            row, column = np.argwhere(~inside)[0]
            rule = f"each {what} of {self.name} must be a finite number below {LARGEST:.0e}"
            raise InputError(f"{rule}, got {values[row, column]:.3g} in row {row}")


def train_size(task: Task, train_fraction: float) -> int:
    """How many rows are trained on, whatever the seed: at least one, and at least one is left for validation.

    >>> from grokscope.tasks import named_task
    >>> train_size(named_task("add_mod97"), 0.3)  # of 9,409 pairs
    2822
    """
    require(0 < train_fraction < 1, "train_fraction must lie in (0, 1)", train_fraction)
    size = sum(drawn_size(group, train_fraction) for group in task.row_groups)
    count = sum(len(group.rows) for group in task.row_groups if group.rule == DRAWN)
    if size == 0:
        raise InputError(f"train_fraction {train_fraction} of the {count} rows of {task.name} leaves no training row")
    left = sum(len(g.rows) - drawn_size(g, train_fraction) for g in task.row_groups if g.rule != "held_out")
    if left == 0:
        raise InputError(f"{task.name} leaves no row for validation")
    return size


def drawn_size(group: RowGroup, train_fraction: float) -> int:
    """How many rows of a group are trained on."""
    if group.rule != DRAWN:
        return len(group.rows) if group.rule == "train" else 0
    # The decimal as written, not its nearest double: 0.29 of 100 rows are 29.
    share = train_fraction if group.share is None else group.share
    return int(Fraction(str(share)) * len(group.rows))
