"""From a pair of symbols to what a model takes: ready encoders, and how any encoder's output is passed on."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from grokscope.errors import did_you_mean, require, shown
from grokscope.shapes import Float, Int

__all__ = ["ENCODERS", "Encode", "a_b_sep", "a_op_b_equals", "call_model", "encoder", "one_hot"]

Encode = Callable[[Tensor, Tensor], Any]
"""From a and b, each [inputs], to a model's input: a tensor, a tuple of arguments, or a dict of named ones."""


def a_b_sep(a: Int[Tensor, " inputs"], b: Int[Tensor, " inputs"], symbols: int) -> Int[Tensor, "inputs 3"]:
    """[a, b, sep] with sep = n: the paper's tokens, and Nanda et al.'s [a, b, =].

    >>> a_b_sep(torch.tensor([1]), torch.tensor([2]), 97)
    tensor([[ 1,  2, 97]])
    """
    return torch.stack([a, b, torch.full_like(a, symbols)], dim=1)


def a_op_b_equals(a: Int[Tensor, " inputs"], b: Int[Tensor, " inputs"], symbols: int) -> Int[Tensor, "inputs 4"]:
    """[a, op, b, =] with op = n and = n + 1: the tokens of Power et al.

    >>> a_op_b_equals(torch.tensor([1]), torch.tensor([2]), 97)
    tensor([[ 1, 97,  2, 98]])
    """
    return torch.stack([a, torch.full_like(a, symbols), b, torch.full_like(a, symbols + 1)], dim=1)


def one_hot(a: Int[Tensor, " inputs"], b: Int[Tensor, " inputs"], symbols: int) -> Float[Tensor, "inputs twice"]:
    """The one-hot vectors of a and b, one after the other, 2n numbers: the input of an MLP.

    >>> one_hot(torch.tensor([1]), torch.tensor([0]), 2)
    tensor([[0., 1., 1., 0.]])
    """
    both = [torch.nn.functional.one_hot(x, symbols) for x in (a, b)]
    return torch.cat(both, dim=1).to(torch.get_default_dtype())


ENCODERS: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "a_b_sep": a_b_sep,
    "a_op_b_equals": a_op_b_equals,
    "one_hot": one_hot,
}


def encoder(encode: str | Encode, symbols: int) -> Encode:
    """The ready encoder with this name, or the one that was given."""
    if callable(encode):
        return encode
    require(
        encode in ENCODERS,
        f"encode must be a function of (a, b) or one of {', '.join(ENCODERS)}, got {shown(encode)}"
        f"{did_you_mean(encode, ENCODERS) if isinstance(encode, str) else ''}",
    )
    return lambda a, b: ENCODERS[encode](a, b, symbols)


def call_model(model: Callable[..., Any], inputs: Any) -> Any:
    """The model's output: a dict is passed by name, a tuple as several arguments, anything else as one."""
    if isinstance(inputs, Mapping):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, tuple) else model(inputs)
