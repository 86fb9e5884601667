"""What is trained: every kind of task, each by a model that its source used or by the paper's transformer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from grokscope.specs import Architecture, Cadence, Initialization, RunSpec, Training
from grokscope.studies.study import Precision, Runs

__all__ = ["CELLS", "EXPERIMENTS", "QUICK", "Cell", "quick_runs"]

SEEDS = 8
MLP = Architecture(kind="mlp", layers=1, activation="relu")
QUADRATIC = Architecture(kind="mlp", layers=1, activation="square", biases=False)
LINEAR = Architecture(kind="mlp", layers=0, biases=False)
RATE, PENALTY, EPSILON = 0.01, 0.02, 1e6  # of gradient descent, which AdamW is with so large an ε: `law/ridge.py`
DESCENT = Training(
    learning_rate=RATE * EPSILON / 2, epsilon=EPSILON, beta1=0.0, weight_decay=2 * PENALTY / EPSILON, batch_size=None,
    loss="mse",
)  # fmt: skip
# At the paper's η = 0.001 and λ = 1 this MLP memorises and is at .55 of the validation rows after 8,000 steps.
PARITY = Training(batch_size=128, learning_rate=0.01, weight_decay=0.1)
SMALL = Architecture(layers=1, width=64, heads=2, mlp_width=256)


@dataclass(frozen=True)
class Cell:
    """A task and how it is learnt; runs of one cell differ in their seed alone."""

    title: str
    """What it is, for a person."""
    experiment: str
    """The experiment it belongs to."""
    task: str
    """As it is named everywhere."""
    budget: int
    """Optimiser steps."""
    train_fraction: float = 0.3
    """Share of the rows, where the task does not name them."""
    architecture: Architecture = field(default_factory=Architecture)
    """The model; the paper's if not given."""
    training: Training = field(default_factory=Training)
    """Everything else about training; the paper's if not given."""
    every: int = 100
    """Steps between evaluations."""
    initialization: Initialization = field(default_factory=Initialization)
    """How weights begin; as in the paper if not given."""
    is_exact: bool = False
    """Whether it needs float32 where others may be trained in less."""

    def run(self, seed: int, precision: Precision) -> RunSpec:
        """One run."""
        return RunSpec(
            self.task,
            self.train_fraction,
            architecture=self.architecture,
            training=replace(self.training, steps=self.budget),
            measurements=Cadence(every=self.every),
            checkpoints=Cadence(every=None),
            initialization=self.initialization,
            precision="float32" if self.is_exact else precision,
        ).with_seed(seed)


CELLS: dict[str, Cell] = {
    "addition": Cell("(a + b) mod 97, the paper's run", "additions", "add_mod97", 15_000),
    "three-terms": Cell("(a + b + c) mod 23", "additions", "add3_mod23", 20_000),
    "missing": Cell("the missing number of a + b = c mod 97", "additions", "missing_mod97", 20_000),
    "parity": Cell("parity of 3 of 40 bits, MLP", "parity", "parity_n40_k3", 10_000, 0.25, MLP, PARITY),
    "parity-decay": Cell(
        "the same with λ = 0.3", "parity", "parity_n40_k3", 10_000, 0.25, MLP, replace(PARITY, weight_decay=0.3)
    ),
    "parity-tokens": Cell(
        "parity of 3 of 12 bits, transformer", "parity", "parity_n12_k3_tokens", 20_000, 0.3, SMALL,
        Training(batch_size=256),
    ),
    "two-hop-3": Cell(
        "two hops, φ = 3", "two-hop", "twohop_e100_d10_ood0.1_phi3", 100_000,
        training=Training(weight_decay=0.3), every=500,
    ),
    "two-hop-7": Cell(
        "two hops, φ = 7", "two-hop", "twohop_e100_d10_ood0.1_phi7", 100_000,
        training=Training(weight_decay=0.3), every=500,
    ),
    "quadratic": Cell(
        "(a + b) mod 97, quadratic network", "quadratic", "add_mod97", 5_000, 0.5, QUADRATIC,
        Training(batch_size=None, loss="mse", learning_rate=5e-3, weight_decay=5.0), 20,
    ),
    "ridge": Cell(
        "ridge regression, 40 rows of 60 features", "ridge", "ridge_d60_n40_success0.6", 20_000, 0.3, LINEAR, DESCENT,
        50, Initialization(scheme="normal", scale=10.0), is_exact=True,
    ),
    "latin": Cell("random Latin square of order 97", "controls", "latin97", 20_000),
    "random": Cell("random table of 97 symbols", "controls", "random97", 20_000),
}  # fmt: skip


def _runs_of(experiment: str) -> Callable[[int | None, Precision], Runs]:
    """An experiment's runs, as a function of how many seeds are wanted and of the precision."""

    def runs(n_seeds: int | None, precision: Precision) -> Runs:
        return {
            f"{name}_s{seed}": cell.run(seed, precision)
            for name, cell in CELLS.items()
            if cell.experiment == experiment
            for seed in range(SEEDS if n_seeds is None else n_seeds)
        }

    return runs


EXPERIMENTS: Mapping[str, Callable[[int | None, Precision], Runs]] = {
    experiment: _runs_of(experiment) for experiment in dict.fromkeys(cell.experiment for cell in CELLS.values())
}


QUICK = {
    "parity": replace(CELLS["parity"], task="parity_n12_k2", budget=600),
    "quadratic": replace(CELLS["quadratic"], task="add_mod23", budget=300),
}


def quick_runs(precision: Precision = "float32") -> dict[str, Runs]:
    """Two seeds of two small tasks, for half a minute: to see what the output is, not what comes out.

    >>> {name: len(runs) for name, runs in quick_runs().items()}
    {'parity': 2, 'quadratic': 2}
    """
    return {
        cell.experiment: {f"{name}_s{seed}": cell.run(seed, precision) for seed in range(2)}
        for name, cell in QUICK.items()
    }
