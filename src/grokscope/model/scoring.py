"""How each row is scored by a model's outputs: the only definition of loss and success."""

from typing import Literal

import torch
from torch import Tensor

from grokscope.errors import InputError
from grokscope.shapes import Float, Int

__all__ = ["Loss", "row_losses", "row_scores", "stable_weights"]

Loss = Literal["cross_entropy", "mse", "stablemax"]
Labels = Int[Tensor, "*runs inputs"] | Float[Tensor, "*runs inputs outputs"]


def row_losses(
    outputs: Float[Tensor, "*runs inputs outputs"],
    labels: Labels,
    loss: Loss = "cross_entropy",
    classes: Int[Tensor, "*runs"] | None = None,
) -> Float[Tensor, "*runs inputs"]:
    """Loss of each row: cross-entropy in nats, ln Σ_c exp(l_c) − l_label, or the mean over outputs of (y_c − t_c)².

    `stablemax` has StableMax's s(l) in place of exp(l): ln Σ_c s(l_c) − ln s(l_label) (Prieto et al. 2025). Targets t
    are real answers, or for classes the one-hot vector of the label: the mean squared error of Gromov (2023). Where
    outputs are padded, `classes` says how many of each run count; padded logits are −∞.

    >>> row_losses(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))  # ln 2
    tensor([0.6931])
    >>> row_losses(torch.tensor([[0.0, 0.5]]), torch.tensor([1]), "mse")
    tensor([0.1250])
    >>> row_losses(torch.tensor([[0.0, 2.0]]), torch.tensor([1]), "stablemax")  # ln (1 + 3) / 3
    tensor([0.2877])
    """
    if labels.is_floating_point():
        return _squared_losses(outputs, labels, loss, classes)
    # A mask instead of a gather, whose gradient would be a scatter.
    is_label = torch.arange(outputs.shape[-1], device=outputs.device) == labels[..., None]
    if loss == "mse":
        return _squared_losses(outputs, is_label.to(outputs.dtype), loss, classes)
    if loss == "stablemax":
        weights = stable_weights(outputs)
        return weights.sum(dim=-1).log() - torch.where(is_label, weights, 0).sum(dim=-1).log()
    return outputs.logsumexp(dim=-1) - torch.where(is_label, outputs, 0).sum(dim=-1)


def stable_weights(logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """StableMax's s(x) = x + 1 for x ≥ 0, 1 / (1 − x) for x < 0 (Prieto et al. 2025); of a padded logit, −∞, it is 0.

    It grows linearly, so that in a sum a large one does not absorb the others by rounding.

    >>> stable_weights(torch.tensor([-torch.inf, -1.0, 0.0, 2.0]))
    tensor([0.0000, 0.5000, 1.0000, 3.0000])
    """
    is_negative = logits < 0
    below = 1 / (1 - torch.where(is_negative, logits, 0))  # not of 1, where it would be infinite, with its gradient
    return torch.where(is_negative, below, logits + 1)


def _squared_losses(outputs: Tensor, targets: Tensor, loss: Loss, classes: Tensor | None) -> Tensor:
    if loss != "mse":
        raise InputError(f"real answers have a squared error and no probabilities: loss must be mse, got {loss}")
    if classes is None:
        return (outputs[..., : targets.shape[-1]] - targets).square().mean(dim=-1)
    count = classes[..., None]
    is_output = torch.arange(targets.shape[-1], device=outputs.device) < count[..., None]
    away = torch.where(is_output, outputs[..., : targets.shape[-1]] - targets, 0)  # before it is squared: no −∞ is left
    return away.square().sum(dim=-1) / count


def row_scores(
    outputs: Float[Tensor, "*runs inputs outputs"],
    labels: Labels,
    loss: Loss = "cross_entropy",
    classes: Int[Tensor, "*runs"] | None = None,
    tolerance: Float[Tensor, "*runs"] | float | None = None,
) -> tuple[Float[Tensor, "*runs inputs"], Float[Tensor, "*runs inputs"]]:
    """Whether each row is answered right (1 or 0), and its loss.

    The answer is the class with the largest output, the first of them where several tie; a real answer is right where
    its squared error, averaged over outputs, is at most `tolerance`. Outputs that are not numbers are neither right
    nor wrong, NaN.

    >>> row_scores(torch.tensor([[1.0, 1.0], [1.0, torch.nan]]), torch.tensor([0, 0]))[0]
    tensor([1., nan])
    >>> row_scores(torch.tensor([[1.0], [2.0]]), torch.tensor([[1.1], [1.0]]), "mse", tolerance=0.1)[0]
    tensor([1., 0.])
    """
    losses = row_losses(outputs, labels, loss, classes)
    if labels.is_floating_point():
        if tolerance is None:
            raise InputError("real answers need a tolerance: the squared error up to which an answer is right")
        limit = tolerance[..., None] if isinstance(tolerance, Tensor) else tolerance
        right = (losses <= limit).to(losses.dtype)
    else:
        right = (outputs.argmax(dim=-1) == labels).to(losses.dtype)
    return torch.where(losses.isnan(), torch.nan, right), losses
