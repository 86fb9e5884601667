from dataclasses import replace
from functools import lru_cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_runs import ARCHITECTURES, NORMAL, SMALL, TWO_LAYERS, small_run
from torch import Tensor

from grokscope.activations import RunStack
from grokscope.errors import InputError
from grokscope.measures.patching import drawn_pairs, head_patching, path_patching
from grokscope.model import Head, Receiver, ReferenceModule, receivers_of
from grokscope.specs import Initialization
from grokscope.tasks import named_task
from measured_stacks import module_of, on_cuda, stack_of

NAMES = ["one_layer", "two_layers", "nanda", "three_layers", "norm_for_mlp", "attention_only"]


@lru_cache
def trained(name: str = "two_layers", runs: int = 2) -> RunStack:
    architecture = replace(SMALL, heads=1) if name == "one_head" else ARCHITECTURES[name]
    start = Initialization() if architecture.layer_norm else NORMAL
    specs = [small_run("add_mod7", seed, architecture, initialization=start) for seed in range(runs)]
    return stack_of(specs, 25)


def hooked(module: ReferenceModule, tokens: Tensor, read: list[str], edits: dict) -> tuple[dict[str, Tensor], Tensor]:
    """One pass of the plain module with forward hooks: the values read, and the logits."""
    values, handles = {}, []
    for site, edit in edits.items():
        handles.append(module.get_submodule(site).register_forward_hook(lambda m, a, out, edit=edit: edit(out)))
    for site in read:
        hook = lambda m, a, out, site=site: values.update({site: out})  # noqa: E731
        handles.append(module.get_submodule(site).register_forward_hook(hook))
    with torch.no_grad():
        logits = module(tokens)
    for handle in handles:
        handle.remove()
    return values, logits


def with_head(value: Tensor, other: Tensor, head: int) -> Tensor:
    """The reference module's [inputs, heads, positions, head width] with one head from another."""
    out = value.clone()
    out[:, head] = other[:, head]
    return out


def frozen_outputs(subject: RunStack, clean: dict[str, Tensor], sender: Head) -> dict:
    """Edits that hold every branch after the sender's at its clean output."""
    sites = [site for site in clean if site.endswith(("attn_out", "mlp_out"))]
    after = [s for s in sites if int(s.split(".")[1]) > sender.block or s == f"blocks.{sender.block}.hook_mlp_out"]
    return {site: lambda out, site=site: clean[site] for site in after}


def plain_path(subject: RunStack, run: int, x: Tensor, other: Tensor, sender: Head, receiver: Receiver) -> Tensor:
    """Logits on x by the definition: freeze all but the sender, see what the receiver reads, replace that alone."""
    module, tokens = module_of(subject, run), torch.tensor(subject.task.tokens)
    layers, z = subject.architecture.layers, f"blocks.{sender.block}.attn.hook_z"
    branches = [f"blocks.{i}.hook_attn_out" for i in range(layers)]
    if subject.architecture.mlp != "dropped":
        branches += [f"blocks.{i}.hook_mlp_out" for i in range(layers)]
    clean, _ = hooked(module, tokens[x], [z, *branches], {})
    corrupt, _ = hooked(module, tokens[other], [z], {})
    patch = {z: lambda out: with_head(out, corrupt[z], sender.index)}
    frozen = frozen_outputs(subject, clean, sender)
    if receiver.part == "logits":
        return hooked(module, tokens[x], [], frozen | patch)[1]
    block = f"blocks.{receiver.block}."
    if receiver.part != "mlp":
        site = f"{block}attn.hook_{receiver.part}"
        read, _ = hooked(module, tokens[x], [site], frozen | patch)
        return hooked(module, tokens[x], [], {site: lambda out: with_head(out, read[site], receiver.head)})[1]
    site = f"{block}ln2"  # the MLP's input, so that its own output may be frozen
    read, _ = hooked(module, tokens[x], [site], frozen | patch)
    return hooked(module, tokens[x], [], {site: lambda out: read[site]})[1]


def difference(subject: RunStack, logits: Tensor, x: Tensor, other: Tensor) -> Tensor:
    answers, rows = torch.tensor(subject.task.answers), torch.arange(len(x))
    return logits[rows, answers[x]] - logits[rows, answers[other]]


