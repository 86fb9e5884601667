"""Where each parameter lives in a run's flat buffer."""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import Any, Literal

from torch import Tensor

from grokscope.errors import InputError, did_you_mean, require, shown
from grokscope.shapes import Float
from grokscope.specs import Architecture
from grokscope.tasks import Task

__all__ = [
    "PAIR_POSITIONS",
    "Layout",
    "Sizes",
    "Weights",
    "block_of",
    "layout_of",
    "matrix_shapes",
    "padded_size",
    "padded_sizes",
    "parameter_group",
    "sizes_of",
]

Group = Literal["embedding", "matrix", "vector", "head"]
PAIR_POSITIONS = 3  # of a pair table: a, b and the separator
Weights = dict[str, Tensor]
# Vocabulary and classes of pair tables are padded to one of these, so that tables of different size share a stack and
# compile once. 136 holds all of the paper's primes and S5; each is a multiple of 8, as matrix units like it.
BUCKETS = (136, 264, 520, 1008)
MULTIPLE = 8  # of other tasks, as matrix units like it


def padded_size(symbols: int) -> int:
    """The least bucket with room for a pair table's symbols and the separator: a function of the task alone.

    >>> padded_size(53), padded_size(131), padded_size(120), padded_size(997)
    (136, 136, 136, 1008)
    """
    require(symbols < BUCKETS[-1], f"a task may have at most {BUCKETS[-1] - 1} symbols", symbols)
    return next(size for size in BUCKETS if symbols < size)


@dataclass(frozen=True)
class Sizes:
    """What a model reads and answers; of a task itself, or padded for a stack."""

    vocabulary: int
    """Tokens; 0 where vectors are read."""
    classes: int
    """Classes, or real outputs."""
    length: int = PAIR_POSITIONS
    """Tokens of one input; 0 where vectors are read."""
    features: int = 0
    """Numbers of one input vector; 0 where tokens are read."""
    has_separator: bool = False
    """Whether the tokens are a, b and a separator that all inputs share: what short cuts of pair tables need."""


def sizes_of(task: Task) -> Sizes:
    """What a model of this task reads and answers.

    >>> from grokscope.tasks import named_task
    >>> sizes_of(named_task("add_mod97"))
    Sizes(vocabulary=98, classes=97, length=3, features=0, has_separator=True)
    """
    is_pair_table = task.pairs is not None
    return Sizes(task.vocabulary, task.classes, task.length, task.features, has_separator=is_pair_table)


def padded_sizes(task: Task) -> Sizes:
    """The same, padded for a stack: of a pair table to one of few sizes, of other tasks to a multiple of 8.

    Real outputs are not padded.

    >>> from grokscope.tasks import named_task
    >>> padded_sizes(named_task("add_mod97")).classes, padded_sizes(named_task("add3_mod23")).classes
    (136, 24)
    """
    own = sizes_of(task)
    if task.pairs is not None:
        size = padded_size(task.pairs.symbols)
        return replace(own, vocabulary=size, classes=size)
    classes = own.classes if task.is_real else _rounded_up(own.classes)
    return replace(own, vocabulary=_rounded_up(own.vocabulary), classes=classes)


