"""Initial weights: each run's own, whatever its neighbours, device or padding."""

from math import prod, sqrt

import torch
from torch import Tensor

from grokscope.model.layout import Layout, Sizes, layout_of
from grokscope.randomness import normal, uniform
from grokscope.shapes import Float, Int
from grokscope.specs import Architecture, Initialization

__all__ = ["initial_weights"]


def initial_weights(
    architecture: Architecture,
    initialization: Initialization,
    sizes: Sizes,
    padded: Sizes,
    seeds: Int[Tensor, " runs"],
) -> Float[Tensor, "runs parameters"]:
    """Flat buffers [runs, parameters] in float64, drawn from each run's seed alone.

    `pytorch`: Embedding N(0, std²); Linear U(±1/√fan_in), biases too; attention's packed in-projection Xavier,
    U(±√(6/(fan_in + fan_out))), its bias and the out-projection's 0; LayerNorm 1 and 0. `normal`: every matrix
    N(0, 1/width), biases 0. A plain MLP's maps are Linear, `normal` with N(0, 1/fan_in); of one-hot vectors fan_in is
    length × vocabulary. Everything drawn is multiplied by `scale`. Padded rows and columns are exactly 0; draws do not
    depend on them.

    >>> from grokscope.specs import Architecture, Initialization
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> sizes, padded, seeds = Sizes(6, 5), Sizes(8, 8), torch.tensor([0, 1, 0])
    >>> weights = initial_weights(small, Initialization(), sizes, padded, seeds)
    >>> bool((weights[0] == weights[2]).all()), bool((weights[0] == weights[1]).all())
    (True, False)
    """
    layout = layout_of(architecture, padded)
    flat = torch.zeros(len(seeds), layout.size, dtype=torch.float64, device=seeds.device)
    for number, (name, view) in enumerate(layout.views(flat).items()):
        own = view[(slice(None), *layout.real(name, sizes))]
        kind, fan_in = name.rpartition(".")[2], _fan_in(name, architecture, layout, sizes)
        epoch, count = torch.full_like(seeds, number), prod(own.shape[1:])
        if kind == "w":
            own[:] = 1
        elif kind in ("W_E", "W_pos"):
            own[:] = normal(seeds, "initialization", epoch, count).view_as(own) * initialization.embedding_std
        elif initialization.scheme == "normal" and kind.startswith("W_"):
            variance = fan_in if architecture.kind == "mlp" else architecture.width
            own[:] = normal(seeds, "initialization", epoch, count).view_as(own) / sqrt(variance)
        elif initialization.scheme == "pytorch" and kind != "b":
            bound = _bound(name, architecture, fan_in)
            if bound > 0:
                own[:] = (2 * uniform(seeds, "initialization", epoch, count).view_as(own) - 1) * bound
        if kind not in ("w", "b"):
            own *= initialization.scale
    return flat


def _fan_in(name: str, architecture: Architecture, layout: Layout, sizes: Sizes) -> int:
    """Terms of each sum that a linear map, or the map of a bias, adds up; padding left out."""
    if architecture.kind == "transformer":
        return architecture.mlp_width if name.endswith("_out") else architecture.width
    shape = layout.shapes[name.replace(".b_", ".W_")]
    return sizes.length * sizes.vocabulary if len(shape) == 3 else shape[0]


def _bound(name: str, architecture: Architecture, fan_in: int) -> float:
    """The half-width of PyTorch's uniform draw; 0 for what starts at zero."""
    if name.endswith("attn.W_QKV"):
        return sqrt(6 / (4 * architecture.width))
    if name.endswith(("attn.b_QKV", "attn.b_O")):
        return 0.0
    return 1 / sqrt(fan_in)
