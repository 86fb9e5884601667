"""Singular values of the weight matrices: how many directions each of them uses, whatever the task is."""

from dataclasses import dataclass
from math import log

import torch
from torch import Tensor

from grokscope.activations import RunStack
from grokscope.measures.question import NOT_NUMBERS, Columns, Measure, Question
from grokscope.model import Weights, layout_of, padded_sizes, sizes_of
from grokscope.shapes import Float
from grokscope.specs import Architecture
from grokscope.tasks import Task

__all__ = ["ENTRIES", "SingularSpectrum", "matrices_of", "singular_spectrum", "weight_matrices"]

COLUMNS = {  # and the fields they are of
    "effective_rank": "effective_rank",
    "stable_rank": "stable_rank",
    "singular_entropy": "entropy",
    "singular_max": "largest",
    "singular_share": "top_share",
}


@dataclass(frozen=True)
class SingularSpectrum:
    """Singular values σ₁ ≥ σ₂ ≥ … of each run's matrix, in float64; NaN where the matrix is not a number.

    With the shares p_i = σ_i / Σ_l σ_l. A matrix of zeros has no shares, and everything but σ is NaN.
    """

    values: Float[Tensor, "*runs rank"]
    """σ in descending order, as many as the shorter side of the matrix."""

    @property
    def shares(self) -> Float[Tensor, "*runs rank"]:
        """p_i = σ_i / Σ_l σ_l."""
        return self.values / self.values.sum(dim=-1, keepdim=True)

    @property
    def largest(self) -> Float[Tensor, "*runs"]:
        """σ₁ = ‖W‖₂."""
        return self.values[..., 0]

    @property
    def top_share(self) -> Float[Tensor, "*runs"]:
        """p₁, in [1/rank, 1]."""
        return self.shares[..., 0]

    @property
    def stable_rank(self) -> Float[Tensor, "*runs"]:
        """‖W‖_F² / ‖W‖₂² = Σ σ_i² / σ₁², in [1, rank] (Rudelson and Vershynin 2007)."""
        return (self.values / self.values[..., :1]).square().sum(dim=-1)

    @property
    def entropy(self) -> Float[Tensor, "*runs"]:
        """−Σ p_i ln p_i / ln(rank), in [0, 1]: 0 for one direction, 1 for equal ones; of a single one, undefined."""
        return torch.special.entr(self.shares).sum(dim=-1) / (log(self.values.shape[-1]) or torch.nan)

    @property
    def effective_rank(self) -> Float[Tensor, "*runs"]:
        """exp(−Σ p_i ln p_i), in [1, rank] (Roy and Vetterli 2007)."""
        return torch.special.entr(self.shares).sum(dim=-1).exp()


def singular_spectrum(matrix: Float[Tensor, "*runs rows columns"]) -> SingularSpectrum:
    """The singular values of each run's matrix.

    >>> found = singular_spectrum(torch.diag(torch.tensor([3.0, 1.0])))
    >>> round(float(found.stable_rank), 4), float(found.largest), float(found.top_share)
    (1.1111, 3.0, 0.75)
    """
    wide = matrix.double()
    is_number = wide.isfinite().flatten(-2).all(dim=-1)
    values = torch.linalg.svdvals(wide.where(is_number[..., None, None], 0))  # which stops at NaN
    return SingularSpectrum(values.where(is_number[..., None], torch.nan))


def weight_matrices(subject: RunStack) -> dict[str, Float[Tensor, "runs rows columns"]]:
    """Every weight matrix of a stack by its name, padding cut off.

    Query, key and value, which are stored side by side, are three. A map of one-hot vectors is one matrix, with a row
    for each token at each position.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import Architecture, RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> run = RunSpec("add_mod5", architecture=small)
    >>> found = weight_matrices(subject_of([run], initial_state(Cohort([run])).weights))
    >>> {name: tuple(matrix.shape[1:]) for name, matrix in found.items() if "attn" not in name}  # doctest: +ELLIPSIS
    {'embed.W_E': (6, 8), 'pos_embed.W_pos': (3, 8), 'blocks.0.mlp.W_in': (8, 16), ..., 'unembed.W_U': (8, 5)}
    >>> [name for name in found if "attn" in name]
    ['blocks.0.attn.W_Q', 'blocks.0.attn.W_K', 'blocks.0.attn.W_V', 'blocks.0.attn.W_O']
    """
    return matrices_of(subject.weights, subject.architecture, subject.task)


def matrices_of(
    weights: Weights, architecture: Architecture, task: Task
) -> dict[str, Float[Tensor, "runs rows columns"]]:
    """`weight_matrices` of padded weights by their names.

    >>> from grokscope.tasks import named_task
    >>> [*matrices_of({"unembed.W_U": torch.ones(2, 8, 5)}, Architecture(width=8), named_task("add_mod5"))]
    ['unembed.W_U']
    """
    sizes = sizes_of(task)
    layout = layout_of(architecture, padded_sizes(task))
    found: dict[str, Tensor] = {}
    for name, value in weights.items():
        real = value[(slice(None), *layout.real(name, sizes))]
        if name.endswith("W_QKV"):
            parts = real.chunk(3, dim=-1)
            found |= {name.replace("QKV", letter): part for letter, part in zip("QKV", parts, strict=True)}
        elif real.ndim >= 3:
            found[name] = real.flatten(1, -2)
    return found


def _columns(question: Question) -> Columns:
    found = {name: singular_spectrum(matrix) for name, matrix in weight_matrices(question.stack).items()}
    return {f"{kind}_{name}": getattr(one, field) for kind, field in COLUMNS.items() for name, one in found.items()}


ENTRIES = {
    "singular_values": Measure(
        title="Singular values of the weight matrices: effective rank, stable rank, entropy",
        formula="exp(H), Σ σ_i²/σ₁², H/ln(rank), σ₁, p₁ with p_i = σ_i/Σ_l σ_l and H = −Σ p_i ln p_i, of each matrix",
        source="Roy and Vetterli 2007 (effective rank); Rudelson and Vershynin 2007 (stable rank)",
        cost="the weights alone: one singular value decomposition of each matrix",
        null="the values at initialisation: those of random matrices (Marchenko and Pastur 1967)",
        undefined=NOT_NUMBERS + ", the matrix is zero, or it has a single row or column (entropy)",
        columns={
            "effective_rank_…": "exp of the entropy of a matrix's singular values, under the matrix's name",
            "stable_rank_…": "squared Frobenius norm over the squared largest singular value",
            "singular_entropy_…": "entropy of the singular values over that of equal ones, in [0, 1]",
            "singular_max_…": "the largest singular value",
            "singular_share_…": "its share of the sum of all",
        },
        compute=_columns,
        needs=frozenset({"weights"}),
    ),
}