def _rounded_up(count: int) -> int:
    return -(-count // MULTIPLE) * MULTIPLE


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

    def part(self, part: str) -> tuple[str, ...]:
        """The parameters of a part; an unknown one is rejected.

        Parts are `all`, `matrices` (embeddings and maps, no biases and no LayerNorms), a block, a branch of one, or a
        parameter.

        >>> layout = layout_of(Architecture(biases=False), Sizes(98, 97))
        >>> layout.part("blocks.0.mlp"), layout.part("unembed")
        (('blocks.0.mlp.W_in', 'blocks.0.mlp.W_out'), ('unembed.W_U',))
        """
        found = [
            name
            for name in self.shapes
            if part in ("all", name, block_of(name))
            or (part == "matrices" and len(self.shapes[name]) > 1)
            or (block_of(name) != "norms" and name.startswith(f"{part}."))
        ]
        if not found:
            known = ("all", "matrices", *dict.fromkeys(map(block_of, self.shapes)), *self.shapes)
            raise InputError(f"this model has no part {shown(part)}{did_you_mean(part, known)}")
        return tuple(found)

    def real(self, name: str, sizes: Sizes) -> tuple[Any, ...]:
        """The part of a parameter that is not padding: rows of tokens, columns of classes."""
        columns = slice(sizes.classes) if name.startswith("unembed") else slice(None)
        if len(self.shapes[name]) == 3:  # a map of one-hot vectors: [positions, tokens, columns]
            return (slice(None), slice(sizes.vocabulary), columns)
        return (slice(sizes.vocabulary),) if name == "embed.W_E" else (..., columns)


def block_of(name: str) -> str:
    """The block of a parameter; all LayerNorms are one.

    >>> [block_of(name) for name in ("blocks.1.attn.W_O", "blocks.1.ln2.w", "ln_final.b", "embed.W_E")]
    ['blocks.1', 'norms', 'norms', 'embed']
    """
    parts = name.split(".")
    if parts[-2].startswith("ln"):
        return "norms"
    return ".".join(parts[:2]) if parts[0] in ("blocks", "layers") else parts[0]


@lru_cache(maxsize=64)
def layout_of(architecture: Architecture, sizes: Sizes) -> Layout:
    """The parameters of an architecture, with vocabulary and classes padded as `sizes` says.

    Paper: Appendix B. `W_QKV` packs query, key and value, as PyTorch's attention does.

    >>> layout_of(Architecture(), Sizes(136, 136)).size
    432136
    >>> layout_of(Architecture(kind="mlp", layers=1, biases=False), Sizes(98, 97)).shapes
    {'layers.0.W_in': (3, 98, 512), 'unembed.W_U': (512, 97)}
    """
    if architecture.kind == "mlp":
        return _layout_of_mlp(architecture, sizes)
    require(sizes.length > 0, "a transformer reads tokens; vectors need an architecture of kind mlp", architecture.kind)
    d, hidden = architecture.width, architecture.mlp_width
    shapes: dict[str, tuple[int, ...]] = {"embed.W_E": (sizes.vocabulary, d), "pos_embed.W_pos": (sizes.length, d)}

    def norm(name: str, is_there: bool = architecture.layer_norm) -> None:
        if is_there:
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
    norm("ln_final", architecture.has_final_norm)
    linear("unembed", "U", d, sizes.classes)
    return Layout(shapes)


def _layout_of_mlp(architecture: Architecture, sizes: Sizes) -> Layout:
    """A map of one-hot vectors is [positions, tokens, columns]: what multiplies them is gathered, not multiplied."""
    shapes: dict[str, tuple[int, ...]] = {}
    columns: tuple[int, ...] = (sizes.features,) if sizes.features else (sizes.length, sizes.vocabulary)
    if architecture.embedded:
        problem = "embeddings are of tokens; an MLP that reads vectors has none, so embedded must be false"
        require(not sizes.features, problem, architecture.embedded)
        shapes["embed.W_E"] = (sizes.vocabulary, architecture.width)
        columns = (sizes.length * architecture.width,)
    for i in range(architecture.layers):
        shapes[f"layers.{i}.W_in"] = (*columns, architecture.mlp_width)
        if architecture.biases:
            shapes[f"layers.{i}.b_in"] = (architecture.mlp_width,)
        if architecture.hidden_norm:
            shapes |= {f"layers.{i}.ln.w": (architecture.mlp_width,), f"layers.{i}.ln.b": (architecture.mlp_width,)}
        columns = (architecture.mlp_width,)
    shapes["unembed.W_U"] = (*columns, sizes.classes)
    if architecture.biases:
        shapes["unembed.b_U"] = (sizes.classes,)
    return Layout(shapes)


def parameter_group(name: str, shape: tuple[int, ...], sizes: Sizes) -> Group:
    """Which kind of parameter one is: embeddings are what reads the inputs, be it tokens, one-hot vectors or vectors.

    >>> sizes, names = Sizes(8, 8), ("embed.W_E", "blocks.0.mlp.W_in", "unembed.W_U")
    >>> shapes = layout_of(Architecture(layers=1), sizes).shapes
    >>> [parameter_group(name, shapes[name], sizes) for name in names]
    ['embedding', 'matrix', 'head']
    """
    if len(shape) == 1:
        return "vector"
    if name.startswith("unembed"):
        return "head"
    reads_inputs = name in ("embed.W_E", "pos_embed.W_pos") or len(shape) == 3
    return "embedding" if reads_inputs or (sizes.features and name == "layers.0.W_in") else "matrix"


def matrix_shapes(architecture: Architecture, sizes: Sizes) -> list[tuple[int, ...]]:
    """The matrices between what reads the inputs and the head, which are what Muon moves.

    >>> [matrix_shapes(Architecture(kind="mlp", layers=layers), Sizes(8, 8)) for layers in (1, 2)]
    [[], [(512, 512)]]
    """
    shapes = layout_of(architecture, sizes).shapes
    return [shape for name, shape in shapes.items() if parameter_group(name, shape, sizes) == "matrix"]


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of numbers that lie side by side."""
    return tuple(prod(shape[i + 1 :]) for i in range(len(shape)))
