"""How each pair is scored by its logits: the only definition of loss and accuracy."""

import torch
from torch import Tensor

from grokscope.shapes import Float, Int

__all__ = ["pair_losses", "pair_scores"]


def pair_losses(
    logits: Float[Tensor, "*runs inputs classes"], labels: Int[Tensor, "*runs inputs"]
) -> Float[Tensor, "*runs inputs"]:
    """Cross-entropy of each pair in nats, ln Σ_c exp(l_c) − l_label.

    >>> pair_losses(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))  # ln 2
    tensor([0.6931])
    """
    # A mask instead of a gather, whose gradient would be a scatter.
    is_label = torch.arange(logits.shape[-1], device=logits.device) == labels[..., None]
    return logits.logsumexp(dim=-1) - torch.where(is_label, logits, 0).sum(dim=-1)


def pair_scores(
    logits: Float[Tensor, "*runs inputs classes"], labels: Int[Tensor, "*runs inputs"]
) -> tuple[Float[Tensor, "*runs inputs"], Float[Tensor, "*runs inputs"]]:
    """Whether each pair is answered right (1 or 0), and its loss.

    The answer is the class with the largest logit, the first of them where several tie. Logits that are not numbers
    have no largest one: neither right nor wrong, NaN.

    >>> pair_scores(torch.tensor([[1.0, 1.0], [1.0, torch.nan]]), torch.tensor([0, 0]))[0]
    tensor([1., nan])
    """
    losses = pair_losses(logits, labels)
    right = (logits.argmax(dim=-1) == labels).to(losses.dtype)
    return torch.where(losses.isnan(), torch.nan, right), losses
