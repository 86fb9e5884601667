from dataclasses import fields, replace
from functools import lru_cache

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_runs import ARCHITECTURES, TWO_LAYERS, small_run
from torch import Tensor
from torch.nn.functional import cross_entropy

from grokscope.activations import RunStack
from grokscope.errors import InputError
from grokscope.measures.ablation import ablation, ablation_edit, other_inputs
from grokscope.measures.scores import Scores, scores
from grokscope.model import Component, components_of, reference_module, sizes_of
from grokscope.specs import Architecture
from measured_stacks import on_cuda, stack_of

METHODS = ["zero", "mean", "resample"]


@lru_cache
def trained(task: str = "add_mod11", architecture: Architecture = TWO_LAYERS, runs: int = 2) -> RunStack:
    fields = {"shuffled_labels": task == "mult_mod7", "learning_rate": 0.01, "weight_decay": 0.0}
    return stack_of([small_run(task, seed, architecture, **fields) for seed in range(runs)], 80)


def hooked_logits(subject: RunStack, run: int, component: Component | None, change=None) -> Tensor:
    """Logits of a plain module, with a forward hook on one of its parts."""
    weights = {name: value[run : run + 1] for name, value in subject.weights.items()}
    module = reference_module(subject.architecture, sizes_of(subject.task), weights)
    if component is not None:
        module.get_submodule(component.site).register_forward_hook(lambda m, a, out: change(out))
    with torch.no_grad():
        return module(torch.tensor(subject.task.tokens))


def ablated(out: Tensor, component: Component, method: str, every_position: bool, seed: int) -> Tensor:
    """What a part gives instead: [inputs, positions, width], or [inputs, heads, positions, head width]."""
    other = {
        "zero": torch.zeros_like(out),
        "mean": out.mean(dim=0, keepdim=True).expand_as(out),
        "resample": out[other_inputs(len(out), seed)],
    }[method]
    replaced = torch.ones_like(out, dtype=torch.bool)
    if component.head is not None:
        replaced &= (torch.arange(out.shape[1]) == component.head)[:, None, None]
    if not every_position:
        replaced &= (torch.arange(3) == 2)[:, None]
    return torch.where(replaced, other, out)


def plain_scores(subject: RunStack, run: int, logits: Tensor) -> dict[str, float]:
    train, found = subject.is_train[run], {}
    labels = torch.where(train, subject.labels[run], subject.answers)
    for name, rows in (("", torch.ones_like(train)), ("train_", train), ("validation_", ~train)):
        found[f"{name}loss"] = cross_entropy(logits[rows], labels[rows]).item()
        found[f"{name}accuracy"] = (logits[rows].argmax(dim=1) == labels[rows]).double().mean().item()
    return found


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("every_position", [True, False])
@pytest.mark.parametrize("task", ["add_mod11", "mult_mod7"])
def test_every_component_is_ablated_as_by_a_forward_hook(task: str, method: str, every_position: bool) -> None:
    subject = trained(task)
    found = ablation(subject, None, method, every_position=every_position, seed=5)
    assert [row.component for row in found] == list(components_of(TWO_LAYERS))
    for run in range(2):
        original = plain_scores(subject, run, hooked_logits(subject, run, None))
        for row in found:

            def change(out: Tensor, component: Component = row.component) -> Tensor:
                return ablated(out, component, method, every_position, 5)

            expected = plain_scores(subject, run, hooked_logits(subject, run, row.component, change))
            own = {f.name: getattr(row.scores, f.name)[run].item() for f in fields(Scores)}
            assert own == pytest.approx(expected, abs=1e-10), row.component.name
            for name in ("accuracy", "train_accuracy", "validation_accuracy"):
                drop = original[name] - expected[name]
                assert getattr(row, f"{name}_drop")[run].item() == pytest.approx(drop, abs=1e-12)


