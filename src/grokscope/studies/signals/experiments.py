"""What is trained: cells that grok and cells that cannot, in families within which thresholds are matched.

Runs of one cell differ in their seed alone. A family holds cells of one model and one number of classes, so that a loss
or a norm means the same in all of them; its runs that cannot grok have shuffled labels, or a table without structure.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from grokscope.specs import Architecture, Cadence, RunSpec, Training
from grokscope.studies.run_set import Precision, Runs
from grokscope.studies.selection import configuration

__all__ = [
    "CELLS",
    "EVERY",
    "EXPERIMENTS",
    "FAMILIES",
    "Cell",
    "Family",
    "experiments_of",
    "family_of",
    "quick_runs",
]

EVERY = 100  # steps between evaluations, and between checkpoints: every signal is read at the same steps
SEEDS, MORE_SEEDS, FEWER_SEEDS = 32, 64, 16
Kind = Literal["groks", "cannot-grok", "polynomials"]
TRANSFORMER = Architecture()
ONE_LAYER = Architecture(layers=1)
# Nanda et al.'s model, but for the biases of its MLP and the initial scales; the whole training set at every step.
NANDA = Architecture(layers=1, layer_norm=False, biases=False, causal=True, activation="relu")
FULL_BATCH = Training(batch_size=None, beta2=0.98, warmup_steps=10)
MLP = Architecture(kind="mlp", layers=1, activation="relu")
SMALL_BATCH = Training(batch_size=128)


@dataclass(frozen=True)
class Cell:
    """A task and how it is learnt, or cannot be."""

    title: str
    """What it is, for a person."""
    kind: Kind
    """The experiment it belongs to."""
    task: str
    """As it is named everywhere."""
    budget: int
    """Optimiser steps; of runs that cannot grok as many as the slowest of the others are likely to need."""
    train_fraction: float = 0.3
    """Share of the rows."""
    architecture: Architecture = TRANSFORMER
    """The model."""
    training: Training = field(default_factory=Training)
    """Everything else about training."""
    is_shuffled: bool = False
    """Whether labels are shuffled."""
    seeds: int = SEEDS
    """How many runs it has."""

    def run(self, seed: int, precision: Precision) -> RunSpec:
        """One run."""
        return RunSpec(
            self.task,
            self.train_fraction,
            architecture=self.architecture,
            training=replace(self.training, steps=self.budget),
            shuffled_labels=self.is_shuffled,
            measurements=Cadence(every=EVERY),
            checkpoints=Cadence(every=EVERY),
            precision=precision,
        ).with_seed(seed)


@dataclass(frozen=True)
class Family:
    """Cells between which a threshold means the same."""

    title: str
    """What they have in common."""
    groks: tuple[str, ...]
    """Cells that grok. A run that cannot is watched for as long as the run of the same seed of the first of them."""
    cannot: tuple[str, ...]
    """Cells that cannot."""


def _shuffled(cell: Cell, budget: int, seeds: int = SEEDS) -> Cell:
    return replace(
        cell, title=f"{cell.title}, labels shuffled", kind="cannot-grok", budget=budget, is_shuffled=True, seeds=seeds
    )


def _without_structure(task: str, title: str, like: Cell, budget: int) -> Cell:
    return replace(like, title=title, kind="cannot-grok", task=task, budget=budget)


ADD97 = Cell("(a + b) mod 97", "groks", "add_mod97", 9_000)
ONE = Cell("(a + b) mod 97, one layer", "groks", "add_mod97", 7_000, architecture=ONE_LAYER)
NANDAS = Cell(
    "(a + b) mod 113, Nanda et al.'s model", "groks", "add_mod113", 8_000, architecture=NANDA, training=FULL_BATCH
)
S5 = Cell("S5", "groks", "S5", 9_000, 0.7)
PARITY = Cell("parity of 3 of 30 bits, MLP", "groks", "parity_n30_k3", 8_000, 0.25, MLP, SMALL_BATCH)

CELLS: dict[str, Cell] = {
    "add97": ADD97,
    "mult97": Cell("a · b mod 97", "groks", "mult_mod97", 7_000),
    "shuffled97": _shuffled(ADD97, 5_000),
    "latin97": _without_structure("latin97", "random Latin square of order 97", ADD97, 5_000),
    "random97": _without_structure("random97", "random table of 97 symbols", ADD97, 5_000),
    "one-layer": ONE,
    "shuffled-one-layer": _shuffled(ONE, 5_000),
    "nanda": NANDAS,
    "shuffled-nanda": _shuffled(NANDAS, 6_000),
    "S5": S5,
    "shuffledS5": _shuffled(S5, 6_000),
    "random120": _without_structure("random120", "random table of 120 symbols", S5, 6_000),
    "parity": PARITY,
    "shuffled-parity": _shuffled(PARITY, 5_000, MORE_SEEDS),
    "square-sum": Cell("a² + ab + b² mod 97", "polynomials", "poly_a2+ab+b2_mod97", 5_000, seeds=FEWER_SEEDS),
    "cube-sum": Cell("a³ + ab mod 97", "polynomials", "poly_a3+ab_mod97", 5_000, seeds=FEWER_SEEDS),
}
"""Name → cell. The polynomials are those of which arXiv:2602.16746 says that they do not grok; nobody knows that they
cannot, so no threshold is matched on them."""

FAMILIES: dict[str, Family] = {
    "mod 97": Family("two layers, 97 classes", ("add97", "mult97"), ("shuffled97", "latin97", "random97")),
    "one layer": Family("one layer, 97 classes", ("one-layer",), ("shuffled-one-layer",)),
    "Nanda": Family("Nanda et al.'s model, 113 classes", ("nanda",), ("shuffled-nanda",)),
    "S5": Family("two layers, 120 classes", ("S5",), ("shuffledS5", "random120")),
    "parity": Family("an MLP, 2 classes", ("parity",), ("shuffled-parity",)),
}


def family_of(run: str) -> str:
    """The family of a run's cell; empty where it has none.

    >>> family_of("mult97_s3"), family_of("square-sum_s0")
    ('mod 97', '')
    """
    cell = configuration(run)
    return next((name for name, one in FAMILIES.items() if cell in (*one.groks, *one.cannot)), "")


Experiments = Mapping[str, Callable[[int | None, Precision], Runs]]


def experiments_of(cells: Collection[str]) -> Experiments:
    """The runs of some cells by experiment, as a function of how many seeds are wanted and of the precision.

    >>> list(experiments_of(["add97", "shuffled97"]))
    ['groks', 'cannot-grok']
    """

    def runs_of(kind: Kind) -> Callable[[int | None, Precision], Runs]:
        def runs(n_seeds: int | None, precision: Precision) -> Runs:
            return {
                f"{name}_s{seed}": cell.run(seed, precision)
                for name, cell in CELLS.items()
                if name in cells and cell.kind == kind
                for seed in range(cell.seeds if n_seeds is None else n_seeds)
            }

        return runs

    kinds: tuple[Kind, ...] = ("groks", "cannot-grok", "polynomials")
    return {kind: runs_of(kind) for kind in kinds if any(CELLS[name].kind == kind for name in cells)}


EXPERIMENTS = experiments_of(CELLS)

TINY = Architecture(layers=1, width=32, heads=2, mlp_width=64)
TINY_TRAINING = Training(batch_size=32, learning_rate=0.015, weight_decay=0.7)


def quick_runs(precision: Precision = "float32") -> dict[str, Runs]:
    """Two seeds of a small addition and of the same with shuffled labels: to see what the output is.

    >>> {name: len(runs) for name, runs in quick_runs().items()}
    {'groks': 2, 'cannot-grok': 2}
    """
    small = replace(ADD97, task="add_mod7", budget=160, train_fraction=0.9, architecture=TINY, training=TINY_TRAINING)
    cells = {"add97": small, "shuffled97": _shuffled(small, 160)}
    often = Cadence(every=10)
    return {
        kind: {
            f"{name}_s{seed}": replace(cell.run(seed, precision), measurements=often, checkpoints=often)
            for name, cell in cells.items()
            if cell.kind == kind
            for seed in range(2)
        }
        for kind in ("groks", "cannot-grok")
    }
