"""The models of the study, with and without LayerNorms, and the one task that all of them learn.

Both kinds are those of arXiv 2606.13753, whose code is public: 0.4 of the pairs of addition mod 59, the whole training
set at every step, λ = 1 on matrices. The MLP, also of 2606.18465, has learnt embeddings of 128 dimensions side by side
and 256 GELU neurons, and matrices N(0, 1/fan_in); attention has one layer, four heads of 32 dimensions, 512 neurons and
no biases. There its W_out is N(0, 1/512), its position embeddings are a tenth as large, LayerNorms have no weights of
their own, and η is 0.0005 without LayerNorm; here matrices are N(0, 1/128), LayerNorms learn theirs, and η is 0.001.
"""

from dataclasses import dataclass, replace

from grokscope.specs import Architecture, Cadence, Initialization, RunSpec, Training
from grokscope.studies.run_set import Precision

__all__ = ["EVERY", "FORK", "MODELS", "Model", "free_run"]

TASK, FRACTION = "add_mod59", 0.4
FORK = 600  # as there: memorised, and not yet grokked
EVERY = 50  # steps between evaluations
PARENT_BUDGET = 12_000  # of the MLP's free runs half are reported to have grokked by 5,100
NORMAL = Initialization(scheme="normal", embedding_std=round(128**-0.5, 6))
ONE_LAYER = Architecture(layers=1, biases=False)


@dataclass(frozen=True)
class Model:
    """One model, and what its clamps need to know."""

    title: str
    """What it is, for a person."""
    architecture: Architecture
    """Its shape."""


MODELS: dict[str, Model] = {
    "mlp": Model(
        "MLP without LayerNorm",
        Architecture(kind="mlp", layers=1, embedded=True, width=128, mlp_width=256),
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

    >>> free_run("mlp", 0, "tf32").training.decay_parameters
    'matrices'
    """
    training = Training(
        steps=steps,
        learning_rate=rate,
        weight_decay=decay,
        decay_parameters="matrices",
        batch_size=None,
    )
    return RunSpec(
        TASK,
        FRACTION,
        architecture=MODELS[model].architecture,
        initialization=NORMAL,
        training=training,
        checkpoints=Cadence(every=250, at=(FORK,)),
        measurements=Cadence(every=EVERY),
        precision=precision,
    ).with_seed(seed)
