"""A run, described completely: what is learnt, by what, from which seeds, how, and how often it is evaluated.

The defaults are the paper's where it fixes them and those of `docs/paper-audit.md` §2 where it leaves them open.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal

from grokscope.errors import InputError, shown
from grokscope.specs.architecture import Architecture, Initialization
from grokscope.specs.control import ClosedLoop
from grokscope.specs.norm_hold import NormHold
from grokscope.specs.release import Release
from grokscope.specs.spec import HASH_CHARACTERS, WORD_LIMIT, Spec, require
from grokscope.specs.training import Training
from grokscope.specs.trigger import Trigger

__all__ = ["Cadence", "Fork", "RunSpec", "Seeds"]

TABLE = "table:"
# A user's own group, and the digest of its file that says which content is meant.
PINNED_TABLE = re.compile(rf"{TABLE}(.+)#([0-9a-f]{{16}})", re.DOTALL)
# A user's own rows: a file of them, or a function that gives them, and the digest of the file.
OWN_ROWS = re.compile(r"(.+\.(?:npz|parquet)|.+\.py:[A-Za-z_][A-Za-z0-9_]*)(?:#([0-9a-f]{16}))?", re.DOTALL)


def is_own_file(task: str) -> bool:
    """Whether a task is a file of the user's: a table, rows, or a function that gives rows.

    >>> [is_own_file(name) for name in ("add_mod97", "table:mine.json", "data/mine.npz", "mine.py:rows")]
    [False, True, True, True]
    """
    return task.startswith(TABLE) or OWN_ROWS.fullmatch(task) is not None


@dataclass(frozen=True)
class Seeds(Spec):
    """Three independent sources of chance; `RunSpec.with_seed` sets all of them."""

    split: int = 0
    """Decides which rows are trained on (and the permutation of shuffled labels)."""
    initialization: int = 0
    """Draws the initial weights."""
    data_order: int = 0
    """Orders the batches of every epoch (and draws dropout masks)."""

    def check(self) -> None:
        """Seeds are 63-bit."""
        for name, seed in self.to_dict().items():
            require(0 <= seed < WORD_LIMIT, f"the {name} seed must lie in [0, 2^63)", seed)


@dataclass(frozen=True)
class Fork(Spec):
    """Where a run begins if not at step 0."""

    parent: str
    """The content hash of the run it continues."""
    step: int
    """The parent's step at which it starts."""
    moments: Literal["kept", "reset"] = "kept"
    """Whether Adam's moments and step count come along."""
    scale: float = 1.0
    """What all weights are multiplied by: the paper's confounded first attempt at moving the norm (§6)."""
    norm: Literal["free", "frozen", "matched"] = "free"
    """After each step the weights keep their norm (`free`), are rescaled to that at the fork (`frozen`), or to that of
    the parent at the same step (`matched`): tells a norm that is a threshold from one that is a consequence."""

    def check(self) -> None:
        """A parent is a hash, a step is at least 0."""
        hexadecimal = len(self.parent) == 16 and set(self.parent) <= set("0123456789abcdef")
        require(hexadecimal, "parent must be a run's content hash of 16 hexadecimal digits", self.parent)
        require(self.step >= 0, "the fork's step must be at least 0", self.step)
        require(0 < self.scale < math.inf, "scale must be positive", self.scale)


@dataclass(frozen=True)
class Cadence(Spec):
    """Steps at which something is done: regular, logarithmic and listed ones, the first and the last always."""

    every: int | None = 500
    """Every so many steps; None for none."""
    per_decade: int = 0
    """Logarithmically spaced steps per factor of ten."""
    at: tuple[int, ...] = ()
    """Steps named one by one."""

    def check(self) -> None:
        """A regular step is at least 1, the others are at least 0."""
        self.require_each("be at least 1", "every")
        self.require_each("be at least 0", "per_decade")
        require(all(step >= 0 for step in self.at), "each listed step must be at least 0", self.at)

    def steps(self, last: int) -> tuple[int, ...]:
        """The steps from 0 to `last`, each once, in order.

        >>> Cadence(every=None, per_decade=1, at=(42,)).steps(250)
        (0, 1, 10, 42, 100, 250)
        """
        found = {0, last, *self.at}
        if self.every is not None:
            found.update(range(0, last, self.every))
        if self.per_decade:
            found.update(round(10 ** (i / self.per_decade)) for i in range(int(math.log10(last) * self.per_decade) + 1))
        return tuple(sorted(step for step in found if step <= last))


