"""Runs that share one stack: equal shapes, and everything else each run's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grokscope.errors import require
from grokscope.model import Layout, initial_weights, layout_of, padded_size
from grokscope.shapes import Bool, Float, Int
from grokscope.specs import Architecture, RunSpec
from grokscope.tasks import Task, named_task, shuffled_labels, split, train_size

__all__ = ["OLDEST_TRITON", "Cohort", "CohortKey", "Tables", "cohort_key", "has_triton"]

OLDEST_TRITON = "3.6"  # with 3.0 kernels give other numbers in the interpreter, and 3.2 aborts


@dataclass(frozen=True)
class CohortKey:
    """What runs must agree on to share a stack; a function of each run's own spec, never of its neighbours."""

    architecture: Architecture
    """The model."""
    size: int
    """Padded vocabulary and classes."""
    batch: int
    """Pairs per step."""
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


def holds_norm(spec: RunSpec) -> bool:
    """Whether a run's norm is held after each step."""
    return spec.fork is not None and spec.fork.norm != "free"


def cohort_key(spec: RunSpec) -> CohortKey:
    """The stack a run belongs to.

    >>> cohort_key(RunSpec("add_mod97").with_seed(0)) == cohort_key(RunSpec("add_mod97").with_seed(1))
    True
    """
    task = named_task(spec.task)
    train = train_size(task, spec.train_fraction)
    batch = min(spec.training.batch_size or train, train)
    return CohortKey(
        architecture=spec.architecture,
        size=padded_size(task.symbols),
        batch=batch,
        precision=spec.precision,
        dropout=spec.training.dropout > 0,
        clipping=spec.training.clip_norm is not None,
        holds_norm=holds_norm(spec),
        gradient=spec.training.gradient,
    )


@dataclass(frozen=True, eq=False)
class Tables:
    """All pairs of every run on the device, ordered by answer; shorter tasks are padded with their last pair."""

    tokens: Int[Tensor, "runs 3 inputs"]
    """[a, b, separator]."""
    answers: Int[Tensor, "runs inputs"]
    """True answers."""
    labels: Int[Tensor, "runs inputs"]
    """What the loss sees: the answers, or shuffled ones."""
    is_train: Bool[Tensor, "runs inputs"]
    """Pairs trained on."""
    is_real: Bool[Tensor, "runs inputs"]
    """False for padding."""
    train_rows: Int[Tensor, "runs train"]
    """Columns of the tables that are trained on, in the order of the split."""
    train_count: tuple[int, ...]
    """How many of those are real, for each run."""


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
        return layout_of(self.key.architecture, self.key.size)

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
        a = self.architecture
        numbers = 3 * self.key.batch * max(a.mlp_width, 3 * a.width)  # of a run's largest activation
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
        inputs, train = (max(len(part[i]) for part in parts) for i in (1, 4))

        def stacked(i: int, length: int) -> Tensor:
            padded = [np.pad(p[i], [(0, 0)] * (p[i].ndim - 1) + [(0, length - p[i].shape[-1])], "edge") for p in parts]
            return torch.from_numpy(np.stack(padded)).to(self.device)

        is_real = [np.arange(inputs) < len(part[1]) for part in parts]
        real = torch.from_numpy(np.stack(is_real)).to(self.device)
        return Tables(
            tokens=stacked(0, inputs),
            answers=stacked(1, inputs),
            labels=stacked(2, inputs),
            is_train=stacked(3, inputs) & real,
            is_real=real,
            train_rows=stacked(4, train),
            train_count=tuple(len(part[4]) for part in parts),
        )

    def initial(self) -> Float[Tensor, "runs parameters"]:
        """Each run's initial weights, drawn from its own seed at its task's own size."""
        flat = torch.empty(len(self), self.layout.size, dtype=self.dtype, device=self.device)
        kinds: dict[Any, list[int]] = {}
        for slot, (spec, task) in enumerate(zip(self.specs, self.tasks, strict=True)):
            kinds.setdefault((spec.initialization, task.symbols), []).append(slot)
        for (initialization, symbols), slots in kinds.items():
            drawn_from = [self.specs[s].seeds.initialization for s in slots]
            seeds = torch.tensor(drawn_from, device=self.order_seeds.device)
            drawn = initial_weights(self.architecture, initialization, symbols, self.key.size, seeds)
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


def _tables_of(spec: RunSpec, task: Task) -> tuple[np.ndarray, ...]:
    """(tokens, answers, labels, is_train, train_rows) of one run, pairs ordered by answer."""
    order = np.argsort(task.answers, kind="stable")
    place = np.argsort(order, kind="stable")
    labels = shuffled_labels(task, spec.seeds.split) if spec.shuffled_labels else task.answers
    train = split(task, spec.train_fraction, spec.seeds.split).train
    is_train = np.zeros(len(order), dtype=bool)
    is_train[place[train]] = True
    return task.tokens[order].T, task.answers[order], labels[order], is_train, place[train]
