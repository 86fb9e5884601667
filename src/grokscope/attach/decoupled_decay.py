"""Decoupled weight decay for any optimiser: w ← (1 − ηλ) w before its step, with its own decay switched off."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.optim import Optimizer

from grokscope.steering import Muon

__all__ = ["step_decoupled"]

Group = dict[str, Any]
# Whose own decay is w ← (1 − ηλ) w, fused with their update; a class derived from one may do anything.
DECOUPLED = {torch.optim.AdamW, Muon, getattr(torch.optim, "Muon", Muon)}


def step_decoupled(optimizer: Optimizer) -> None:
    """A step after which every parameter with a gradient has decayed by 1 − ηλ, λ the `weight_decay` of its group.

    AdamW decays so by itself. Adam adds λw to the gradient, and SGD with momentum to what it accumulates: there decay
    would grow with the moments and not be 1 − ηλ a step.

    >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
    >>> weight.grad = torch.tensor([0.0])
    >>> step_decoupled(torch.optim.Adam([weight], lr=0.1, weight_decay=0.5))
    >>> weight.data
    tensor([0.9500])
    """
    coupled = [
        group for group in optimizer.param_groups if group.get("weight_decay") and not _decouples(optimizer, group)
    ]
    with torch.no_grad():
        for group in coupled:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
    with _without_decay(coupled):
        optimizer.step()


def _decouples(optimizer: Optimizer, group: Group) -> bool:
    return type(optimizer) in DECOUPLED or bool(group.get("decoupled_weight_decay"))


@contextmanager
def _without_decay(groups: list[Group]) -> Iterator[None]:
    """Without decay while this lasts."""
    decays = [group["weight_decay"] for group in groups]
    for group in groups:
        group["weight_decay"] = 0.0
    try:
        yield
    finally:
        for group, decay in zip(groups, decays, strict=True):
            group["weight_decay"] = decay