@dataclass(frozen=True)
class RunSpec(Spec):
    """One training run. Two runs with equal specs, on equal devices and layouts, are equal bit for bit."""

    task: str = "add_mod97"
    """A task's name, as `grokscope tasks` lists them."""
    train_fraction: float = 0.3
    """Share of the rows that is trained on, of those from which the task lets the split draw."""
    shuffled_labels: bool = False
    """Whether the loss sees permuted labels: a control that can be memorised and never generalises."""
    seeds: Seeds = Seeds()
    """Split, initial weights and data order."""
    architecture: Architecture = Architecture()
    """The model."""
    initialization: Initialization = Initialization()
    """Its initial weights."""
    training: Training = Training()
    """Its optimiser and data."""
    trigger: Trigger | None = None
    """A change of λ at a signal."""
    control: ClosedLoop | None = None
    """A rule that raises λ while the training set stays learnt, and backs off."""
    release: Release | None = None
    """A rule that begins with strong decay and lets it go."""
    fork: Fork | None = None
    """The run and step this one continues."""
    norm_hold: NormHold | None = None
    """Norms that are held after each step, whatever λ is."""
    checkpoints: Cadence = Cadence(every=500)
    """When weights are kept."""
    measurements: Cadence = Cadence(every=100)
    """When the run is measured; measuring never changes it."""
    precision: Literal["float32", "tf32", "bf16", "float64"] = "float32"
    """Arithmetic: float32 is the reference, tf32 and bf16 are faster, float64 is for checking."""
    model: str = ""
    """Whose model it is, if not grokscope's: a monitored run, of which architecture and initialisation say nothing."""

    def check(self) -> None:
        """What concerns more than one part: the split, the trigger's decay, the steps named by fork and cadences."""
        require(0 < self.train_fraction < 1, "train_fraction must lie in (0, 1)", self.train_fraction)
        require(self.task != "" and self.task.isprintable(), "task must be a task's name", self.task)
        is_known = self.training.weight_decay is not None or self.model
        require(is_known, "weight_decay must be a finite number, unless the run is only monitored", None)
        require(self.model.isprintable(), "model must be a printable name", self.model)
        if self.trigger is not None:
            self.training.require_decay(self.trigger.weight_decay, "the trigger's weight_decay")
            schedule = self.training.weight_decay_schedule
            require(not schedule, "a run has a trigger or a weight_decay_schedule, not both", schedule)
        if self.control is not None:
            self._check_control(self.control)
        if self.release is not None:
            self._check_release(self.release)
        last = self.training.steps
        if self.fork is not None:
            require(self.fork.step < last, f"the fork's step must lie before the last step {last}", self.fork.step)
        if self.norm_hold is not None:
            begins = self.norm_hold.start
            require(begins < last, f"the norm hold's start must lie before the last step {last}", begins)
            norm = "free" if self.fork is None else self.fork.norm
            require(norm == "free", "a fork with norm_hold must leave its own norm free", norm)
        for cadence in (self.checkpoints, self.measurements):
            late = [step for step in cadence.at if step > last]
            require(not late, f"listed steps and fork points must not pass the last step {last}", late)

    def _check_control(self, control: ClosedLoop) -> None:
        self.training.require_decay(control.highest, "the control's highest")
        begins = self.training.known_weight_decay
        require(begins > 0, "weight_decay must be positive for a control, which multiplies it", begins)
        require(
            begins <= control.highest,
            f"the control's highest must be at least weight_decay {begins:g}",
            control.highest,
        )
        others = (self.trigger, self.training.weight_decay_schedule or None)
        rule = "a run has a control, a trigger or a weight_decay_schedule, not two of them"
        require(others == (None, None), rule, next((other for other in others if other is not None), None))

    def _check_release(self, release: Release) -> None:
        self.training.require_decay(release.weight_decay, "the release's weight_decay")
        require(self.training.weight_decay is not None, "weight_decay must be known for a release, which leaves it")
        others = (self.trigger, self.control, self.training.weight_decay_schedule or None)
        rule = "a run has a release, a control, a trigger or a weight_decay_schedule, not two of them"
        require(others == (None, None, None), rule, next((other for other in others if other is not None), None))

    @cached_property
    def content_hash(self) -> str:
        """As every spec's, but a user's own file counts by its digest alone: where it lies changes no run."""
        if not is_own_file(self.task):
            return super().content_hash
        kind = "table" if self.task.startswith(TABLE) else "rows"
        digest = (PINNED_TABLE if kind == "table" else OWN_ROWS).fullmatch(self.task)
        if digest is None or digest[2] is None:
            raise InputError(
                f"a run is named by the content of its {kind}; let grokscope.tasks.pinned_task_name add the digest to "
                f"task, got {shown(self.task)}"
            )
        return replace(self, task=f"{kind}#{digest[2]}").content_hash

    @property
    def identity(self) -> str:
        """The content hash; of a spec whose table is not pinned, which has none, a digest of its JSON."""
        try:
            return self.content_hash
        except InputError:
            return sha256(self.to_json().encode()).hexdigest()[:HASH_CHARACTERS]

    @property
    def evaluation_steps(self) -> set[int]:
        """When a run is evaluated: at its cadence, and whenever its trigger or closed loop needs it."""
        steps = set(self.measurements.steps(self.training.steps))
        rule = self.rule
        return steps if rule is None else steps.union(range(0, self.training.steps, rule.every))

    @property
    def rule(self) -> Trigger | ClosedLoop | Release | None:
        """What changes λ by what is logged, if anything does.

        >>> RunSpec(trigger=Trigger()).rule
        Trigger(signal='fsd', at_least=None, weight_decay=3.0, every=100, restore_after_grokking=False)
        """
        return self.trigger or self.control or self.release

    def with_seed(self, seed: int) -> "RunSpec":
        """The same run with all three seeds set to this one.

        >>> RunSpec().with_seed(42).seeds
        Seeds(split=42, initialization=42, data_order=42)
        """
        return replace(self, seeds=Seeds(seed, seed, seed))

    def with_values(self, values: Mapping[str, Any]) -> "RunSpec":
        """The same run with these values of its fields, or of those of its training, architecture and initialisation.

        >>> RunSpec().with_values({"task": "S5", "width": 64, "steps": 10}).architecture.width
        64
        """
        parts: tuple[Any, ...] = (self, self.training, self.architecture, self.initialization)
        own, *inner = ({f.name: values[f.name] for f in fields(part) if f.name in values} for part in parts)
        names = ("training", "architecture", "initialization")
        changed = {name: replace(part, **chosen) for name, part, chosen in zip(names, parts[1:], inner, strict=True)}
        return replace(self, **own | changed)
