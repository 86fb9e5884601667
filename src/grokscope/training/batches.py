"""Which pairs each step trains on: a pure function of (data-order seed, step), made on the device."""

import torch
from torch import Tensor

from grokscope.randomness import bits, permutation
from grokscope.shapes import Int

__all__ = ["batches"]


def batches(
    seeds: Int[Tensor, " runs"], first_step: Int[Tensor, " runs"], steps: int, count: int, size: int, replacement: bool
) -> tuple[Int[Tensor, "steps runs size"], Int[Tensor, "steps runs"]]:
    """Rows of the training set for each step, and how many of them count; runs with `count` training pairs each.

    Epoch e is the permutation drawn from (seed, e), cut into batches whose last one is partial. With replacement,
    step t draws `size` rows from (seed, t).
    """
    step = first_step[:, None] + torch.arange(steps, device=seeds.device)
    if replacement:
        words = bits(seeds[:, None].expand_as(step), "order", step, size)
        rows = ((words >> 1) & (2**62 - 1)) % count  # the bias of the remainder is below count/2⁶²
        return rows.transpose(0, 1), torch.full_like(step, size).T
    per_epoch = -(-count // size)
    first_epoch = first_step // per_epoch
    epochs = first_epoch[:, None] + torch.arange(steps // per_epoch + 2, device=seeds.device)
    orders = permutation(seeds[:, None].expand_as(epochs), "order", epochs, count)
    start = step % per_epoch * size
    places = start[..., None] + torch.arange(size, device=seeds.device)
    flat = (step // per_epoch - first_epoch[:, None])[..., None] * count + places.clamp(max=count - 1)
    rows = orders.flatten(1).gather(1, flat.flatten(1)).view_as(places)
    return rows.transpose(0, 1), (count - start).clamp(max=size).T
