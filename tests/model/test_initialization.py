import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_runs import ARCHITECTURES, SMALL
from scipy import stats
from torch import Tensor, nn

from grokscope.model import Sizes, initial_weights, layout_of
from grokscope.specs import Architecture, Initialization

PAPER = Architecture(layers=1)


def drawn(
    architecture: Architecture,
    symbols: int = 97,
    size: int = 136,
    seeds: tuple[int, ...] = (0,),
    initialization: Initialization | None = None,
) -> dict[str, Tensor]:
    sizes, padded = Sizes(symbols + 1, symbols), Sizes(size, size)
    flat = initial_weights(architecture, initialization or Initialization(), sizes, padded, torch.tensor(seeds))
    return layout_of(architecture, padded).views(flat)


def pytorchs_own() -> dict[str, Tensor]:
    """What PyTorch's layers of the paper's sizes start with."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        attention, inner, outer = nn.MultiheadAttention(128, 4), nn.Linear(128, 512), nn.Linear(512, 128)
        embed, unembed = nn.Embedding(98, 128), nn.Linear(128, 97)
    return {
        "embed.W_E": embed.weight,
        "blocks.0.attn.W_QKV": attention.in_proj_weight,
        "blocks.0.attn.b_QKV": attention.in_proj_bias,
        "blocks.0.attn.W_O": attention.out_proj.weight,
        "blocks.0.attn.b_O": attention.out_proj.bias,
        "blocks.0.mlp.W_in": inner.weight,
        "blocks.0.mlp.b_in": inner.bias,
        "blocks.0.mlp.W_out": outer.weight,
        "blocks.0.mlp.b_out": outer.bias,
        "unembed.W_U": unembed.weight,
        "unembed.b_U": unembed.bias,
    }


def test_the_default_is_pytorchs() -> None:
    found = drawn(PAPER)
    for name, theirs in pytorchs_own().items():
        ours = found[name][0]
        ours = ours[..., :97] if name.startswith("unembed") else ours[:98] if name == "embed.W_E" else ours
        assert ours.numel() == theirs.numel()
        if not theirs.any():
            assert not ours.any(), name
            continue
        ours, theirs = ours.flatten().numpy(), theirs.detach().flatten().double().numpy()
        assert stats.ks_2samp(ours, theirs).pvalue > 1e-3, name
        if name.startswith("blocks"):  # uniform: the ends agree
            assert abs(ours).max() == pytest.approx(abs(theirs).max(), rel=0.1 if "b_" in name else 0.01)
    for name, value in found.items():
        if name.endswith(".w"):
            assert (value == 1).all()
        if name.endswith(".b"):
            assert not value.any()
    assert stats.kstest(found["pos_embed.W_pos"].flatten().numpy(), "norm").pvalue > 1e-3


def test_the_normal_scheme_is_normal() -> None:
    found = drawn(ARCHITECTURES["nanda"], initialization=Initialization(scheme="normal", embedding_std=0.25))
    for name, value in found.items():
        scale = 0.25 if name in ("embed.W_E", "pos_embed.W_pos") else 1 / math.sqrt(ARCHITECTURES["nanda"].width)
        numbers = value[value != 0].numpy() / scale
        assert stats.kstest(numbers, "norm").pvalue > 1e-3, name
    biased = drawn(SMALL, initialization=Initialization(scheme="normal"))
    assert not any(value.any() for name, value in biased.items() if ".b_" in name)
    assert all((value == 1).all() for name, value in biased.items() if name.endswith(".w"))


def test_the_embedding_scale_moves_embeddings_alone() -> None:
    one, small = drawn(SMALL), drawn(SMALL, initialization=Initialization(embedding_std=0.02))
    for name in one:
        expected = one[name] * 0.02 if name in ("embed.W_E", "pos_embed.W_pos") else one[name]
        assert torch.allclose(small[name], expected, rtol=1e-14, atol=0), name


@given(st.integers(1, 130), st.integers(0, 2**63 - 1))
def test_padding_is_zero_and_changes_no_draw(symbols: int, seed: int) -> None:
    tight, padded = drawn(SMALL, symbols, symbols + 1, (seed,)), drawn(SMALL, symbols, 136, (seed,))
    for name, value in padded.items():
        if name == "embed.W_E":
            assert not value[:, symbols + 1 :].any()
            value = value[:, : symbols + 1]
        if name.startswith("unembed"):
            assert not value[..., symbols:].any()
            assert not tight[name][..., symbols:].any()
            tight[name], value = tight[name][..., :symbols], value[..., :symbols]
        assert torch.equal(value, tight[name]), name


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=5), st.integers(5, 130))
def test_a_runs_weights_do_not_depend_on_its_neighbours(seeds: list[int], symbols: int) -> None:
    together = drawn(SMALL, symbols, seeds=tuple(seeds))
    for slot, seed in enumerate(seeds):
        for name, value in drawn(SMALL, symbols, seeds=(seed,)).items():
            assert torch.equal(together[name][slot], value[0]), name


def test_no_two_parameters_share_their_draws() -> None:
    found = drawn(ARCHITECTURES["three_layers"], seeds=(0, 1))
    heads = [value[run].flatten()[:16] for value in found.values() for run in (0, 1)]
    scaled = [head / head.abs().max() for head in heads if head.unique().numel() > 1]
    assert len(scaled) > 20
    assert not any(torch.allclose(one, other) for i, one in enumerate(scaled) for other in scaled[:i])
