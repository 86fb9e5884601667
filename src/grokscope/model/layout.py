"""Where each parameter lives in a run's flat buffer."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import Any

from torch import Tensor

from grokscope.errors import require
from grokscope.shapes import Float
from grokscope.specs import Architecture

__all__ = ["POSITIONS", "Layout", "Weights", "layout_of", "padded_size"]

POSITIONS = 3  # a, b and the separator
Weights = dict[str, Tensor]
# Vocabulary and classes are padded to one of these, so that tasks of different size share a stack and compile once.
# 136 holds all of the paper's primes and S5; each is a multiple of 8, as matrix units like it.
BUCKETS = (136, 264, 520, 1008)


def padded_size(symbols: int) -> int:
    """The least bucket with room for the symbols and the separator: a function of the task alone.

    >>> padded_size(53), padded_size(131), padded_size(120), padded_size(997)
    (136, 136, 136, 1008)
    """
    require(symbols < BUCKETS[-1], f"a task may have at most {BUCKETS[-1] - 1} symbols", symbols)
    return next(size for size in BUCKETS if symbols < size)


@dataclass(frozen=True)
class Layout:
    """Names, shapes and offsets of all parameters, in the order of the forward pass. Matrices are [in, out]."""

    shapes: dict[str, tuple[int, ...]]
    """Shape of each parameter of one run, by its TransformerLens-like name."""

    @property
    def size(self) -> int:
        """Numbers per run."""
        return sum(prod(shape) for shape in self.shapes.values())

    @property
    def places(self) -> dict[str, int]:
        """Where each parameter begins."""
        ends = accumulate(map(prod, self.shapes.values()))
        return {name: end - prod(shape) for (name, shape), end in zip(self.shapes.items(), ends, strict=True)}

    def views(self, flat: Float[Tensor, "runs size"]) -> Weights:
        """Each parameter as a view [runs, …] into the flat buffer."""
        return {
            name: flat[:, place : place + prod(self.shapes[name])].view(len(flat), *self.shapes[name])
            for name, place in self.places.items()
        }

    def strided_views(self, flat: Float[Tensor, "runs size"]) -> Weights:
        """`views` that keep the distance between runs where there is one run alone: kernels are chosen by it."""
        return {
            name: flat.as_strided(
                (len(flat), *shape), (flat.stride(0), *_strides(shape)), flat.storage_offset() + place
            )
            for (name, shape), place in zip(self.shapes.items(), self.places.values(), strict=True)
        }

    @staticmethod
    def real(name: str, symbols: int) -> tuple[Any, ...]:
        """The part of a parameter that is not padding: rows of tokens, columns of classes."""
        if name == "embed.W_E":
            return (slice(symbols + 1),)
        return (..., slice(symbols)) if name.startswith("unembed") else (...,)


@lru_cache(maxsize=64)
def layout_of(architecture: Architecture, size: int) -> Layout:
    """The parameters of an architecture with vocabulary and classes padded to `size`.

    Paper: Appendix B. `W_QKV` packs query, key and value, as PyTorch's attention does.

    >>> layout_of(Architecture(), 136).size
    432136
    """
    d, hidden = architecture.width, architecture.mlp_width
    shapes: dict[str, tuple[int, ...]] = {"embed.W_E": (size, d), "pos_embed.W_pos": (POSITIONS, d)}

    def norm(name: str) -> None:
        if architecture.layer_norm:
            shapes.update({f"{name}.w": (d,), f"{name}.b": (d,)})

    def linear(name: str, suffix: str, rows: int, columns: int) -> None:
        shapes[f"{name}.W_{suffix}"] = (rows, columns)
        if architecture.biases:
            shapes[f"{name}.b_{suffix}"] = (columns,)

    for i in range(architecture.layers):
        if architecture.attention != "dropped":
            norm(f"blocks.{i}.ln1")
        if architecture.attention == "on":
            linear(f"blocks.{i}.attn", "QKV", d, 3 * d)
            linear(f"blocks.{i}.attn", "O", d, d)
        if architecture.mlp != "dropped":
            norm(f"blocks.{i}.ln2")
        if architecture.mlp == "on":
            linear(f"blocks.{i}.mlp", "in", d, hidden)
            linear(f"blocks.{i}.mlp", "out", hidden, d)
    norm("ln_final")
    linear("unembed", "U", d, size)
    return Layout(shapes)


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of numbers that lie side by side."""
    return tuple(prod(shape[i + 1 :]) for i in range(len(shape)))
