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

    >>> from grokscope.specs import Architecture, Initialization
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> weights = initial_weights(small, Initialization(), symbols=5, size=8, seeds=torch.tensor([0, 1, 0]))
    >>> bool((weights[0] == weights[2]).all()), bool((weights[0] == weights[1]).all())
    (True, False)
    """
    layout = layout_of(architecture, size)
    flat = torch.zeros(len(seeds), layout.size, dtype=torch.float64, device=seeds.device)
    for number, (name, padded) in enumerate(layout.views(flat).items()):
        view = padded[(slice(None), *layout.real(name, symbols))]
        kind, bound = name.rpartition(".")[2], _bound(name, architecture)
        epoch, count = torch.full_like(seeds, number), prod(view.shape[1:])
        if kind == "w":
            view[:] = 1
        elif kind in ("W_E", "W_pos"):
            view[:] = normal(seeds, "initialization", epoch, count).view_as(view) * initialization.embedding_std
        elif initialization.scheme == "normal" and kind.startswith("W_"):
            view[:] = normal(seeds, "initialization", epoch, count).view_as(view) / sqrt(architecture.width)
        elif initialization.scheme == "pytorch" and kind != "b" and bound > 0:
            view[:] = (2 * uniform(seeds, "initialization", epoch, count).view_as(view) - 1) * bound
    return flat


def _bound(name: str, architecture: Architecture) -> float:
    """The half-width of PyTorch's uniform draw; 0 for what starts at zero."""
    if name.endswith("attn.W_QKV"):
        return sqrt(6 / (4 * architecture.width))
    if name.endswith(("attn.b_QKV", "attn.b_O")):
        return 0.0
    fan_in = architecture.mlp_width if name.endswith("_out") else architecture.width
    return 1 / sqrt(fan_in)
