"""Runs that share one stack: equal shapes, and everything else each run's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grokscope.errors import InputError, require
from grokscope.model import Layout, Loss, Sizes, initial_weights, layout_of, padded_sizes, sizes_of
from grokscope.shapes import Bool, Float, Int
from grokscope.specs import Architecture, RunSpec
from grokscope.tasks import (
    HELD_OUT,
    PADDING,
    TRAIN,
    VALIDATION,
    Task,
    named_task,
    shuffled_labels,
    split,
    train_size,
)
from grokscope.training.norm_holds import held_parts

__all__ = ["OLDEST_TRITON", "Cohort", "CohortKey", "Tables", "cohort_key", "has_triton"]

OLDEST_TRITON = "3.6"  # with 3.0 kernels give other numbers in the interpreter, and 3.2 aborts


@dataclass(frozen=True)
class CohortKey:
    """What runs must agree on to share a stack; a function of each run's own spec, never of its neighbours."""

    architecture: Architecture
    """The model."""
    sizes: Sizes
    """What the model reads and answers, padded."""
    is_real: bool
    """Whether answers are real values; else they are classes."""
    conditions: int
    """Padded number of conditions over which activations are averaged; 0 where there is no basis to read them in."""
    row_groups: int
    """Groups of rows that are scored apart: training, validation, and those held out."""
    batch: int
    """Rows per step."""
    precision: str
    """Arithmetic."""
    dropout: bool
    """Whether branches are dropped at random."""
    clipping: bool
    """Whether gradients are clipped."""
    holds_norm: bool
    """Whether weights are rescaled to a given norm after each step."""
    gradient: str = "plain"
    """What is done to gradients before AdamW."""
    loss: Loss = "cross_entropy"
    """What is minimised."""
    held_parts: tuple[str, ...] = ()
    """Parts of the network whose norms are led to a level or held."""
    held_along: str = "weights"
    """Along what they are held."""
    optimizer: str = "adamw"
    """What moves the matrices."""
    muon_precision: str = "weights"
    """In which they are made orthogonal."""
    window: int = 0
    """How many of the last gradients each run keeps."""


def holds_norm(spec: RunSpec) -> bool:
    """Whether a run's norm is held after each step."""
    return spec.fork is not None and spec.fork.norm != "free"


def cohort_key(spec: RunSpec) -> CohortKey:
    """The stack a run belongs to.

    >>> cohort_key(RunSpec("add_mod97").with_seed(0)) == cohort_key(RunSpec("add_mod97").with_seed(1))
    True
    """
    task = named_task(spec.task)
    if task.is_real and spec.training.loss != "mse":
        raise InputError(f"{task.name} has real answers: loss must be mse, got {spec.training.loss}")
    train = train_size(task, spec.train_fraction)
    batch = min(spec.training.batch_size or train, train)
    return CohortKey(
        architecture=spec.architecture,
        sizes=(sizes := padded_sizes(task)),
        is_real=task.is_real,
        conditions=_padded_conditions(task, sizes),
        row_groups=HELD_OUT + len(task.held_out),
        batch=batch,
        precision=spec.precision,
        dropout=spec.training.dropout > 0,
        clipping=spec.training.clip_norm is not None,
        holds_norm=holds_norm(spec),
        gradient=spec.training.gradient,
        loss=spec.training.loss,
        held_parts=held_parts(spec),
        held_along=spec.norm_hold.along if spec.norm_hold is not None else "weights",
        optimizer=spec.training.optimizer,
        muon_precision=spec.training.muon_precision if spec.training.optimizer == "muon" else "weights",
        window=spec.training.grokfast_window if spec.training.gradient == "grokfast_window" else 0,
    )


def _padded_conditions(task: Task, sizes: Sizes) -> int:
    """As many as classes where these are the conditions, so that tasks of different size share a stack."""
    if not task.bases:
        return 0
    return sizes.classes if task.basis().condition == "answer" else task.condition().size


