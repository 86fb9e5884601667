"""Initial weights: each run's own, whatever its neighbours, device or padding."""

from math import prod, sqrt

import torch
from torch import Tensor

from grokscope.model.layout import layout_of
from grokscope.randomness import normal, uniform
from grokscope.shapes import Float, Int
from grokscope.specs import Architecture, Initialization

__all__ = ["initial_weights"]


def initial_weights(
    architecture: Architecture,
    initialization: Initialization,
    symbols: int,
    size: int,
    seeds: Int[Tensor, " runs"],
) -> Float[Tensor, "runs parameters"]:
    """Flat buffers [runs, parameters] in float64, drawn from each run's seed alone.

    `pytorch`: Embedding N(0, std²); Linear U(±1/√fan_in), biases too; attention's packed in-projection Xavier,
    U(±√(6/(fan_in + fan_out))), its bias and the out-projection's 0; LayerNorm 1 and 0. `normal`: every matrix
    N(0, 1/width), biases 0. Padded rows and columns are exactly 0; draws do not depend on them.
    """
    layout = layout_of(architecture, size)
    flat = torch.zeros(len(seeds), layout.size, dtype=torch.float64, device=seeds.device)
    for number, (name, view) in enumerate(layout.views(flat).items()):
        shape = _real_shape(name, tuple(view.shape[1:]), symbols)
        epoch = torch.full_like(seeds, number)
        window = tuple(slice(0, extent) for extent in shape)
        if name.endswith(".w"):
            view[:] = 1
        elif "embed.W_" in name and not name.startswith("unembed"):
            draws = normal(seeds, "initialization", epoch, prod(shape)) * initialization.embedding_std
            view[(slice(None), *window)] = draws.view(-1, *shape)
        elif "_" in name.rpartition(".")[2]:
            kind = name.rpartition(".")[2]
            if initialization.scheme == "normal":
                if kind.startswith("W_"):
                    draws = normal(seeds, "initialization", epoch, prod(shape)) / sqrt(architecture.width)
                    view[(slice(None), *window)] = draws.view(-1, *shape)
            elif bound := _bound(name, architecture):
                draws = (2 * uniform(seeds, "initialization", epoch, prod(shape)) - 1) * bound
                view[(slice(None), *window)] = draws.view(-1, *shape)
    return flat


def _real_shape(name: str, shape: tuple[int, ...], symbols: int) -> tuple[int, ...]:
    """The part of a parameter that is not padding."""
    if name == "embed.W_E":
        return (symbols + 1, shape[1])
    return (*shape[:-1], symbols) if name.startswith("unembed") else shape


def _bound(name: str, architecture: Architecture) -> float:
    """The half-width of PyTorch's uniform draw; 0 for what starts at zero."""
    if name.endswith("attn.W_QKV"):
        return sqrt(6 / (4 * architecture.width))
    if name.endswith(("attn.b_QKV", "attn.b_O")):
        return 0.0
    fan_in = architecture.mlp_width if name.endswith("_out") else architecture.width
    return 1 / sqrt(fan_in)
