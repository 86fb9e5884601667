import cmath
import math

import numpy as np
import pytest
import torch
from plain_runs import ARCHITECTURES, NORMAL, PlainRun, fresh, reference_in, small_run
from torch import Tensor
from torch.autograd.functional import jacobian

from grokscope.activations import RunStack, subject_of
from grokscope.errors import InputError
from grokscope.measures.spectrum import spectrum
from grokscope.measures.weight_spectra import embedding_spectrum, neuron_logit_map, neuron_logit_spectrum
from grokscope.model import ReferenceModule
from grokscope.specs import RunSpec
from grokscope.tasks import named_task
from grokscope.training import Cohort, State, advance
from measured_stacks import logarithm_order

TWO = ARCHITECTURES["two_layers"]


def trained(runs: list[RunSpec], steps: int = 20) -> tuple[RunStack, State, Cohort]:
    state, cohort = fresh(list(runs))
    advance(state, cohort, steps)
    return subject_of(runs, state.weights), state, cohort


def naive_powers(column: list[float]) -> list[float]:
    """2|Â_f|²/n, and |Â_f|²/n at f = n/2, by the definition of the transform."""
    n = len(column)
    found = []
    for f in range(1, n // 2 + 1):
        amplitude = sum(x * cmath.exp(-2j * math.pi * f * s / n) for s, x in enumerate(column))
        found.append((1 if 2 * f == n else 2) * abs(amplitude) ** 2 / n)
    return found


def symmetric_three_powers(column: list[float], table: np.ndarray) -> list[float]:
    """Of the sign (the elements of order 2 are odd) and, by Plancherel, of the two-dimensional irrep."""
    values = np.array(column)
    identity = next(e for e in range(6) if (table[e] == np.arange(6)).all())
    sign = np.array([-1 if table[g, g] == identity and g != identity else 1 for g in range(6)])
    of_sign = (sign @ values) ** 2 / 6
    return [of_sign, values @ values - values.sum() ** 2 / 6 - of_sign]


def powers_by_hand(task: str, columns: Tensor) -> np.ndarray:
    """[modes, columns] of a matrix over the symbols, in the task's faithful basis."""
    order = logarithm_order(columns.shape[0]) if task.startswith("mult") else list(range(columns.shape[0]))
    lists = [[float(columns[symbol, j]) for symbol in order] for j in range(columns.shape[1])]
    if task == "S3":
        table = named_task(task).answers.reshape(6, 6)
        return np.array([symmetric_three_powers(column, table) for column in lists]).T
    return np.array([naive_powers(column) for column in lists]).T


TASKS = ["add_mod11", "add_mod10", "sub_mod7", "mult_mod11", "S3"]


# The embedding.


@pytest.mark.parametrize("task", TASKS)
def test_the_embeddings_powers_are_sums_over_its_columns(task: str) -> None:
    subject, state, cohort = trained([small_run(task, seed) for seed in range(2)])
    found = embedding_spectrum(subject)
    for slot in range(2):
        rows = reference_in(cohort, state.weights, slot).embed.weight.detach()[:-1]  # the separator is no symbol
        expected = powers_by_hand(task, rows).sum(axis=1)
        assert found.power[slot].numpy() == pytest.approx(expected, rel=1e-9)
        assert found.share[slot].numpy() == pytest.approx(expected / expected.sum(), rel=1e-9)
        assert found.norm[slot].numpy() == pytest.approx(np.sqrt(expected), rel=1e-9)
        assert found.density[slot].numpy() == pytest.approx(expected / named_task(task).basis().modes.dimensions)


def test_another_basis_can_be_asked_for() -> None:
    subject, state, cohort = trained([small_run("mult_mod11", 0)])
    rows = reference_in(cohort, state.weights, 0).embed.weight.detach()[:-1]
    found = embedding_spectrum(subject, subject.task.basis("additive"))
    assert found.power[0].numpy() == pytest.approx(powers_by_hand("add_mod11", rows).sum(axis=1))


def test_a_planted_frequency_has_all_the_power() -> None:
    subject, _, _ = trained([small_run("add_mod11", 0)])
    angles = 2 * torch.pi * 3 * torch.arange(11).double()[:, None] / 11 + torch.arange(16)
    subject.weights["embed.W_E"][0, :11] = 5 + angles.cos()
    found = embedding_spectrum(subject)
    assert found.share[0].tolist() == pytest.approx([0, 0, 1, 0, 0], abs=1e-12)
    assert float(found.norm[0, 2]) == pytest.approx(math.sqrt(16 * 11 / 2))


def test_padding_and_separator_are_not_read() -> None:
    subject, _, _ = trained([small_run("add_mod11", 0)])
    before, logits = embedding_spectrum(subject).power, neuron_logit_spectrum(subject).power
    subject.weights["embed.W_E"][:, 11:] = 7
    subject.weights["unembed.W_U"][..., 11:] = 7
    assert torch.equal(embedding_spectrum(subject).power, before)
    assert torch.equal(neuron_logit_spectrum(subject).power, logits)


def test_an_embedding_without_variation_has_no_shares() -> None:
    subject, _, _ = trained([small_run("add_mod11", seed) for seed in range(2)])
    subject.weights["embed.W_E"][1] = 0.1
    found = embedding_spectrum(subject)
    assert not found.power[1].any()
    assert found.share[1].isnan().all()
    assert found.share[0].isfinite().all()


# From neurons to logits.


def residual(reference: ReferenceModule, run: RunSpec) -> Tensor:
    """The stream before the head, of the first pair."""
    seen: list[Tensor] = []
    reference.blocks[-1].hook_resid_post.register_forward_hook(lambda module, arguments, out: seen.append(out[0, -1]))
    reference(PlainRun(run).given)
    return seen[0].detach()


@pytest.mark.parametrize("name", ["one_layer", "two_layers", "no_biases", "mlp_only_pooled"])
def test_the_map_is_the_heads_derivative_without_that_of_the_norms_scale(name: str) -> None:
    run = small_run("add_mod11", 4, ARCHITECTURES[name])
    subject, state, cohort = trained([run])
    reference = reference_in(cohort, state.weights, 0)
    x = residual(reference, run)
    found = neuron_logit_map(subject)[0]
    assert found.shape == (11, 32)
    of_head = jacobian(lambda stream: reference.unembed(reference.ln_final(stream)), x)
    directions = reference.blocks[-1].mlp.outer.weight.detach()  # [width, neurons]
    deviation = (x.var(correction=0) + 1e-5).sqrt()
    normed = (x - x.mean()) / deviation
    # d LN(x) = w/σ · (v − mean v − x̂ (x̂·v)/d): the last term is the scale's own change.
    of_scale = reference.unembed.weight.detach() @ (reference.ln_final.weight.detach() * normed)
    expected = of_head @ directions * deviation + torch.outer(of_scale, normed @ directions / len(x))
    assert torch.allclose(found, expected, atol=1e-12)


def test_without_a_norm_the_map_is_what_a_unit_of_a_neuron_adds() -> None:
    run = small_run("add_mod11", 4, ARCHITECTURES["nanda"], initialization=NORMAL)
    subject, state, cohort = trained([run])
    reference = reference_in(cohort, state.weights, 0)
    tokens, found = PlainRun(run).given, neuron_logit_map(subject)[0]
    with torch.no_grad():
        before = reference(tokens)
        for j in (0, 7, 31):
            unit = torch.zeros(32, dtype=torch.float64)
            unit[j] = 1
            handle = reference.blocks[-1].mlp.hook_post.register_forward_hook(lambda m, a, out, unit=unit: out + unit)
            added = reference(tokens) - before
            handle.remove()
            assert torch.allclose(added, found[:, j].expand_as(added), atol=1e-12)


@pytest.mark.parametrize("task", TASKS)
def test_each_neurons_powers_are_by_hand(task: str) -> None:
    subject, _, _ = trained([small_run(task, seed, TWO) for seed in range(2)])
    found, maps = neuron_logit_spectrum(subject), neuron_logit_map(subject)
    for slot in range(2):
        expected = powers_by_hand(task, maps[slot])
        assert found.power[slot].numpy() == pytest.approx(expected, rel=1e-8, abs=1e-12)
    assert not found.is_constant.any()


def test_the_last_block_is_read() -> None:
    subject, _, _ = trained([small_run("add_mod11", 0, TWO)])
    before = neuron_logit_map(subject)
    subject.weights["blocks.0.mlp.W_out"].zero_()
    assert torch.equal(neuron_logit_map(subject), before)
    subject.weights["blocks.1.mlp.W_out"].zero_()
    assert not neuron_logit_map(subject).any()


def test_runs_stand_alone_and_nan_stays_at_home() -> None:
    subject, _, _ = trained([small_run("S3", seed) for seed in range(3)])
    embedding, logits = embedding_spectrum(subject), neuron_logit_spectrum(subject)
    for i in range(3):
        alone = subject.select([i])
        assert torch.allclose(embedding_spectrum(alone).power[0], embedding.power[i], rtol=1e-12)
        assert torch.allclose(neuron_logit_spectrum(alone).power[0], logits.power[i], rtol=1e-9)
    subject.weights["embed.W_E"][1] = torch.nan
    subject.weights["unembed.W_U"][1] = torch.nan
    for sick, healthy in (
        (embedding_spectrum(subject).power, embedding.power),
        (neuron_logit_spectrum(subject).power, logits.power),
    ):
        assert sick[1].isnan().all()
        assert torch.equal(sick[[0, 2]], healthy[[0, 2]])


def test_float32_weights_are_multiplied_in_float64() -> None:
    run = small_run("add_mod11", 0, precision="float32")
    subject, state, _ = trained([run])
    wide = subject_of([run], state.weights.double())
    assert torch.equal(neuron_logit_map(subject), neuron_logit_map(wide))
    assert torch.equal(embedding_spectrum(subject).power, embedding_spectrum(wide).power)


# What cannot be read.


def test_a_model_without_an_mlp_has_no_map() -> None:
    subject, _, _ = trained([small_run("add_mod11", 0, ARCHITECTURES["attention_only"])])
    with pytest.raises(InputError, match="no MLP"):
        neuron_logit_spectrum(subject)
    assert embedding_spectrum(subject).power.shape == (1, 5)


def test_a_basis_over_more_symbols_is_rejected() -> None:
    subject, _, _ = trained([small_run("add_mod7", 0)])
    with pytest.raises(InputError, match="add_mod7 has 7 symbols, got a basis over 11"):
        embedding_spectrum(subject, named_task("add_mod11").basis())


@pytest.mark.gpu
def test_a_gpu_reads_alike() -> None:
    run = small_run("S3", 0)
    subject, state, _ = trained([run])
    there = subject_of([run], state.weights.cuda())
    assert torch.allclose(embedding_spectrum(subject).power, embedding_spectrum(there).power.cpu())
    assert torch.allclose(neuron_logit_spectrum(subject).power, neuron_logit_spectrum(there).power.cpu())
    assert torch.allclose(
        spectrum(neuron_logit_map(there), there.task.basis()).power.cpu(), neuron_logit_spectrum(subject).power
    )