@dataclass(frozen=True, eq=False)
class Tables:
    """All rows of every run on the device, ordered by condition; shorter tasks are padded with their last row."""

    tokens: Int[Tensor, "runs length inputs"] | None
    """What sequence models read; of a pair table [a, b, separator]."""
    vectors: Float[Tensor, "runs inputs features"] | None
    """What models read that take vectors."""
    answers: Int[Tensor, "runs inputs"] | Float[Tensor, "runs inputs outputs"]
    """True answers."""
    labels: Int[Tensor, "runs inputs"] | Float[Tensor, "runs inputs outputs"]
    """What the loss sees: the answers, or shuffled ones."""
    conditions: Int[Tensor, "runs inputs"]
    """What activations are averaged over, of pair tables the answers; PADDING, or all 0 where there is no basis."""
    group: Int[Tensor, "runs inputs"]
    """TRAIN, VALIDATION, HELD_OUT + i for the i-th group that is held out, or PADDING."""
    train_rows: Int[Tensor, "runs train"]
    """Columns of the tables that are trained on, in the order of the split."""
    train_count: tuple[int, ...]
    """How many of those are real, for each run."""

    @property
    def given(self) -> Tensor:
        """What the model reads, tokens or vectors."""
        given = self.vectors if self.tokens is None else self.tokens
        assert given is not None
        return given

    def select(self, rows: Int[Tensor, "runs batch"]) -> tuple[Tensor, Tensor]:
        """What the model reads, and the labels, of some rows of each run."""
        if self.tokens is not None:
            given = self.tokens.gather(2, rows[:, None].expand(-1, self.tokens.shape[1], -1))
        else:
            given = _chosen(self.given, rows)
        return given, _chosen(self.labels, rows)

    @property
    def inputs(self) -> int:
        """Rows of the longest task."""
        return self.group.shape[1]

    @property
    def is_train(self) -> Bool[Tensor, "runs inputs"]:
        """Rows trained on."""
        return self.group == TRAIN

    @property
    def is_validation(self) -> Bool[Tensor, "runs inputs"]:
        """Rows that validate."""
        return self.group == VALIDATION

    @property
    def is_row(self) -> Bool[Tensor, "runs inputs"]:
        """False for padding."""
        return self.group != PADDING

    @property
    def scored_labels(self) -> Int[Tensor, "runs inputs"] | Float[Tensor, "runs inputs outputs"]:
        """What each row is scored by: training rows by the labels the loss sees, all others by the true answers."""
        is_train = self.is_train if self.labels.ndim == 2 else self.is_train[..., None]
        return torch.where(is_train, self.labels, self.answers)


