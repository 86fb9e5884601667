"""A run so far, as a forecaster sees it: what was evaluated up to now, and the values it was configured with.

What would tell the future without foreseeing it is not here: no budget, no seed, no name or hash, no cadence, no task's
name, no flag that labels are shuffled, and no row later than the last one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import nan

import numpy as np

from grokscope.errors import InputError, require
from grokscope.shapes import Float, Int
from grokscope.specs import ReadingSpec, RunSpec
from grokscope.timeline import judged_columns

__all__ = ["CONFIGURATION", "Prefix", "run_configuration", "run_prefix"]

CONFIGURATION: Mapping[str, str] = {
    "weight_decay": "λ",
    "learning_rate": "η",
    "train_fraction": "share of the rows that is trained on",
    "train_rows": "rows trained on",
    "classes": "possible answers, or outputs where answers are real",
    "batch_size": "rows per step; all rows where the whole training set is one batch",
    "layers": "blocks of attention and MLP; hidden layers of an MLP",
    "width": "d_model, or the width of an MLP's embeddings",
    "mlp_width": "hidden neurons per block or layer",
    "is_transformer": "1 of transformers, 0 of plain MLPs",
    "initial_scale": "what every initial weight was multiplied by",
    "dropout": "share of each branch that is dropped",
    "is_squared_error": "1 where the squared error is minimised, 0 for cross-entropy",
    "changes_gradients": "1 where AdamW is given a changed gradient (Grokfast, ⊥Grad)",
    "holds_norm": "1 where a norm is rescaled to a target after every step",
    "changes_decay": "1 where λ is changed on the way, and of forks, which begin with another run's weights",
}
"""What is known of a run before its first step, and what each value is; NaN where one is not known."""

OF_FOREIGN_MODELS = frozenset({"weight_decay", "train_fraction", "train_rows", "classes"})
"""What the spec of a model that is not ours says of it; the rest has defaults that mean nothing."""
READING = ReadingSpec()


@dataclass(frozen=True, eq=False)
class Prefix:
    """A run so far."""

    steps: Int[np.ndarray, " evaluations"]
    """Rising; the last one is now."""
    columns: Mapping[str, Float[np.ndarray, " _"]]
    """What was measured at each, by the names of the catalogue; NaN where it was not."""
    configuration: Mapping[str, float] = field(default_factory=dict)
    """Values of `CONFIGURATION`; those that are not known may be left out."""

    def __post_init__(self) -> None:
        require(len(self.steps) > 0, "a run so far needs at least one evaluation")
        require(np.all(np.diff(self.steps) > 0), "the steps of a run must rise", self.steps.tolist())
        for name, values in self.columns.items():
            if len(values) != len(self.steps):
                raise InputError(f"{name} has {len(values)} values for {len(self.steps)} evaluations")

    @property
    def step(self) -> int:
        """Now: the step of the last evaluation."""
        return int(self.steps[-1])

    def column(self, name: str) -> Float[np.ndarray, " evaluations"]:
        """A column up to now; NaN everywhere if it was never measured.

        >>> run = Prefix(np.array([0, 100]), {"norm": np.array([90.0, 80.0])})
        >>> run.column("norm").tolist(), run.column("rank").tolist()
        ([90.0, 80.0], [nan, nan])
        """
        found = self.columns.get(name)
        return np.full(len(self.steps), np.nan) if found is None else found

    def value(self, name: str) -> float:
        """A value of the configuration; NaN if it is not known.

        >>> Prefix(np.array([0]), {}, {"weight_decay": 1.0}).value("weight_decay")
        1.0
        """
        return float(self.configuration.get(name, nan))

    @cached_property
    def memorized(self) -> int | None:
        """The first step at which the training set was learnt (training accuracy ≥ 0.99); None if it is not yet."""
        return self._first("train_accuracy", READING.memorized)

    @cached_property
    def grokked(self) -> int | None:
        """The first step at which it had grokked (validation accuracy ≥ 0.95); None if it has not.

        >>> Prefix(np.array([0, 100]), {"validation_accuracy": np.array([0.1, 0.99])}).grokked
        100
        """
        return self._first("validation_accuracy", READING.grokked)

    def until(self, step: int) -> "Prefix":
        """The same run as it was at an earlier step.

        >>> Prefix(np.array([0, 100, 200]), {}).until(150).step
        100
        """
        rows = int(np.searchsorted(self.steps, step, side="right"))
        require(rows > 0, f"there is no evaluation up to step {step}")
        return Prefix(
            self.steps[:rows], {name: values[:rows] for name, values in self.columns.items()}, self.configuration
        )

    def _first(self, column: str, level: float) -> int | None:
        reached = self.column(column) >= level
        return int(self.steps[reached.argmax()]) if reached.any() else None


def run_prefix(spec: RunSpec, evaluations: Mapping[str, Sequence[float | int]], until: int | None = None) -> Prefix:
    """A run of ours so far: its logged columns and its configuration, up to now or to an earlier step.

    Where answers are real, accuracies are those by which events are decided (`timeline.success_level`).

    >>> log = {"step": [0, 100], "train_accuracy": [0.1, 1.0], "validation_accuracy": [0.0, 0.1]}
    >>> run_prefix(RunSpec(), log).memorized
    100
    """
    judged = judged_columns(evaluations)
    steps = np.asarray(judged["step"], dtype=np.int64)
    columns = {name: np.asarray(values, dtype=np.float64) for name, values in judged.items() if name != "step"}
    whole = Prefix(steps, columns, run_configuration(spec))
    return whole if until is None else whole.until(until)


@lru_cache(maxsize=8192)
def run_configuration(spec: RunSpec) -> Mapping[str, float]:
    """The values of `CONFIGURATION` of a run.

    >>> run_configuration(RunSpec())["train_rows"]
    2822.0
    """
    found = _configuration(spec)
    return {name: value if not spec.model or name in OF_FOREIGN_MODELS else nan for name, value in found.items()}


def _configuration(spec: RunSpec) -> dict[str, float]:
    training, architecture = spec.training, spec.architecture
    rows, classes = _task_sizes(spec.task, spec.train_fraction)
    rules = (spec.fork, spec.trigger, spec.control, spec.release, training.weight_decay_schedule or None)
    return {
        "weight_decay": nan if training.weight_decay is None else float(training.weight_decay),
        "learning_rate": float(training.learning_rate),
        "train_fraction": float(spec.train_fraction),
        "train_rows": rows,
        "classes": classes,
        "batch_size": float(np.fmin(rows, training.batch_size or rows)),
        "layers": float(architecture.layers),
        "width": float(architecture.width),
        "mlp_width": float(architecture.mlp_width),
        "is_transformer": float(architecture.kind == "transformer"),
        "initial_scale": float(spec.initialization.scale),
        "dropout": float(training.dropout),
        "is_squared_error": float(training.loss == "mse"),
        "changes_gradients": float((training.gradient, training.optimizer) != ("plain", "adamw")),
        "holds_norm": float(spec.norm_hold is not None),
        "changes_decay": float(any(rule is not None for rule in rules)),
    }


@lru_cache(maxsize=1024)
def _task_sizes(name: str, train_fraction: float) -> tuple[float, float]:
    """Rows trained on and classes; NaN of a task that is not at hand."""
    from grokscope.tasks import named_task
    from grokscope.tasks.task import train_size

    try:
        task = named_task(name, runs_code=False)
    except InputError:
        return nan, nan
    return float(train_size(task, train_fraction)), float(task.classes)