@pytest.mark.parametrize("name", NAMES)
def test_each_path_is_patched_as_by_hand(name: str) -> None:
    subject = trained(name)
    x, other = drawn_pairs(subject.task, 12, seed=1)
    sender = Head(0, 1)
    effects = []
    for receiver in receivers_of(subject.architecture, sender):
        found = path_patching(subject, x, other, sender, receiver)
        for run in range(2):
            expected = difference(subject, plain_path(subject, run, x, other, sender, receiver), x, other)
            assert torch.allclose(found.patched[run], expected, atol=1e-11), receiver
            for rows, value in ((x, found.clean), (other, found.corrupt)):
                plain = module_of(subject, run)(torch.tensor(subject.task.tokens)[rows]).detach()
                assert torch.allclose(value[run], difference(subject, plain, x, other), atol=1e-11)
        effects.append(found.effect.abs().max())
    assert min(effects) > 1e-6  # every path carries something, so that a path left out would be seen
    assert len(effects) == len({round(float(effect), 12) for effect in effects})


@pytest.mark.parametrize("name", NAMES)
def test_all_paths_at_once_are_activation_patching(name: str) -> None:
    subject = trained(name)
    x, other = drawn_pairs(subject.task, 10, seed=2)
    for sender in (Head(0, 0), Head(subject.architecture.layers - 1, 1)):
        together = path_patching(subject, x, other, sender, receivers_of(subject.architecture, sender))
        whole = head_patching(subject, x, other, sender)
        assert torch.allclose(together.patched, whole.patched, atol=1e-11)
        assert whole.effect.abs().max() > 1e-4


def test_activation_patching_replaces_the_heads_output() -> None:
    subject, z = trained(), "blocks.0.attn.hook_z"
    x, other = drawn_pairs(subject.task, 10, seed=3)
    found = head_patching(subject, x, other, Head(0, 1))
    tokens = torch.tensor(subject.task.tokens)
    for run in range(2):
        module = module_of(subject, run)
        corrupt, _ = hooked(module, tokens[other], [z], {})
        _, logits = hooked(module, tokens[x], [], {z: lambda out, c=corrupt: with_head(out, c[z], 1)})
        assert torch.allclose(found.patched[run], difference(subject, logits, x, other), atol=1e-11)


def test_the_last_block_has_no_later_heads() -> None:
    subject = trained()
    x, other = drawn_pairs(subject.task, 10, seed=3)
    sender = Head(1, 0)
    assert [receiver.part for receiver in receivers_of(TWO_LAYERS, sender)] == ["mlp", "logits"]
    direct = path_patching(subject, x, other, sender, Receiver("logits"))
    assert direct.effect.abs().max() > 1e-6
    with pytest.raises(InputError, match=r"part='q', block=1.* does not read what Head\(block=1, index=0\) writes"):
        path_patching(subject, x, other, sender, Receiver("q", 1, 0))


@pytest.mark.parametrize("name", ["two_layers", "nanda"])
def test_an_input_patched_with_itself_changes_nothing(name: str) -> None:
    subject = trained(name)
    x, _ = drawn_pairs(subject.task, 10, seed=4)
    sender = Head(0, 0)
    for receivers in (Receiver("v", 1, 1), Receiver("mlp", 0), receivers_of(subject.architecture, sender), ()):
        found = path_patching(subject, x, x, sender, receivers)
        assert not found.effect.any()
        assert torch.equal(found.clean, found.corrupt)
    assert not head_patching(subject, x, x, sender).effect.any()


def test_no_receiver_means_no_effect() -> None:
    subject = trained()
    x, other = drawn_pairs(subject.task, 10, seed=4)
    assert not path_patching(subject, x, other, Head(0, 0), ()).effect.any()


def test_the_order_of_receivers_does_not_matter() -> None:
    subject = trained("three_layers")
    x, other = drawn_pairs(subject.task, 6, seed=5)
    chosen = [Receiver("mlp", 1), Receiver("k", 1, 0), Receiver("k", 1, 1), Receiver("v", 2, 1), Receiver("logits")]
    one = path_patching(subject, x, other, Head(0, 0), chosen)
    assert torch.equal(one.patched, path_patching(subject, x, other, Head(0, 0), chosen[::-1]).patched)