class Cohort:
    """A fixed number of slots, each with a run or empty, and the tables they are trained on."""

    def __init__(
        self,
        specs: Sequence[RunSpec | None],
        device: torch.device | str = "cpu",
        paired: Mapping[int, RunSpec] | None = None,
    ) -> None:
        filled = [spec for spec in specs if spec is not None]
        require(filled, "a cohort needs at least one run")
        keys = {cohort_key(spec) for spec in filled}
        require(
            len(keys) == 1, f"runs of one cohort must share architecture, sizes and precision, got {len(keys)} kinds"
        )
        self.key: CohortKey = keys.pop()
        self.device = torch.device(device)
        self.is_empty = tuple(spec is None for spec in specs)
        # An empty slot computes a copy of the first run and never updates it: shapes stay fixed.
        self.specs = tuple(filled[0] if spec is None else spec for spec in specs)
        # Runs that another follows in its norm stand behind the others, in slots of their own.
        self.paired_slot = {slot: len(specs) + i for i, slot in enumerate(paired or {})}
        self.specs += tuple((paired or {}).values())
        self.is_empty += (False,) * len(self.paired_slot)
        self.tasks: tuple[Task, ...] = tuple(named_task(spec.task) for spec in self.specs)

    def __len__(self) -> int:
        return len(self.specs)

    @property
    def architecture(self) -> Architecture:
        """The model that all slots share."""
        return self.key.architecture

    @property
    def layout(self) -> Layout:
        """Where its parameters live."""
        return layout_of(self.key.architecture, self.key.sizes)

    @property
    def dtype(self) -> torch.dtype:
        """Of the stored weights: float64 only where checking, float32 otherwise."""
        return torch.float64 if self.key.precision == "float64" else torch.float32

    @property
    def exact(self) -> torch.dtype:
        """Of per-run scalars and totals on the device: float64, except on mps, which has none."""
        return torch.float32 if self.device.type == "mps" else torch.float64

    @property
    def has_kernels(self) -> bool:
        """Whether steps and evaluations are made of kernels: on CUDA, with Triton; they count in 32 bits."""
        a, sizes = self.architecture, self.key.sizes
        widest = max(a.mlp_width, 3 * a.width, sizes.classes, sizes.features)
        numbers = max(1, sizes.length) * self.key.batch * widest  # of a run's largest activation
        return self.device.type == "cuda" and has_triton() and numbers < 2**31

    @property
    def compute(self) -> torch.dtype | None:
        """Of matrix products, where it differs from the weights'."""
        return torch.bfloat16 if self.key.precision == "bf16" else None

    def column(self, name: str, dtype: torch.dtype | None = None) -> Tensor:
        """One field of the training specs (`learning_rate`, …) as a tensor [runs]."""
        values: list[Any] = [getattr(spec.training, name) for spec in self.specs]
        return torch.tensor(values, dtype=dtype or self.exact, device=self.device)

    @cached_property
    def classes(self) -> Int[Tensor, " runs"]:
        """Classes of each run's task."""
        return torch.tensor([task.classes for task in self.tasks], device=self.device)

    @cached_property
    def order_seeds(self) -> Int[Tensor, " runs"]:
        """Each run's data-order seed, where random words are drawn: on the device, unless it is mps."""
        place = "cpu" if self.device.type == "mps" else self.device
        return torch.tensor([spec.seeds.data_order for spec in self.specs], device=place)

    @cached_property
    def slots_by_task(self) -> dict[Task, Int[Tensor, " slots"]]:
        """Slots of each distinct task, for what is computed at a task's own size."""
        found: dict[Task, list[int]] = {}
        for slot, task in enumerate(self.tasks):
            found.setdefault(task, []).append(slot)
        return {task: torch.tensor(slots, device=self.device) for task, slots in found.items()}

    @cached_property
    def tables(self) -> Tables:
        """The data of every run."""
        parts = [_tables_of(spec, task) for spec, task in zip(self.specs, self.tasks, strict=True)]
        inputs, train = (max(len(part[name]) for part in parts) for name in ("group", "train_rows"))

        def stacked(name: str, length: int, filler: int | None = None) -> Tensor:
            return torch.from_numpy(np.stack([_padded(part[name], length, filler) for part in parts])).to(self.device)

        given = "vectors" if self.key.sizes.features else "tokens"
        read = stacked(given, inputs)
        return Tables(
            tokens=read.transpose(1, 2).contiguous() if given == "tokens" else None,
            vectors=read.to(self.dtype) if given == "vectors" else None,
            answers=self._in_precision(stacked("answers", inputs)),
            labels=self._in_precision(stacked("labels", inputs)),
            conditions=stacked("conditions", inputs, PADDING),
            group=stacked("group", inputs, PADDING),
            train_rows=stacked("train_rows", train),
            train_count=tuple(len(part["train_rows"]) for part in parts),
        )

    def _in_precision(self, values: Tensor) -> Tensor:
        """Real answers in the precision of the weights; classes as they are."""
        return values.to(self.dtype) if values.is_floating_point() else values

    def initial(self) -> Float[Tensor, "runs parameters"]:
        """Each run's initial weights, drawn from its own seed at its task's own size."""
        flat = torch.empty(len(self), self.layout.size, dtype=self.dtype, device=self.device)
        kinds: dict[Any, list[int]] = {}
        for slot, (spec, task) in enumerate(zip(self.specs, self.tasks, strict=True)):
            kinds.setdefault((spec.initialization, sizes_of(task)), []).append(slot)
        for (initialization, sizes), slots in kinds.items():
            drawn_from = [self.specs[s].seeds.initialization for s in slots]
            seeds = torch.tensor(drawn_from, device=self.order_seeds.device)
            drawn = initial_weights(self.architecture, initialization, sizes, self.key.sizes, seeds)
            flat[torch.tensor(slots, device=self.device)] = drawn.to(self.dtype).to(self.device)
        return flat


def has_triton() -> bool:
    """Whether Triton is there and new enough for our kernels: an older torch brings an older one."""
    try:
        from triton import __version__
    except ImportError:
        return False
    found, oldest = ([int(part) for part in version.split(".")[:2]] for version in (__version__, OLDEST_TRITON))
    return found >= oldest


def _tables_of(spec: RunSpec, task: Task) -> dict[str, np.ndarray]:
    """The rows of one run, ordered by condition; those without conditions stay as they are."""
    conditions = task.condition().values if task.bases else np.zeros(task.rows, dtype=np.int64)
    order = np.argsort(conditions, kind="stable")
    place = np.argsort(order, kind="stable")
    labels = shuffled_labels(task, spec.seeds.split) if spec.shuffled_labels else task.answers
    parts = split(task, spec.train_fraction, spec.seeds.split)
    given = {"tokens": task.tokens, "vectors": task.vectors}
    return {
        **{name: table[order] for name, table in given.items() if table is not None},
        "answers": task.answers[order],
        "labels": labels[order],
        "conditions": conditions[order],
        "group": parts.kinds[order],
        "train_rows": place[parts.train],
    }


def _chosen(table: Tensor, rows: Tensor) -> Tensor:
    """Rows of [runs, inputs] or of [runs, inputs, …]."""
    return table.gather(1, rows if table.ndim == 2 else rows[..., None].expand(-1, -1, table.shape[2]))


def _padded(table: np.ndarray, length: int, filler: int | None) -> np.ndarray:
    """The table with more rows: copies of the last, or a number that stands for none."""
    widths = [(0, length - len(table))] + [(0, 0)] * (table.ndim - 1)
    return np.pad(table, widths, "edge") if filler is None else np.pad(table, widths, constant_values=filler)
