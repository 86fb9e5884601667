from math import prod

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_runs import ARCHITECTURES, SMALL

from grokscope.errors import InputError
from grokscope.model import PlainMlp, ReferenceModule, Sizes, layout_of, padded_size
from grokscope.model.layout import BUCKETS
from grokscope.specs import Architecture


@given(st.integers(1, BUCKETS[-1] - 1))
def test_the_bucket_is_the_least_with_room(symbols: int) -> None:
    size = padded_size(symbols)
    assert size in BUCKETS
    assert symbols + 1 <= size
    assert all(symbols + 1 > smaller for smaller in BUCKETS if smaller < size)


def test_one_bucket_holds_the_paper() -> None:
    assert {padded_size(symbols) for symbols in (53, 97, 101, 113, 120, 131)} == {136}


def test_too_many_symbols_are_rejected() -> None:
    with pytest.raises(InputError, match="at most 1007 symbols, got 1008"):
        padded_size(1008)


@pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
def test_views_cover_the_buffer_once(architecture: Architecture) -> None:
    layout = layout_of(architecture, Sizes(136, 136))
    flat = torch.zeros(2, layout.size)
    for view in layout.views(flat).values():
        view += 1
    assert (flat == 1).all()
    assert layout.size == sum(prod(shape) for shape in layout.shapes.values())


@pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
def test_without_padding_there_are_as_many_numbers_as_in_the_module(architecture: Architecture) -> None:
    layout, sizes = layout_of(architecture, Sizes(136, 136)), Sizes(8, 7)
    views = layout.views(torch.zeros(1, layout.size))
    real = sum(view[0][layout.real(name, sizes)].numel() for name, view in views.items())
    assert real == sum(parameter.numel() for parameter in module_of(architecture, sizes).parameters())


def test_the_papers_model_has_as_many_parameters_as_written_out() -> None:
    d, hidden, p = 128, 512, 97
    block = 2 * 2 * d + (d + 1) * 3 * d + (d + 1) * d + (d + 1) * hidden + (hidden + 1) * d
    written = (p + 1) * d + 3 * d + 2 * block + 2 * d + (d + 1) * p
    assert written == sum(
        parameter.numel() for parameter in ReferenceModule(Architecture(), Sizes(p + 1, p)).parameters()
    )
    assert layout_of(Architecture(), Sizes(p + 1, p + 1)).size == written + (
        d + 1
    )  # a class more, to be as many as tokens


def module_of(architecture: Architecture, sizes: Sizes) -> ReferenceModule | PlainMlp:
    return (PlainMlp if architecture.kind == "mlp" else ReferenceModule)(architecture, sizes)


def test_views_share_memory() -> None:
    layout = layout_of(SMALL, Sizes(136, 136))
    flat = torch.zeros(1, layout.size)
    layout.views(flat)["pos_embed.W_pos"][0, 1, 2] = 5
    assert flat.sum() == 5
