"""The quadratic network with analytic weights: every measure that applies to it, at its exact value."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grokscope.activations import RunStack, subject_of
from grokscope.errors import InputError
from grokscope.measures import (
    Question,
    ablation,
    excluded_loss_by_mode,
    filtered_loss,
    formulas,
    fourier_kan,
    fourier_rank,
    fsd,
    fsd_gen,
    fsd_top_k,
    gini,
    inverse_participation_ratio,
    key_modes,
    logit_structure,
    measure,
    norms,
    refitted,
    scores,
    snapshot,
    spectral_entropy,
    variant_loss,
)
from grokscope.measures.ablation import other_inputs
from grokscope.model import AnalyticNetwork, analytic_network, forward, layout_of, padded_sizes, row_losses
from grokscope.model.analytic import _UNWANTED, FEWEST_NEURONS, _second_phase
from grokscope.specs import RunSpec, Training
from grokscope.tasks import named_task
from grokscope.training import Cohort, advance, initial_state

EXACT = {"abs": 1e-13, "rel": 1e-12}
SITE = "layers.0.hook_post"
CASES = {
    "p = 5": (5, (6, 6)),
    "p = 7, one frequency left out": (7, (6, 0, 9)),
    "p = 11, all counts different": (11, (6, 7, 8, 9, 20)),
    "p = 15, no prime": (15, (6,) * 7),
    "p = 23": (23, (6,) * 11),
    "p = 23, one frequency alone": (23, (0,) * 4 + (50,) + (0,) * 6),
    "p = 97": (97, (6,) * 48),
    "p = 97, five frequencies": (97, tuple({4: 100, 9: 110, 25: 90, 31: 102, 46: 110}.get(k, 0) for k in range(48))),
}
cases = pytest.mark.parametrize("case", CASES)


@lru_cache
def network_of(case: str) -> AnalyticNetwork:
    p, counts = CASES[case]
    return analytic_network(named_task(f"add_mod{p}"), counts)


@lru_cache
def subject_in(case: str) -> RunStack:
    return subject_of([run_of(case)], network_of(case).weights)


def run_of(case: str) -> RunSpec:
    architecture, training = network_of(case).architecture, Training(loss="mse", weight_decay=0.0, batch_size=None)
    return RunSpec(f"add_mod{CASES[case][0]}", architecture=architecture, training=training, precision="float64")


def missing(counts: Sequence[int]) -> int:
    return sum(count == 0 for count in counts)


@cases
def test_outputs_are_one_at_the_answer_and_zero_elsewhere(case: str) -> None:
    p, counts = CASES[case]
    away = np.arange(p)[:, None] + np.arange(p)[None] - np.arange(p)[:, None, None]  # a + b − c, [c, a, b]
    waves = [np.cos(2 * np.pi * k * away / p) for k, count in enumerate(counts, start=1) if count]
    expected = (1 + 2 * sum(waves)) / p
    found = subject_in(case).logits()[0].numpy().reshape(p, p, p).transpose(2, 0, 1)
    assert np.abs(found - expected).max() < 1e-13
    if not missing(counts):
        assert np.abs(found - (away % p == 0)).max() < 1e-13


@cases
def test_the_loss_is_at_its_minimum_and_every_answer_is_right(case: str) -> None:
    p, counts = CASES[case]
    found = scores(subject_in(case))
    for loss in (found.loss, found.train_loss, found.validation_loss):
        assert loss.item() == pytest.approx(2 * missing(counts) / p**2, **EXACT)
    assert found.accuracy.item() == found.train_accuracy.item() == found.validation_accuracy.item() == 1
    if not missing(counts):
        assert found.loss.item() < 1e-28


def test_classes_tie_where_frequencies_share_a_divisor_with_the_modulus() -> None:
    network = analytic_network(named_task("add_mod15"), [0] * 4 + [6, 0, 0])
    run = RunSpec("add_mod15", architecture=network.architecture, training=Training(loss="mse"))
    subject = subject_of([run], network.weights)
    assert scores(subject).loss.item() == pytest.approx(2 * 6 / 15**2, **EXACT)
    highest = subject.logits()[0].topk(5, dim=-1)  # of the 15 classes those that differ by a multiple of 3
    assert np.ptp(highest.values.numpy(), axis=1).max() < 1e-13
    assert ((highest.indices - subject.answers[:, None]) % 3 == 0).all()


@cases
def test_no_gradient_is_left(case: str) -> None:
    # Also with frequencies left out: what is wrong has other frequencies than any neuron could correct.
    subject = subject_in(case)
    flat = network_of(case).weights.clone().requires_grad_()
    weights = layout_of(subject.architecture, padded_sizes(subject.task)).views(flat)
    given, classes = subject.given(slice(None))[None], torch.tensor([subject.task.classes])
    outputs = forward(weights, subject.architecture, given, classes=classes)
    row_losses(outputs, subject.labels, "mse", classes).mean().backward()
    assert flat.grad is not None
    assert flat.grad.abs().max() < 1e-15


def test_gradient_descent_does_not_move_it() -> None:
    case = "p = 11, all counts different"
    run = run_of(case)
    # ε far above the gradient: with a small one Adam makes whole steps of gradients that are rounding.
    cohort = Cohort([replace(run, training=replace(run.training, epsilon=1.0))])
    state = initial_state(cohort)
    state.weights.copy_(network_of(case).weights)
    state, info = advance(state, cohort, 20)
    assert info.loss.max() < 1e-28
    assert (state.weights - network_of(case).weights).abs().max() < 1e-15


@cases
def test_every_neuron_is_a_constant_and_one_wave_of_its_own_phase(case: str) -> None:
    p, _ = CASES[case]
    network, found = network_of(case), subject_in(case).means(SITE)
    turns = 2 * torch.pi / p * (torch.arange(p)[:, None] * network.frequencies % p).double()
    assert (found.means[0] - 1 - (turns + network.phases.sum(dim=0)).cos()).abs().max() < 1e-12
    assert found.answer_share.item() == pytest.approx(2 / 5, **EXACT)
    ranks = fourier_rank(Question(subject_in(case)).spectrum().power, explained_share=1 - 1e-9)
    assert (ranks.rank == 1).all()
    assert ranks.rank_one_share.item() == 1


@cases
def test_fsd_follows_from_the_counts(case: str) -> None:
    counts = np.array(CASES[case][1])
    density, modes, shares = Question(subject_in(case)).spectrum().density, len(counts), counts / counts.sum()
    found = fsd(density)
    assert found.fsd.item() == pytest.approx((shares.max() - 1 / modes) / (1 - 1 / modes), **EXACT)
    assert found.participation[0].tolist() == pytest.approx(shares.tolist(), **EXACT)
    assert counts[found.mode.item()] == counts.max()
    assert torch.equal(found.strongest_mode[0] + 1, network_of(case).frequencies)
    for k in (2, 3):
        if k < modes:
            best = np.sort(shares)[-k:].mean()
            assert fsd_top_k(density, k).fsd.item() == pytest.approx((best - k / modes) / (1 - k / modes), **EXACT)
            peak = (shares.max() - k / modes) / (1 - k / modes)
            assert fsd_gen(density, k).fsd.item() == pytest.approx(peak, **EXACT)


@cases
def test_the_power_of_each_neuron_is_in_one_mode(case: str) -> None:
    counts = np.array(CASES[case][1])
    power, modes, shares = Question(subject_in(case)).spectrum().power, len(counts), counts / counts.sum()
    assert power.sum(dim=1)[0].tolist() == pytest.approx([CASES[case][0] / 2] * counts.sum(), **EXACT)
    entropy = -sum(share * log(share) for share in shares if share) / log(modes)
    ordered = (2 * np.arange(1, modes + 1) - modes - 1) @ np.sort(shares) / modes
    expected = {
        inverse_participation_ratio: (1, (shares**2).sum()),
        gini: (1 - 1 / modes, ordered),
        spectral_entropy: (0, entropy),
    }
    for concentration, (alone, together) in expected.items():
        found = concentration(power)
        assert found.neuron.min().item() == pytest.approx(alone, **EXACT)
        assert found.neuron.max().item() == pytest.approx(alone, **EXACT)
        assert found.pooled.item() == pytest.approx(together, **EXACT)


@cases
def test_formulas_have_the_amplitude_and_the_phase_of_each_neuron(case: str) -> None:
    network, means = network_of(case), subject_in(case).means(SITE).means[0]
    fit = fourier_kan(means, named_task(f"add_mod{CASES[case][0]}").basis())
    assert fit.agreement.item() == 1
    phases = network.phases.sum(dim=0)
    cosine, sine = phases.cos().abs(), phases.sin().abs()
    lost = 0.1 * torch.maximum(cosine, sine)  # what the penalty takes from each coefficient
    assert (
        fit.r_squared - 1 + lost.square() + torch.minimum(lost, torch.minimum(cosine, sine)) ** 2
    ).abs().max() < 1e-12
    exact = refitted(means, fit)
    assert (exact.r_squared - 1).abs().max() < 1e-12
    neurons = zip(formulas(exact), network.frequencies.tolist(), phases.tolist(), strict=True)
    for formula, frequency, phase in neurons:
        (wave,) = formula.waves
        assert wave.frequency == frequency
        assert (wave.amplitude, formula.constant, formula.variance) == pytest.approx((1, 1, 0.5), **EXACT)
        turned = (wave.phase + phase) / (2 * np.pi)
        assert turned == pytest.approx(round(turned), abs=1e-12)


def test_a_formula_as_it_is_read() -> None:
    means = subject_in("p = 5").means(SITE).means[0]
    found = formulas(refitted(means, fourier_kan(means, named_task("add_mod5").basis())))
    # φ + ψ = 5 · 2π/6 of the second neuron, and the phase of the formula is its negative.
    assert [formula.text() for formula in found[:2]] == ["1.0 + 1.0·cos(2πs/5)", "1.0 + 1.0·cos(2πs/5 − 1.05)"]


@cases
def test_restricted_losses_count_the_frequencies_that_are_missing(case: str) -> None:
    p, counts = CASES[case]
    subject, there = subject_in(case), torch.tensor(counts) > 0
    assert torch.equal(key_modes(subject)[0], there)
    for kept in (1, 7):
        if kept > there.sum():
            continue
        expected = 2 * (len(counts) - kept) / p**2
        first = torch.zeros_like(there).index_fill(0, there.nonzero()[:kept, 0], True)[None]
        for name in ("trig", "paper_restricted"):
            found = variant_loss(subject, name, first)
            assert found.loss.item() == pytest.approx(expected, **EXACT)
        assert variant_loss(subject, "cube_restricted", first).loss.item() == pytest.approx(
            expected + 1 / p**2, **EXACT
        )
        if p < 97:
            kept_pairs = filtered_loss(subject, SITE, first, kind="input_pairs")
            assert kept_pairs.loss.item() == pytest.approx(expected, **EXACT)
    for name in ("trig", "paper_restricted"):
        assert variant_loss(subject, name, there[None]).loss.item() == pytest.approx(
            2 * missing(counts) / p**2, **EXACT
        )


@cases
def test_excluded_losses_count_the_frequencies_that_are_removed(case: str) -> None:
    p, counts = CASES[case]
    subject, there = subject_in(case), torch.tensor(counts) > 0
    chance = (p - 1) / p**2  # of 1/p for every class
    for name in ("excluded", "cube_excluded", "neuron_excluded"):
        assert variant_loss(subject, name).loss.item() == pytest.approx(chance, **EXACT)
    if p < 97:
        each = excluded_loss_by_mode(subject).loss[0]
        expected = 2 * (missing(counts) + there.double()) / p**2
        assert each.tolist() == pytest.approx(expected.tolist(), **EXACT)
    without = filtered_loss(subject, SITE, 1, "remove")
    assert without.loss.item() == pytest.approx(2 * (missing(counts) + 1) / p**2, **EXACT)


@cases
def test_the_outputs_are_cosines_of_a_plus_b_minus_c(case: str) -> None:
    p, counts = CASES[case]
    found, there = logit_structure(subject_in(case)), np.array(counts) > 0
    assert found.total.item() == pytest.approx(1, **EXACT)
    assert found.explained[0].tolist() == pytest.approx((there / there.sum()).tolist(), **EXACT)
    assert found.height[0].tolist() == pytest.approx((2 / p * there).tolist(), **EXACT)
    assert found.variance.item() == pytest.approx(2 * there.sum() / p**2, **EXACT)


@cases
def test_norms_follow_from_the_counts(case: str) -> None:
    p, counts = CASES[case]
    found, neurons = norms(subject_in(case)), sum(counts)
    reading, writing = neurons * p, sum(8 / (p * count) for count in counts if count) + 1 / (p * neurons)
    assert found.by_block["layers.0"].item() ** 2 == pytest.approx(reading, **EXACT)
    assert found.by_block["unembed"].item() ** 2 == pytest.approx(writing, **EXACT)
    assert found.total.item() ** 2 == pytest.approx(reading + writing, **EXACT)


@cases
def test_without_its_neurons_it_guesses(case: str) -> None:
    p, _ = CASES[case]
    subject = subject_in(case)
    (zero,) = ablation(subject)
    assert zero.accuracy_drop.item() == pytest.approx(1 - 1 / p, **EXACT)
    assert zero.scores.loss.item() == pytest.approx(1 / p, **EXACT)
    (mean,) = ablation(subject, method="mean")
    assert mean.scores.loss.item() == pytest.approx((p - 1) / p**2, **EXACT)
    (other,) = ablation(subject, method="resample", seed=3)
    answers = subject.task.answers
    stays = (answers[other_inputs(len(answers), 3).numpy()] == answers).mean()
    assert other.accuracy_drop.item() == pytest.approx(1 - stays, **EXACT)


@pytest.mark.parametrize("case", ["p = 7, one frequency left out", "p = 11, all counts different", "p = 97"])
def test_evaluations_in_training_read_the_same(case: str) -> None:
    cohort = Cohort([run_of(case)])
    row = snapshot(network_of(case).weights, cohort, compiled=False).row(0)
    names = {"fsd": "fsd", "rank": "rank", "answer_share": "answer_share"}
    (expected,) = measure(Question(subject_in(case)), ["fsd", "rank", "norms", "memorization"])
    names |= {name: name for name in ("norm", "train_loss", "validation_loss", "train_accuracy", "validation_accuracy")}
    assert [row[name] for name in names] == pytest.approx([expected[name] for name in names.values()], **EXACT)


@given(st.integers(FEWEST_NEURONS, 1000))
def test_unwanted_waves_cancel_over_any_number_of_neurons(count: int) -> None:
    steps = np.arange(count)
    phases = np.stack([steps, _second_phase(count) * steps])
    for wave in _UNWANTED:
        assert abs(np.exp(2j * np.pi * (np.array(wave) @ phases % count) / count).sum()) < 1e-10 * count


def test_fewer_neurons_cannot_cancel() -> None:
    for count in range(1, FEWEST_NEURONS):
        pairs = [(u, v) for u in range(count) for v in range(count)]
        assert not any(all((x * u + y * v) % count for x, y in _UNWANTED) for u, v in pairs)


@pytest.mark.parametrize(
    ("task", "neurons", "problem"),
    [
        ("add_mod6", 6, "adds modulo an odd number, as add_mod97 does, got add_mod6"),
        ("sub_mod7", 6, "adds modulo an odd number, as add_mod97 does, got sub_mod7"),
        ("mult_mod7", 6, "got mult_mod7"),
        ("S3", 6, "got S3"),
        ("parity_n6_k2", 6, "got parity_n6_k2"),
        ("add_mod7", 5, "a frequency has 0 or at least 6 neurons, got 5"),
        ("add_mod7", (0, 0, 0), "at least one frequency must have neurons"),
        (
            "add_mod7",
            (6, 6),
            "add_mod7 has 3 frequencies, and neurons must be one number for each, or one for all, got 2",
        ),
    ],
)
def test_what_it_cannot_be_made_of_is_rejected(task: str, neurons: int | tuple[int, ...], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        analytic_network(named_task(task), neurons)
