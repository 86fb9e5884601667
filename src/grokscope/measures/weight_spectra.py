"""In which modes the embedding and the map from neurons to logits lie, read from the weights alone."""

from dataclasses import dataclass

import torch
from torch import Tensor

from grokscope.activations import RunStack
from grokscope.errors import require
from grokscope.measures.question import NOT_NUMBERS, Columns, Measure, Question
from grokscope.measures.rank import fourier_rank
from grokscope.measures.spectrum import Spectrum, mode_number, spectrum
from grokscope.measures.synchronization import fsd
from grokscope.model import Weights
from grokscope.shapes import Float
from grokscope.specs import Architecture
from grokscope.tasks import Basis

__all__ = [
    "ENTRIES",
    "WeightSpectrum",
    "embedding_spectrum",
    "logit_map",
    "neuron_logit_map",
    "neuron_logit_spectrum",
]


@dataclass(frozen=True)
class WeightSpectrum:
    """Power of a matrix over symbols in each mode, all its columns together."""

    power: Float[Tensor, "runs modes"]
    """Squared Frobenius norm of the matrix's part in each mode, in float64; the constant mode is left out."""
    dimensions: Float[Tensor, " modes"]
    """Dimension of each mode's function space."""

    @property
    def norm(self) -> Float[Tensor, "runs modes"]:
        """Frobenius norm of each mode's part."""
        return self.power.sqrt()

    @property
    def share(self) -> Float[Tensor, "runs modes"]:
        """Each mode's part of the power of all; NaN where nothing varies."""
        return self.power / self.power.sum(dim=-1, keepdim=True)

    @property
    def density(self) -> Float[Tensor, "runs modes"]:
        """Power per dimension, by which modes of different size are compared."""
        return self.power / self.dimensions


def embedding_spectrum(subject: RunStack, basis: Basis | None = None) -> WeightSpectrum:
    """Σ over the columns of W_E of their power in each mode, over the symbols that stand in the basis's group.

    Nanda et al. read the key frequencies off it. The separator's row is no symbol and is left out, as 0 is by the
    multiplicative basis. By default in the task's faithful basis.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> run = RunSpec(task="add_mod7")
    >>> drawn = initial_state(Cohort([run])).weights
    >>> found = embedding_spectrum(subject_of([run], drawn))
    >>> found.power.shape, round(float(found.share.sum()), 6)
    (torch.Size([1, 3]), 1.0)
    """
    require("embed.W_E" in subject.weights, "this model has no embedding of tokens, whose spectrum could be read")
    embedding = subject.weights["embed.W_E"][:, : subject.task.classes]
    found = spectrum(embedding, _basis(subject, basis))
    return WeightSpectrum(found.power.sum(dim=-1), found.dimensions)


def neuron_logit_map(subject: RunStack) -> Float[Tensor, "runs answers neurons"]:
    """What one unit of each neuron of the last MLP adds to each answer's logit: (W_out W_U)ᵀ, in float64.

    With a final LayerNorm, W_out is first centred over the residual stream and multiplied by the norm's w, as the norm
    does with whatever is added to its input. Its division by the stream's standard deviation belongs to each pair and
    is left out: the map is exact up to that one positive factor. The neurons of a plain MLP's last layer are mapped by
    W_U alone.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import Architecture, RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> specs = [RunSpec("add_mod5", architecture=small).with_seed(seed) for seed in (0, 1)]
    >>> subject = subject_of(specs, initial_state(Cohort(specs)).weights)
    >>> neuron_logit_map(subject).shape  # runs, answers, neurons
    torch.Size([2, 5, 16])
    """
    model = subject.architecture
    has_neurons = model.layers > 0 if model.kind == "mlp" else model.mlp == "on"
    require(has_neurons, "this model has no MLP, and so no map from neurons to logits")
    return logit_map(subject.weights, model, subject.task.classes)


def logit_map(weights: Weights, model: Architecture, classes: int) -> Float[Tensor, "runs answers neurons"]:
    """`neuron_logit_map` of weights by their names.

    >>> small = Architecture(kind="mlp", layers=1, mlp_width=3)
    >>> logit_map({"unembed.W_U": torch.ones(2, 3, 8)}, small, classes=5).shape
    torch.Size([2, 5, 3])
    """
    unembedding = weights["unembed.W_U"][..., :classes].double()
    if model.kind == "mlp":
        return unembedding.mT
    out = weights[f"blocks.{model.layers - 1}.mlp.W_out"].double()
    if model.has_final_norm:
        out = (out - out.mean(dim=-1, keepdim=True)) * weights["ln_final.w"].double()[:, None]
    return torch.bmm(out, unembedding).mT


def neuron_logit_spectrum(subject: RunStack, basis: Basis | None = None) -> Spectrum:
    """Each last-MLP neuron's power over the answers' modes, in the map to the logits. Nanda et al.'s W_L.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import Architecture, RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> specs = [RunSpec("add_mod5", architecture=small).with_seed(seed) for seed in (0, 1)]
    >>> subject = subject_of(specs, initial_state(Cohort(specs)).weights)
    >>> neuron_logit_spectrum(subject).power.shape  # runs, modes, neurons
    torch.Size([2, 2, 16])
    """
    return spectrum(neuron_logit_map(subject), _basis(subject, basis))


def _basis(subject: RunStack, basis: Basis | None) -> Basis:
    found = subject.task.basis() if basis is None else basis
    size, symbols = int(found.answers.max()) + 1, subject.task.classes
    require(size <= symbols, f"{subject.task.name} has {symbols} symbols, got a basis over {size}")
    return found


def _embedding_columns(question: Question) -> Columns:
    found = embedding_spectrum(question.stack, question.basis)
    share, mode = found.share.max(dim=-1)
    rank = fourier_rank(found.power[..., None]).median
    return {"embedding_peak_share": share, "embedding_mode": mode_number(mode, share), "embedding_rank": rank}


def _logit_map_columns(question: Question) -> Columns:
    waves = neuron_logit_spectrum(question.stack, question.basis)
    found = fsd(waves.density)
    return {
        "logit_map_fsd": found.fsd,
        "logit_map_mode": mode_number(found.mode, found.fsd),
        "logit_map_rank": fourier_rank(waves.power).median,
    }


ENTRIES = {
    "embedding": Measure(
        title="Spectrum of the token embedding",
        formula="share_k = ‖P_k W_E‖² / Σ_l ‖P_l W_E‖² over the symbols in the basis",
        source="Nanda et al. 2023, from which key frequencies are read",
        cost="the weights alone",
        null="every mode has the share of its dimension",
        undefined="the model has no embedding (rejected), or " + NOT_NUMBERS,
        columns={
            "embedding_peak_share": "share of the strongest mode",
            "embedding_mode": "that mode, counted from 1",
            "embedding_rank": "modes that hold 90 %",
        },
        compute=_embedding_columns,
        needs=frozenset({"basis", "answers", "weights"}),
    ),
    "logit_map": Measure(
        title="Synchronisation of the neuron-to-logit map",
        formula="FSD and median rank of the columns of (W_out W_U)ᵀ over the answers; of a plain MLP, of W_Uᵀ",
        source="Nanda et al. 2023 (W_L); Definition 1 and 2 applied to it",
        cost="the weights alone",
        null="untrained weights",
        undefined="the model has no MLP (rejected), most columns are constant, or weights are not numbers",
        columns={
            "logit_map_fsd": "FSD of the map",
            "logit_map_mode": "its dominant mode, counted from 1",
            "logit_map_rank": "its median rank",
        },
        compute=_logit_map_columns,
        needs=frozenset({"basis", "answers", "weights"}),
    ),
}