def test_the_only_head_carries_all() -> None:
    # In one block with one head, the read position learns of a and b from that head alone.
    subject = trained("one_head")
    x, other = drawn_pairs(subject.task, 10, seed=6)
    found = head_patching(subject, x, other, Head(0, 0))
    assert torch.allclose(found.patched, found.corrupt, atol=1e-11)
    assert torch.allclose(found.share, torch.ones(2, dtype=torch.float64))
    assert torch.equal(found.effect, found.patched - found.clean)
    parts = [path_patching(subject, x, other, Head(0, 0), Receiver(part)) for part in ("mlp", "logits")]
    assert all((part.patched - part.corrupt).abs().max() > 1e-4 for part in parts)


def test_many_pairs_are_patched_in_chunks() -> None:
    subject = trained("one_layer")
    x, other = drawn_pairs(subject.task, 2500, seed=7)
    together = path_patching(subject, x, other, Head(0, 0), Receiver("mlp", 0))
    part = path_patching(subject, x[-7:], other[-7:], Head(0, 0), Receiver("mlp", 0))
    assert together.effect.shape == (2, 2500)
    assert torch.allclose(together.patched[:, -7:], part.patched, atol=1e-12)


def test_a_run_of_nan_stays_alone() -> None:
    healthy = trained(runs=3)
    weights = {name: value.clone() for name, value in healthy.weights.items()}
    for value in weights.values():
        value[1] = torch.nan
    sick = replace(healthy, weights=weights)
    x, other = drawn_pairs(healthy.task, 10, seed=8)
    one, two = (path_patching(s, x, other, Head(0, 0), Receiver("v", 1, 0)) for s in (healthy, sick))
    assert torch.equal(one.patched[[0, 2]], two.patched[[0, 2]])
    assert two.effect[1].isnan().all()


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(["add_mod7", "mult_mod7", "S3", "poly_a2+b2_mod7"]), st.integers(1, 60), st.integers(0, 2**40))
def test_drawn_pairs_have_different_answers(name: str, count: int, seed: int) -> None:
    task = named_task(name)
    x, other = drawn_pairs(task, count, seed)
    assert x.shape == other.shape == (count,)
    answers = torch.tensor(task.answers)
    assert (answers[x] != answers[other]).all()


def test_every_other_input_is_drawn_alike() -> None:
    task = named_task("mult_mod5")
    answers = torch.tensor(task.answers)
    x, other = drawn_pairs(task, 60_000, seed=0)
    counts = torch.bincount(x, minlength=25)
    assert (counts - 2400).abs().max() < 5 * 49  # five standard deviations
    of_zero = torch.bincount(other[x == 0], minlength=25)
    allowed = (answers != answers[0]).nonzero()[:, 0]
    assert of_zero.sum() == of_zero[allowed].sum()
    expected = of_zero.sum() / len(allowed)
    assert (of_zero[allowed] - expected).abs().max() < 5 * expected.sqrt()


def test_what_cannot_be_patched_is_named() -> None:
    subject = trained()
    x, other = drawn_pairs(subject.task, 4, seed=0)
    with pytest.raises(InputError, match="2 blocks of 2 heads, got Head"):
        head_patching(subject, x, other, Head(2, 0))
    with pytest.raises(InputError, match="got 4 clean and 3 corrupt"):
        head_patching(subject, x, other[:3], Head(0, 0))
    blind = trained("mlp_only")
    with pytest.raises(InputError, match="got attention = 'dropped'"):
        head_patching(blind, x, other, Head(0, 0))


@pytest.mark.gpu
def test_a_gpu_patches_as_a_cpu() -> None:
    subject = trained()
    x, other = drawn_pairs(subject.task, 10, seed=9)
    for receivers in (Receiver("v", 1, 0), receivers_of(subject.architecture, Head(0, 0))):
        one, two = (path_patching(s, x, other, Head(0, 0), receivers) for s in (subject, on_cuda(subject)))
        assert torch.allclose(two.patched.cpu(), one.patched, atol=1e-9)
