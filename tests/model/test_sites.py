import pytest
from plain_runs import ARCHITECTURES, TWO_LAYERS

from grokscope.model import (
    Component,
    Head,
    Receiver,
    components_of,
    hidden_sites,
    receivers_of,
    site_names,
)
from grokscope.specs import Architecture


def test_hidden_sites_are_mlp_neurons_or_the_attention_output() -> None:
    assert hidden_sites(Architecture(mlp="dropped")) == ("blocks.0.hook_attn_out", "blocks.1.hook_attn_out")
    assert hidden_sites(TWO_LAYERS) == ("blocks.0.mlp.hook_post", "blocks.1.mlp.hook_post")
    assert hidden_sites(Architecture(layers=1)) == ("blocks.0.mlp.hook_post",) * 2


def test_components_are_those_the_architecture_has() -> None:
    names = {
        name: [component.name for component in components_of(ARCHITECTURES[name])]
        for name in ("attention_only", "mlp_only", "norm_for_attention")
    }
    assert [n for n in names["attention_only"] if "z" not in n] == ["blocks.0.hook_attn_out", "blocks.1.hook_attn_out"]
    assert names["mlp_only"] == ["blocks.0.hook_mlp_out", "blocks.1.hook_mlp_out"]
    assert names["norm_for_attention"] == [
        f"blocks.{i}.hook_{branch}_out" for i in range(2) for branch in ("attn", "mlp")
    ]


def test_short_names_are_unique() -> None:
    names = [component.short_name for component in components_of(TWO_LAYERS)]
    assert names[:4] == ["attn0", "mlp0", "attn1", "mlp1"]
    assert len(set(names)) == len(names)
    assert Component("blocks.1.attn.hook_z", 3).short_name == "head1.3"


@pytest.mark.parametrize("name", ["one_layer", "two_layers", "norm_for_mlp", "attention_only"])
def test_receivers_name_sites_of_the_model_in_the_order_of_the_pass(name: str) -> None:
    architecture = ARCHITECTURES[name]
    sites, found = site_names(architecture), receivers_of(architecture, Head(0, 0))
    assert Head(0, 0).site in sites
    assert found[-1] == Receiver("logits")
    stages = [receiver.stage(architecture) for receiver in found]
    assert stages == sorted(stages)
    for receiver in found:
        assert sites.index(receiver.stream(architecture)) < sites.index(receiver.site(architecture))
