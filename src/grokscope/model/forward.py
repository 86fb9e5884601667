"""One forward pass of any number of runs, over stacked parameters."""

import torch
from torch import Tensor

from grokscope.model.layout import Weights
from grokscope.model.mlp import MlpPass
from grokscope.model.stacked import Dropout, Edit, Taps
from grokscope.model.transformer import TransformerPass
from grokscope.shapes import Float, Int
from grokscope.specs import Architecture

__all__ = ["Dropout", "Edit", "Inputs", "Taps", "forward", "forward_with_hidden", "last_hidden"]

Inputs = Int[Tensor, "runs length inputs"] | Float[Tensor, "runs inputs features"]


def forward(
    weights: Weights,
    architecture: Architecture,
    inputs: Inputs,
    *,
    classes: Int[Tensor, " runs"],
    compute: torch.dtype | None = None,
    taps: Taps | None = None,
    dropout: Dropout | None = None,
    has_separator: bool = False,
) -> Float[Tensor, "runs inputs size"]:
    """Logits, or real outputs, of tokens at the read position or of vectors; padded classes are −∞.

    With `compute` = bfloat16, matrix products and what they read are bfloat16, everything else stays as stored.
    With `taps`, every position of every block is computed, so that any site can be read or edited. Tokens that are a
    pair and a separator shared by all inputs of a run allow a short cut, taken where `has_separator` says so.

    >>> from grokscope.specs import Initialization
    >>> from grokscope.model import Sizes, initial_weights, layout_of
    >>> small, sizes = Architecture(layers=1, width=8, heads=1, mlp_width=16), Sizes(vocabulary=6, classes=5)
    >>> flat = initial_weights(small, Initialization(), sizes, sizes, seeds=torch.tensor([0, 1]))
    >>> weights = layout_of(small, sizes).views(flat)
    >>> tokens = torch.tensor([[0, 1, 2], [3, 4, 0], [5, 5, 5]]).expand(2, 3, 3)  # a, b and =, of three pairs
    >>> forward(weights, small, tokens, classes=torch.tensor([5, 5])).shape
    torch.Size([2, 3, 5])
    """
    model = _pass_of(weights, architecture, has_separator, compute, taps, dropout)
    if taps is not None:
        model.check_sites(taps)
    return model.logits(inputs, classes)


def forward_with_hidden(
    weights: Weights,
    architecture: Architecture,
    inputs: Inputs,
    classes: Int[Tensor, " runs"],
    has_separator: bool = False,
) -> tuple[Float[Tensor, "runs inputs size"], Float[Tensor, "runs inputs neurons"]]:
    """`forward` and `last_hidden` of block 0 in one pass.

    >>> from grokscope.specs import Initialization
    >>> from grokscope.model import Sizes, initial_weights, layout_of
    >>> small, sizes = Architecture(layers=1, width=8, heads=1, mlp_width=16), Sizes(vocabulary=6, classes=5)
    >>> flat = initial_weights(small, Initialization(), sizes, sizes, seeds=torch.tensor([0, 1]))
    >>> weights = layout_of(small, sizes).views(flat)
    >>> tokens = torch.tensor([[0, 1, 2], [3, 4, 0], [5, 5, 5]]).expand(2, 3, 3)  # a, b and =, of three pairs
    >>> [one.shape for one in forward_with_hidden(weights, small, tokens, torch.tensor([5, 5]))]
    [torch.Size([2, 3, 5]), torch.Size([2, 3, 16])]
    """
    model = _pass_of(weights, architecture, has_separator)
    logits = model.logits(inputs, classes)
    assert model.first_hidden is not None
    return logits, model.first_hidden


def last_hidden(
    weights: Weights, architecture: Architecture, inputs: Inputs, block: int = 0, has_separator: bool = False
) -> Float[Tensor, "runs inputs neurons"]:
    """Activated neurons of a block or layer at the read position: what FSD reads, and nothing that it does not need.

    For a transformer without MLPs, the block's attention output (paper: Table 8's caption); for a linear model, its
    outputs.

    >>> from grokscope.specs import Initialization
    >>> from grokscope.model import Sizes, initial_weights, layout_of
    >>> small, sizes = Architecture(layers=1, width=8, heads=1, mlp_width=16), Sizes(vocabulary=6, classes=5)
    >>> flat = initial_weights(small, Initialization(), sizes, sizes, seeds=torch.tensor([0, 1]))
    >>> weights = layout_of(small, sizes).views(flat)
    >>> tokens = torch.tensor([[0, 1, 2], [3, 4, 0], [5, 5, 5]]).expand(2, 3, 3)  # a, b and =, of three pairs
    >>> last_hidden(weights, small, tokens).shape
    torch.Size([2, 3, 16])
    """
    return _pass_of(weights, architecture, has_separator).last_hidden(inputs, block)


def _pass_of(
    weights: Weights,
    architecture: Architecture,
    has_separator: bool,
    compute: torch.dtype | None = None,
    taps: Taps | None = None,
    dropout: Dropout | None = None,
) -> MlpPass | TransformerPass:
    if architecture.kind == "mlp":
        return MlpPass(weights, architecture, compute, taps, dropout)
    return TransformerPass(weights, architecture, compute, taps, dropout, has_separator=has_separator)
