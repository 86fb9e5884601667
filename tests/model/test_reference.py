"""The reference module is itself compared with PyTorch's own encoder layers."""

from dataclasses import replace

import pytest
import torch
from plain_runs import ARCHITECTURES, SMALL, TWO_LAYERS, by_name, fresh, in_slot, mixed_runs, reference_in
from torch import nn

from grokscope.model import PlainMlp, ReferenceModule, Sizes, layout_of, module_place
from grokscope.specs import Architecture


def torch_layers(reference: ReferenceModule) -> list[nn.TransformerEncoderLayer]:
    """PyTorch's pre-norm encoder layers with the reference module's weights."""
    a, layers = reference.architecture, []
    for block in reference.blocks:
        layer = nn.TransformerEncoderLayer(
            a.width, a.heads, a.mlp_width, dropout=0.0, activation=a.activation, batch_first=True, norm_first=True
        ).double()
        layer.load_state_dict(
            {
                "self_attn.in_proj_weight": block.attn.qkv.weight,
                "self_attn.in_proj_bias": block.attn.qkv.bias,
                "self_attn.out_proj.weight": block.attn.out.weight,
                "self_attn.out_proj.bias": block.attn.out.bias,
                "linear1.weight": block.mlp.inner.weight,
                "linear1.bias": block.mlp.inner.bias,
                "linear2.weight": block.mlp.outer.weight,
                "linear2.bias": block.mlp.outer.bias,
                "norm1.weight": block.ln1.weight,
                "norm1.bias": block.ln1.bias,
                "norm2.weight": block.ln2.weight,
                "norm2.bias": block.ln2.bias,
            }
        )
        layers.append(layer)
    return layers


@pytest.mark.parametrize(
    "architecture",
    [SMALL, TWO_LAYERS, replace(SMALL, causal=True), replace(SMALL, activation="relu")],
    ids=["one_layer", "two_layers", "causal", "relu"],
)
def test_the_reference_module_equals_pytorchs_encoder(architecture: Architecture) -> None:
    generator = torch.Generator().manual_seed(0)
    reference = ReferenceModule(architecture, Sizes(8, 7)).double()
    for parameter in reference.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / 2
    tokens = torch.tensor([[a, b, 7] for a in range(7) for b in range(7)])
    x = reference.embed.weight[tokens] + reference.pos_embed.weight
    mask = torch.ones(3, 3).triu(1).bool() if architecture.causal else None
    for layer in torch_layers(reference):
        x = layer(x, src_mask=mask)
    final = torch.layer_norm(x[:, -1], (architecture.width,), reference.ln_final.weight, reference.ln_final.bias)
    assert torch.allclose(
        reference(tokens), final @ reference.unembed.weight.T + reference.unembed.bias, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
def test_a_reference_module_holds_exactly_its_runs_weights(architecture: Architecture) -> None:
    state, cohort = fresh(mixed_runs(architecture))
    for slot, task in enumerate(cohort.tasks):
        reference = reference_in(cohort, state.weights, slot)
        found = by_name(reference)
        for name, value in in_slot(cohort, state.weights, slot).items():
            assert torch.equal(found[name], value), name
        if architecture.kind == "transformer":
            assert reference.embed.weight.shape == (task.symbols + 1, architecture.width)
            assert reference.unembed.weight.shape == (task.symbols, architecture.width)
        reference.unembed.weight.data.zero_()  # it is a copy: a user may do with it what they like
        assert state.weights[slot].any()
        assert cohort.layout.views(state.weights)["unembed.W_U"][slot].any()


def test_places_are_one_to_one() -> None:
    for architecture in ARCHITECTURES.values():
        kind = PlainMlp if architecture.kind == "mlp" else ReferenceModule
        places = [module_place(name) for name in layout_of(architecture, Sizes(8, 7)).shapes]
        assert sorted(places) == sorted(name for name, _ in kind(architecture, Sizes(8, 7)).named_parameters())
