"""Frobenius norms of a run's parameters: all together, each, and block by block."""

from dataclasses import dataclass

import torch
from torch import Tensor

from grokscope.activations import RunStack
from grokscope.measures.question import NOT_NUMBERS, Columns, Measure, Question
from grokscope.model import block_of, layout_of, padded_sizes, sizes_of
from grokscope.shapes import Float

__all__ = ["ENTRIES", "Norms", "norms"]


@dataclass(frozen=True)
class Norms:
    """‖·‖_F of each run's parameters, in float64; NaN where any of them is not a number."""

    total: Float[Tensor, " runs"]
    """‖W‖ of all parameters together (the paper's Table 5 and Eq. 3)."""
    by_parameter: dict[str, Float[Tensor, " runs"]]
    """Of each matrix and vector by its name; `blocks.0.mlp.W_in` is the dashed line of the paper's Figure 2."""
    by_block: dict[str, Float[Tensor, " runs"]]
    """Of `embed`, `pos_embed`, every `blocks.i` or `layers.i`, `norms` (all LayerNorms, those of the blocks too) and
    `unembed`."""

    @property
    def shares(self) -> dict[str, Float[Tensor, " runs"]]:
        """Each block's part of ‖W‖²; they add up to 1."""
        return {name: (norm / self.total) ** 2 for name, norm in self.by_block.items()}


def norms(subject: RunStack) -> Norms:
    """Norms of all parameters of every run, padding cut off.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> run = RunSpec()
    >>> drawn = initial_state(Cohort([run])).weights
    >>> found = norms(subject_of([run], drawn))
    >>> list(found.by_block), bool(found.shares["embed"] > 0.5)
    (['embed', 'pos_embed', 'blocks.0', 'blocks.1', 'norms', 'unembed'], True)
    """
    sizes = sizes_of(subject.task)
    layout = layout_of(subject.architecture, padded_sizes(subject.task))
    squares = {
        name: value[(slice(None), *layout.real(name, sizes))].double().square().flatten(1).sum(dim=1)
        for name, value in subject.weights.items()
    }
    blocks = {block_of(name): torch.zeros_like(square) for name, square in squares.items()}
    for name, square in squares.items():
        blocks[block_of(name)] += square
    total = torch.stack(list(squares.values())).sum(dim=0)
    return Norms(
        total.sqrt(),
        {name: square.sqrt() for name, square in squares.items()},
        {name: blocks[name].sqrt() for name in sorted(blocks, key=_place)},
    )


def _place(block: str) -> tuple[int, int]:
    """In the order of the forward pass, the norms before the head."""
    kind, _, number = block.partition(".")
    return ("embed", "pos_embed", "blocks", "layers", "norms", "unembed").index(kind), int(number or 0)


def _columns(question: Question) -> Columns:
    found = norms(question.stack)
    return {"norm": found.total} | {f"norm_{block}": value for block, value in found.by_block.items()}


ENTRIES = {
    "norms": Measure(
        title="Weight norms",
        formula="‖W‖_F = √Σ w², of all parameters together and of each block",
        source="the paper, §5.3 and §6",
        cost="the weights alone",
        null="the norm at initialisation",
        undefined=NOT_NUMBERS,
        columns={"norm": "all parameters", "norm_…": "one block's"},
        compute=_columns,
        needs=frozenset({"weights"}),
    ),
}
