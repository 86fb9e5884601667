"""Sites over all inputs → A[s, j], the mean activation of neuron j over the pairs with answer s."""

import torch
from torch import Tensor

from grokscope.shapes import Float, Int

__all__ = ["answer_sums"]


def answer_sums(
    activation: Float[Tensor, "runs inputs neurons"], answers: Int[Tensor, "runs inputs"], size: int
) -> Float[Tensor, "runs answers neurons"]:
    """Σ of each neuron over the pairs with each answer; Eq. 2 divides it by their number.

    Pairs with a negative answer are left out (padding).
    """
    if activation.is_cuda:  # one product with 0 and 1: no atomics, always the same order
        chosen = torch.arange(size, device=answers.device)[:, None] == answers[:, None]
        return torch.bmm(chosen.to(activation.dtype), activation)
    runs, _, neurons = activation.shape
    # One spare row for what is left out.
    place = torch.where(answers >= 0, answers, size) + torch.arange(runs)[:, None] * (size + 1)
    sums = activation.new_zeros(runs * (size + 1), neurons)
    sums.index_add_(0, place.flatten(), activation.reshape(-1, neurons))
    return sums.view(runs, size + 1, neurons)[:, :size]
