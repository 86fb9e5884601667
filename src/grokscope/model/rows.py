"""Gathering rows and adding biases over a stack, with gradients that are fast and deterministic on every device."""

from typing import Any

import torch
from torch import Tensor

from grokscope.shapes import Float, Int

__all__ = ["gathered_rows", "with_bias"]


class _GatheredRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.rows = table.shape[1]
        return table.gather(1, index[..., None].expand(-1, -1, table.shape[-1]))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        (gradient,) = gradients
        if gradient.device.type != "cpu":
            # Scattering with atomics is slow and adds in any order; one matrix product with 0 and 1 is neither.
            rows = torch.arange(ctx.rows, device=index.device)
            chosen = (rows[:, None] == index[:, None]).to(gradient.dtype)
            return torch.bmm(chosen, gradient), None
        runs, _, width = gradient.shape
        place = (index + torch.arange(runs)[:, None] * ctx.rows).flatten()
        total = torch.zeros(runs * ctx.rows, width, dtype=gradient.dtype)
        return total.index_add(0, place, gradient.reshape(-1, width)).view(runs, ctx.rows, width), None


def gathered_rows(
    table: Float[Tensor, "runs rows width"], index: Int[Tensor, "runs inputs"]
) -> Float[Tensor, "runs inputs width"]:
    """table[r, index[r, i]] for every run r and input i."""
    gathered: Tensor = _GatheredRows.apply(table, index)  # type: ignore[no-untyped-call]
    return gathered


class _WithBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor) -> Tensor:
        return x + bias[:, None]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (gradient,) = gradients
        if gradient.device.type != "cpu":
            # A product with ones: in bfloat16 the sum, fused with GELU's gradient, doubles that kernel's time.
            ones = gradient.new_ones(len(gradient), 1, gradient.shape[1])
            return gradient, torch.bmm(ones, gradient)[:, 0]
        return gradient, gradient.sum(dim=1)


def with_bias(
    x: Float[Tensor, "runs rows width"], bias: Float[Tensor, "runs width"]
) -> Float[Tensor, "runs rows width"]:
    """Each run's own bias, added to every row."""
    added: Tensor = _WithBias.apply(x, bias)  # type: ignore[no-untyped-call]
    return added
