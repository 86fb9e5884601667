"""The models of the study, with and without LayerNorms, and the one task that all of them learn.

The MLP is that of arXiv 2606.13753 and 2606.18465, whose code is public: learnt embeddings of 128 dimensions side by
side, 256 GELU neurons, matrices N(0, 1/fan_in), whole batches of 0.4 of the pairs of addition mod 59, η = 0.001, λ = 1
on matrices alone. Their attention model is not described beyond one layer with an MLP block; ours has four heads of 32
dimensions and 512 neurons, as their first paper (2603.13331) has it, and batches of 512 as there.
"""

from dataclasses import dataclass, replace

from grokscope.specs import Architecture, Cadence, Initialization, RunSpec, Training
from grokscope.studies.run_set import Precision

__all__ = ["EVERY", "FORK", "MODELS", "Model", "free_run"]

TASK, FRACTION = "add_mod59", 0.4
FORK = 500  # by then the slowest of three models that were tried, with one seed, had memorised; none had grokked
EVERY = 50  # steps between evaluations
PARENT_BUDGET = 8_000
NORMAL = Initialization(scheme="normal", embedding_std=round(128**-0.5, 6))
ONE_LAYER = Architecture(layers=1)


@dataclass(frozen=True)
class Model:
    """One model, and what its clamps need to know."""

    title: str
    """What it is, for a person."""
    architecture: Architecture
    """Its shape."""
    batch_size: int | None = 512
    """Rows per step; None is the whole training set."""


MODELS: dict[str, Model] = {
    "mlp": Model(
        "MLP without LayerNorm",
        Architecture(kind="mlp", layers=1, embedded=True, width=128, mlp_width=256),
        None,
    ),
    "none": Model("attention, no LayerNorm", replace(ONE_LAYER, layer_norm=False)),
    "block": Model("attention, LayerNorm in the block alone", replace(ONE_LAYER, final_norm=False)),
    "final": Model(
        "attention, final LayerNorm alone", replace(ONE_LAYER, layer_norm=False, final_norm=True)
    ),
    "both": Model("attention, LayerNorm in the block and at the end", ONE_LAYER),
}  # fmt: skip


def free_run(
    model: str,
    seed: int,
    precision: Precision,
    steps: int = PARENT_BUDGET,
    decay: float = 1.0,
    rate: float = 1e-3,
) -> RunSpec:
    """A run whose norm is free: the parent of all forks of a seed, or one at another λ or η.

    >>> free_run("mlp", 0, "tf32").training.batch_size is None
    True
    """
    own = MODELS[model]
    training = Training(
        steps=steps,
        learning_rate=rate,
        weight_decay=decay,
        decay_parameters="matrices",
        batch_size=own.batch_size,
    )
    return RunSpec(
        TASK,
        FRACTION,
        architecture=own.architecture,
        initialization=NORMAL,
        training=training,
        checkpoints=Cadence(every=250, at=(FORK,)),
        measurements=Cadence(every=EVERY),
        precision=precision,
    ).with_seed(seed)
