from collections.abc import Callable

import pytest
import torch
from plain_runs import ARCHITECTURES, SMALL, TWO_LAYERS, fresh, mixed_runs, real_part, reference_in
from torch import Tensor

from grokscope.errors import InputError
from grokscope.model import ReferenceModule, Taps, Weights, forward, last_hidden, site_names
from grokscope.specs import Architecture
from grokscope.training import Cohort

architectures = pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
# A few with which every kind of site is met, block 0 and the last block apart.
SOME = ("two_layers", "attention_only", "mlp_only_pooled", "norm_for_mlp", "nanda", "mlp_normed", "mlp_embedded")
some_architectures = pytest.mark.parametrize("architecture", [ARCHITECTURES[name] for name in SOME], ids=SOME)


class Stack:
    """Three runs of different tasks with random weights, LayerNorms and biases included."""

    def __init__(self, architecture: Architecture) -> None:
        state, self.cohort = fresh(mixed_runs(architecture))
        noise = torch.randn(state.weights.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        self.flat = state.weights + 0.2 * noise
        for slot in range(len(self.cohort)):
            clear_padding(self.cohort, self.flat, slot)
        self.weights: Weights = self.cohort.layout.views(self.flat)
        self.tokens = self.cohort.tables.tokens[..., ::5].contiguous()

    def logits(self, taps: Taps | None = None) -> Tensor:
        weights, architecture, classes = self.weights, self.cohort.architecture, self.cohort.classes
        return forward(weights, architecture, self.tokens, classes=classes, taps=taps, has_separator=True)

    def reference_modules(self) -> list[tuple[int, ReferenceModule, Tensor]]:
        """Each slot with its module and the module's inputs."""
        return [
            (slot, reference_in(self.cohort, self.flat, slot), self.tokens[slot].T) for slot in range(len(self.cohort))
        ]


def clear_padding(cohort: Cohort, flat: Tensor, slot: int) -> None:
    for name, view in cohort.layout.views(flat).items():
        own = view[slot][real_part(cohort, slot, name, view.ndim - 1)].clone()
        view[slot] = 0
        view[slot][real_part(cohort, slot, name, view.ndim - 1)] = own


def place_of(site: str) -> str:
    """The reference module's module whose output a site is."""
    return site.removesuffix(".hook_normalized")


def as_in_stack(site: str, value: Tensor) -> Tensor:
    """A reference module's value, its inputs first, in the stack's order of axes: positions, inputs, then the rest."""
    if site.endswith("hook_pattern"):  # [inputs, heads, queries, keys]
        return value.permute(2, 3, 0, 1)
    if site.startswith("layers."):  # all inputs at one position
        return value[None]
    if ".attn.hook_" in site:  # [inputs, heads, positions, e]
        return value.permute(2, 0, 1, 3)
    return value.transpose(0, 1) if value.ndim == 3 else value


def captured(reference: ReferenceModule, tokens: Tensor) -> dict[str, Tensor]:
    """Every site of the reference module by PyTorch's forward hooks."""
    values: dict[str, Tensor] = {}
    handles = []
    for site in site_names(reference.architecture):
        if site not in ("hook_pos_embed", "logits"):
            module = reference.get_submodule(place_of(site))
            handles.append(module.register_forward_hook(keeping(values, site)))
    with torch.no_grad():
        values["logits"] = reference(tokens)
    for handle in handles:
        handle.remove()
    if reference.architecture.kind == "transformer":
        values["hook_pos_embed"] = reference.pos_embed.weight.detach().expand(len(tokens), -1, -1)
    return {site: as_in_stack(site, value) for site, value in values.items()}


def keeping(values: dict[str, Tensor], site: str) -> Callable[..., None]:
    def hook(module, arguments, out: Tensor) -> None:
        values[site] = out.clone()

    return hook


# Logits.


@architectures
def test_logits_equal_the_reference_modules_and_padded_classes_are_impossible(architecture: Architecture) -> None:
    stack = Stack(architecture)
    logits = stack.logits()
    for slot, reference, tokens in stack.reference_modules():
        expected = reference(tokens).detach()
        assert torch.allclose(logits[slot, :, : reference.sizes.classes], expected, rtol=0, atol=1e-12)
        assert (logits[slot, :, reference.sizes.classes :] == -torch.inf).all()


def test_bfloat16_is_near_and_touches_only_what_it_may() -> None:
    stack = Stack(TWO_LAYERS)
    exact = stack.logits()
    weights = {name: value.float() for name, value in stack.weights.items()}
    rough = forward(weights, TWO_LAYERS, stack.tokens, classes=stack.cohort.classes, compute=torch.bfloat16)
    assert rough.dtype == torch.float32
    finite = exact.isfinite()
    assert torch.equal(rough.isfinite(), finite)
    error = (rough[finite] - exact[finite]).abs().max()
    assert 1e-4 < error < 0.25


def test_an_mlp_alone_cannot_tell_its_inputs_apart_unless_pooled() -> None:
    for name, varies in (("mlp_only", False), ("mlp_only_pooled", True)):
        stack = Stack(ARCHITECTURES[name])
        logits = stack.logits()[0, :, :11]
        assert (logits.std(dim=0).max().item() > 1e-3) == varies


# Reading.


@architectures
def test_every_site_can_be_read(architecture: Architecture) -> None:
    taps = Taps(read=frozenset(site_names(architecture)))
    Stack(architecture).logits(taps)
    assert set(taps.values) == set(site_names(architecture))


@architectures
def test_sites_equal_what_hooks_see_in_the_reference_module(architecture: Architecture) -> None:
    stack = Stack(architecture)
    taps = Taps(read=frozenset(site_names(architecture)))
    stack.logits(taps)
    for slot, reference, tokens in stack.reference_modules():
        expected = captured(reference, tokens)
        assert set(expected) == set(site_names(architecture))
        for site, value in taps.values.items():
            found = value[slot, :, : reference.sizes.classes] if site == "logits" else value[slot]
            assert found.shape == expected[site].shape, site
            assert torch.allclose(found, expected[site], rtol=0, atol=1e-12), site


@architectures
def test_reading_changes_no_logit(architecture: Architecture) -> None:
    stack = Stack(architecture)
    without = stack.logits()
    taps = Taps(read=frozenset(site_names(architecture)))
    assert torch.equal(stack.logits(taps), stack.logits(Taps()))
    # Taps compute every position of every block: the same numbers, rounded along another way.
    assert torch.allclose(stack.logits(taps), without, rtol=0, atol=1e-12)


def test_names_stand_in_the_order_of_the_forward_pass() -> None:
    for architecture in (SMALL, TWO_LAYERS, ARCHITECTURES["nanda"], ARCHITECTURES["attention_only"]):
        taps = Taps(read=frozenset(site_names(architecture)))
        Stack(architecture).logits(taps)
        assert tuple(taps.values) == site_names(architecture)


def test_patterns_are_shares_and_causal_ones_look_back() -> None:
    for architecture in (SMALL, ARCHITECTURES["causal"]):
        taps = Taps(read=frozenset({"blocks.0.attn.hook_pattern"}))
        Stack(architecture).logits(taps)
        pattern = taps.values["blocks.0.attn.hook_pattern"]
        assert torch.allclose(pattern.sum(dim=2), torch.ones(()).double(), rtol=0, atol=1e-12)
        seen = (pattern > 0).flatten(3).any(dim=3)[0]
        assert torch.equal(seen, torch.ones(3, 3).tril().bool() if architecture.causal else torch.ones(3, 3).bool())


@pytest.mark.parametrize(
    ("taps", "sentence"),
    [
        (
            Taps(read=frozenset({"blocks.0.hook_mlp_output"})),
            "no site 'blocks.0.hook_mlp_output'; did you mean 'blocks.0.hook_mlp_out'?",
        ),
        (Taps(edits={"blocks.1.hook_mlp_out": torch.zeros_like}), "no site 'blocks.1.hook_mlp_out'; did you mean"),
        (Taps(read=frozenset({"blocks.0.attn.hook_pattern "})), "did you mean 'blocks.0.attn.hook_pattern'?"),
    ],
)
def test_unknown_sites_are_rejected(taps: Taps, sentence: str) -> None:
    with pytest.raises(InputError) as rejection:
        Stack(SMALL).logits(taps)
    assert sentence in str(rejection.value)


def test_an_architecture_without_a_branch_has_none_of_its_sites() -> None:
    names = {name: site_names(architecture) for name, architecture in ARCHITECTURES.items()}
    assert not any("mlp" in site for site in names["attention_only"])
    assert not any("attn" in site or "ln1" in site for site in names["mlp_only"])
    assert not any("ln" in site for site in names["nanda"])
    with pytest.raises(InputError):
        Stack(ARCHITECTURES["nanda"]).logits(Taps(read=frozenset({"ln_final.hook_normalized"})))


# Editing.


@some_architectures
def test_a_site_replaced_by_its_own_value_changes_nothing(architecture: Architecture) -> None:
    stack = Stack(architecture)
    taps = Taps(read=frozenset(site_names(architecture)))
    logits = stack.logits(taps)
    for site, value in taps.values.items():
        edited = stack.logits(Taps(edits={site: lambda _, own=value: own.clone()}))
        assert torch.equal(edited, logits), site


@some_architectures
@pytest.mark.parametrize("edit", [torch.zeros_like, lambda value: 0.5 * value + 0.1], ids=["zero", "affine"])
def test_an_edited_site_equals_a_hook_in_the_reference_module(
    architecture: Architecture, edit: Callable[[Tensor], Tensor]
) -> None:
    stack = Stack(architecture)
    unedited = stack.logits()
    tapped = Taps(read=frozenset(site_names(architecture)))
    stack.logits(tapped)
    for site in tapped.values:
        if site in ("hook_pos_embed", "logits"):
            continue
        logits = stack.logits(Taps(edits={site: edit}))
        assert not torch.allclose(logits, unedited, rtol=0, atol=1e-9), site
        for slot, reference, tokens in stack.reference_modules():
            reference.get_submodule(place_of(site)).register_forward_hook(lambda module, arguments, out: edit(out))
            expected = reference(tokens).detach()
            assert torch.allclose(logits[slot, :, : reference.sizes.classes], expected, rtol=0, atol=1e-12), site


def test_positions_and_logits_can_be_edited() -> None:
    stack = Stack(SMALL)
    without_positions = stack.logits(Taps(edits={"hook_pos_embed": torch.zeros_like}))
    for slot, reference, tokens in stack.reference_modules():
        reference.pos_embed.weight.data.zero_()
        expected = reference(tokens).detach()
        assert torch.allclose(without_positions[slot, :, : reference.sizes.classes], expected, rtol=0, atol=1e-12)
    assert not stack.logits(Taps(edits={"logits": torch.zeros_like})).any()


def test_the_mean_over_inputs_can_replace_a_site() -> None:
    stack, site = Stack(TWO_LAYERS), "blocks.1.mlp.hook_post"
    logits = stack.logits(Taps(edits={site: lambda value: value.mean(dim=2, keepdim=True).expand_as(value)}))
    for slot, reference, tokens in stack.reference_modules():
        module = reference.get_submodule(site)
        module.register_forward_hook(lambda module, arguments, out: out.mean(dim=0, keepdim=True).expand_as(out))
        assert torch.allclose(
            logits[slot, :, : reference.sizes.classes], reference(tokens).detach(), rtol=0, atol=1e-12
        )


def test_what_is_read_is_the_edited_value_and_upstream_stays() -> None:
    stack, site = Stack(TWO_LAYERS), "blocks.0.hook_mlp_out"
    plain = Taps(read=frozenset(site_names(TWO_LAYERS)))
    stack.logits(plain)
    edited = Taps(read=frozenset(site_names(TWO_LAYERS)), edits={site: torch.zeros_like})
    stack.logits(edited)
    assert not edited.values[site].any()
    names = site_names(TWO_LAYERS)
    for name in names[: names.index(site)]:
        assert torch.equal(edited.values[name], plain.values[name]), name
    mid = plain.values["blocks.0.hook_resid_mid"]
    assert torch.equal(edited.values["blocks.0.hook_resid_post"], mid)


# What FSD reads.


@architectures
def test_last_hidden_is_the_site_that_fsd_reads(architecture: Architecture) -> None:
    stack = Stack(architecture)
    for block in range(architecture.layers):
        end = "mlp.hook_post" if architecture.mlp == "on" else "hook_attn_out"
        site = f"layers.{block}.hook_post" if architecture.kind == "mlp" else f"blocks.{block}.{end}"
        taps = Taps(read=frozenset({site}))
        stack.logits(taps)
        found = last_hidden(stack.weights, architecture, stack.tokens, block)
        assert torch.allclose(found, taps.values[site][:, -1], rtol=0, atol=1e-12)
        by_rows = last_hidden(stack.weights, architecture, stack.tokens, block, has_separator=True)
        assert torch.allclose(by_rows, found, rtol=0, atol=1e-12)