def test_a_component_that_matters_is_missed() -> None:
    subject = trained()
    assert scores(subject).train_accuracy.min() > 0.9
    drops = torch.stack([row.train_accuracy_drop for row in ablation(subject)])
    assert drops.max() > 0.3


@pytest.mark.parametrize("method", METHODS)
def test_any_site_can_be_ablated(method: str) -> None:
    subject = trained()
    for site in ("hook_embed", "blocks.0.mlp.hook_post", "blocks.1.hook_resid_mid"):
        component = Component(site)
        (row,) = ablation(subject, [component], method, seed=1)

        def change(out: Tensor, component: Component = component) -> Tensor:
            return ablated(out, component, method, True, 1)

        expected = plain_scores(subject, 0, hooked_logits(subject, 0, component, change))
        assert row.scores.loss[0].item() == pytest.approx(expected["loss"], abs=1e-10)


def test_ablating_all_heads_leaves_the_output_bias() -> None:
    subject, site = trained(), "blocks.0.attn.hook_z"
    edits = [ablation_edit(subject, Component(site, head)) for head in range(2)]
    every = subject.read("blocks.0.hook_attn_out", {site: lambda v, rows: edits[1](edits[0](v, rows), rows)})
    bias = subject.weights["blocks.0.attn.b_O"]
    assert torch.allclose(every, bias[:, None].expand_as(every), atol=1e-12)
    assert torch.equal(every, subject.read("blocks.0.hook_attn_out", {site: ablation_edit(subject, Component(site))}))


@pytest.mark.parametrize("name", ["attention_only", "mlp_only", "norm_for_attention"])
def test_every_component_of_any_architecture_is_ablated(name: str) -> None:
    found = ablation(trained("add_mod7", ARCHITECTURES[name]))
    assert [row.component for row in found] == list(components_of(ARCHITECTURES[name]))


@given(st.integers(2, 300), st.integers(0, 2**62))
def test_other_inputs_are_all_inputs_and_never_the_own(count: int, seed: int) -> None:
    other = other_inputs(count, seed)
    assert sorted(other.tolist()) == list(range(count))
    assert (other != torch.arange(count)).all()
    assert torch.equal(other, other_inputs(count, seed))


def test_other_inputs_follow_the_seed() -> None:
    assert len({tuple(other_inputs(50, seed).tolist()) for seed in range(20)}) == 20


def test_a_run_of_nan_stays_alone() -> None:
    healthy = trained(runs=3)
    weights = {name: value.clone() for name, value in healthy.weights.items()}
    for value in weights.values():
        value[1] = torch.nan
    sick = replace(healthy, weights=weights)
    chosen = [Component("blocks.0.hook_mlp_out"), Component("blocks.1.attn.hook_z", 1)]
    for method in METHODS:
        for one, other in zip(ablation(healthy, chosen, method), ablation(sick, chosen, method), strict=True):
            assert torch.equal(one.accuracy_drop[[0, 2]], other.accuracy_drop[[0, 2]])
            assert other.accuracy_drop[1].isnan()


def test_a_head_that_is_not_there_is_named() -> None:
    subject = trained()
    with pytest.raises(InputError, match=r"the heads are 0 to 1, got blocks.0.attn.hook_z\[2\]"):
        ablation(subject, [Component("blocks.0.attn.hook_z", 2)])
    with pytest.raises(InputError, match=r"have heads, got blocks.0.hook_mlp_out\[0\]"):
        ablation(subject, [Component("blocks.0.hook_mlp_out", 0)])
    with pytest.raises(InputError, match="no site"):
        ablation(subject, [Component("blocks.7.hook_mlp_out")])


@pytest.mark.gpu
def test_a_gpu_ablates_as_a_cpu() -> None:
    subject = trained()
    for method in METHODS:
        for one, other in zip(ablation(subject, None, method), ablation(on_cuda(subject), None, method), strict=True):
            assert torch.allclose(other.scores.loss.cpu(), one.scores.loss, atol=1e-9)
