"""How many directions the hidden activations use: the spectral entropy of their covariance."""

from dataclasses import dataclass
from math import log

import torch
from torch import Tensor

from grokscope.activations import Subject
from grokscope.measures.question import Columns, Measure, Question
from grokscope.shapes import Float

__all__ = ["ENTRIES", "Representation", "covariance", "representation"]


@dataclass(frozen=True)
class Representation:
    """Eigenvalues of each run's covariance, as shares of the variance; NaN where nothing varies or is no number."""

    shares: Float[Tensor, "*runs neurons"]
    """p_i = λ_i / Σ_l λ_l in descending order."""

    @property
    def entropy(self) -> Float[Tensor, "*runs"]:
        """H̃ = −Σ p_i ln p_i / ln(neurons), in [0, 1]; of a single neuron, undefined."""
        return torch.special.entr(self.shares).sum(dim=-1) / (log(self.shares.shape[-1]) or torch.nan)

    @property
    def rank(self) -> Float[Tensor, "*runs"]:
        """exp(−Σ p_i ln p_i), in [1, neurons]: as many equal directions have this entropy."""
        return torch.special.entr(self.shares).sum(dim=-1).exp()

    @property
    def top_share(self) -> Float[Tensor, "*runs"]:
        """p₁: the share of the first principal component."""
        return self.shares[..., 0]


def covariance(subject: Subject, site: str) -> Float[Tensor, "runs neurons neurons"]:
    """Cov(h) = mean (h − h̄)(h − h̄)ᵀ of a site's activations h over all rows, in float64.

    Sums are of what is left after a value near the mean is taken off, so that a large mean costs no digits.
    """
    count, total, square, near = 0, torch.tensor(0.0), torch.tensor(0.0), None
    for _, values in subject.read_parts(site):
        wide = values.double()
        near = wide.mean(dim=1, keepdim=True) if near is None else near
        away = wide - near
        count, total, square = count + away.shape[1], total + away.sum(dim=1), square + away.mT @ away
    mean = total / count
    return square / count - mean[:, :, None] * mean[:, None]


def representation(covariances: Float[Tensor, "*runs neurons neurons"]) -> Representation:
    """The spectrum of a covariance.

    >>> found = representation(torch.diag(torch.tensor([2.0, 2.0, 0.0, 0.0])))
    >>> round(float(found.entropy), 4), round(float(found.rank), 4), float(found.top_share)
    (0.5, 2.0, 0.5)
    """
    wide = covariances.double()
    is_number = wide.isfinite().flatten(-2).all(dim=-1)
    values = torch.linalg.eigvalsh(wide.where(is_number[..., None, None], 0)).flip(-1)  # which stops at NaN
    rounding = values.shape[-1] * torch.finfo(torch.float64).eps * values[..., :1]
    varied = values.where(values > rounding, 0)
    return Representation(varied / varied.sum(dim=-1, keepdim=True))  # 0/0 is NaN: nothing varies


def _columns(question: Question) -> Columns:
    return _columns_of(representation(covariance(question.subject, question.site)), "representation")


def _residual_columns(question: Question) -> Columns:
    """Of the residual stream after the last block; of a plain MLP, of its last hidden layer."""
    model = question.stack.architecture
    is_mlp = model.kind == "mlp"
    site = question.stack.hidden_sites[1] if is_mlp else f"blocks.{model.layers - 1}.hook_resid_post"
    return _columns_of(representation(covariance(question.subject, site)), "residual")


def _columns_of(found: Representation, name: str) -> Columns:
    return {f"{name}_entropy": found.entropy, f"{name}_rank": found.rank, f"{name}_top_share": found.top_share}


ENTRIES = {
    "representation": Measure(
        title="Spectral entropy of the hidden representation",
        formula="H̃ = −Σ p_i ln p_i / ln(neurons), p_i the shares of the eigenvalues of the activations' covariance",
        source="Truong et al. 2026 (arXiv:2604.13123), H̃(t); at the site where FSD is read, over all rows",
        cost="one forward pass through block 0 on all rows, and the eigenvalues of a matrix of neurons × neurons",
        null="untrained networks of the same spec: their activations are correlated, too",
        undefined="activations are not numbers or do not vary, or there is a single neuron (entropy)",
        columns={
            "representation_entropy": "H̃, in [0, 1]; the source reports a fall below 0.61 before grokking",
            "representation_rank": "exp of the entropy: that many equal directions have it",
            "representation_top_share": "the share of the first principal component",
        },
        compute=_columns,
        needs=frozenset({"activations"}),
    ),
    "residual": Measure(
        title="Spectral entropy of the residual stream",
        formula="H̃ as of `representation`, of the residual stream after the last block at the position of the answer",
        source="Truong et al. 2026 (arXiv:2604.13123), whose abstract does not say which layer H̃(t) is of",
        cost="one forward pass on all rows, and the eigenvalues of a matrix of width × width",
        null="untrained networks of the same spec: their activations are correlated, too",
        undefined="activations are not numbers or do not vary, or there is a single dimension (entropy)",
        columns={
            "residual_entropy": "H̃, in [0, 1]; the source reports a fall below 0.61 before grokking",
            "residual_rank": "exp of the entropy: that many equal directions have it",
            "residual_top_share": "the share of the first principal component",
        },
        compute=_residual_columns,
        needs=frozenset({"activations", "weights"}),
    ),
}
