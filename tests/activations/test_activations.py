from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_runs import ARCHITECTURES, SMALL, TWO_LAYERS, in_slot, small_run, twin_in
from torch import Tensor

from grokscope.activations import (
    Subject,
    answer_sums,
    condition_of,
    conditioned_means,
    conditioning_basis,
    means_of,
    subject_of,
)
from grokscope.errors import InputError
from grokscope.measures.spectrum import spectrum
from grokscope.measures.synchronization import fsd
from grokscope.model import Twin
from grokscope.specs import Architecture
from grokscope.tasks import named_task, shuffled_labels, split
from grokscope.training import Cohort

HIDDEN = "blocks.0.mlp.hook_post"


def some_runs(
    task: str = "add_mod31", runs: int = 3, architecture: Architecture = TWO_LAYERS, **fields
) -> tuple[Subject, Cohort, Tensor]:
    """Untrained runs, the cohort they come from and their flat weights."""
    cohort = Cohort([small_run(task, seed, architecture, **fields) for seed in range(runs)])
    flat = cohort.initial()
    return subject_of(cohort.specs, flat), cohort, flat


# Sums over the pairs with each answer.


@given(st.integers(1, 3), st.integers(1, 20), st.integers(1, 4), st.integers(1, 6), st.integers(0, 10**6))
def test_sums_equal_a_loop(runs: int, inputs: int, neurons: int, size: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    activation = torch.randn(runs, inputs, neurons, generator=generator, dtype=torch.float64)
    answers = torch.randint(-1, size, (runs, inputs), generator=generator)  # −1 leaves a pair out
    expected = torch.zeros(runs, size, neurons, dtype=torch.float64)
    for run in range(runs):
        for i in range(inputs):
            if answers[run, i] >= 0:
                expected[run, answers[run, i]] += activation[run, i]
    assert torch.allclose(answer_sums(activation, answers, size), expected, rtol=0, atol=1e-13)


def test_what_is_left_out_may_be_nan() -> None:
    activation = torch.ones(2, 3, 1)
    activation[0, 1] = torch.nan
    sums = answer_sums(activation, torch.tensor([[0, -1, 1], [1, 1, 0]]), 2)
    assert sums[..., 0].tolist() == [[1.0, 1.0], [1.0, 2.0]]


@given(st.permutations(range(12)))
def test_the_order_of_pairs_does_not_matter(order: list[int]) -> None:
    activation = torch.randn(1, 12, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    answers = torch.arange(12)[None] % 4
    shuffled = answer_sums(activation[:, order], answers[:, order], 4)
    assert torch.allclose(shuffled, answer_sums(activation, answers, 4), rtol=0, atol=1e-13)


def test_an_answer_nobody_gives_is_zero() -> None:
    sums = answer_sums(torch.ones(1, 2, 2), torch.tensor([[0, 2]]), 4)
    assert sums[0, :, 0].tolist() == pytest.approx([1, 0, 1, 0])


# Means.


def means_by_loop(activation: Tensor, condition: np.ndarray, size: int) -> tuple[np.ndarray, float]:
    """A[s, j] and the answer share of one run, from their definitions in float64."""
    values = activation.double().numpy()
    means, between, total = np.zeros((size, values.shape[1])), 0.0, 0.0
    for j in range(values.shape[1]):
        overall = float(np.mean(values[:, j]))
        for s in range(size):
            chosen = [values[i, j] for i in range(len(values)) if condition[i] == s]
            means[s, j] = sum(chosen) / len(chosen) if chosen else 0
            between += len(chosen) * (means[s, j] - overall) ** 2
        total += sum((value - overall) ** 2 for value in values[:, j])
    return means, between / total


@given(st.integers(1, 2), st.integers(2, 20), st.integers(1, 3), st.integers(1, 6), st.integers(0, 10**6))
@settings(max_examples=25)
def test_means_and_share_equal_a_loop(runs: int, inputs: int, neurons: int, size: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    activation = torch.from_numpy(generator.normal(5, 1, size=(runs, inputs, neurons)))
    condition = generator.integers(0, size, inputs)
    found = means_of(activation, torch.from_numpy(condition), size)
    assert found.counts.tolist() == [int((condition == s).sum()) for s in range(size)]
    assert found.finite.all()
    for run in range(runs):
        means, share = means_by_loop(activation[run], condition, size)
        assert torch.allclose(found.means[run], torch.from_numpy(means), rtol=0, atol=1e-12)
        assert float(found.answer_share[run]) == pytest.approx(share, abs=1e-10)


@pytest.mark.parametrize("task", ["add_mod11", "sub_mod11", "mult_mod11", "div_mod11", "S3", "poly_a2+b2_mod11"])
def test_a_sites_means_are_those_of_its_activations(task: str) -> None:
    subject, _, _ = some_runs(task)
    activation = subject.read(HIDDEN)
    found = conditioned_means(subject, HIDDEN)
    for run in range(3):
        means, share = means_by_loop(activation[run], subject.task.answers, subject.task.symbols)
        assert torch.allclose(found.means[run], torch.from_numpy(means), rtol=0, atol=1e-12)
        assert float(found.answer_share[run]) == pytest.approx(share, rel=1e-8)
        assert 0 < share < 1


@pytest.mark.parametrize("task", ["mult_mod11", "div_mod11"])
def test_answers_and_sums_are_two_readings(task: str) -> None:
    subject, _, _ = some_runs(task)
    by_answer, by_sum = (conditioned_means(subject, HIDDEN, by) for by in ("answer", "sum"))
    a, b = subject.task.inputs.T
    means, share = means_by_loop(subject.read(HIDDEN)[1], (a + b) % 11, 11)
    assert torch.allclose(by_sum.means[1], torch.from_numpy(means), rtol=0, atol=1e-12)
    assert float(by_sum.answer_share[1]) == pytest.approx(share, rel=1e-8)
    assert not torch.allclose(by_sum.means, by_answer.means, atol=1e-6)
    assert conditioning_basis(subject.task, "sum").answers.tolist() == list(range(11))


@pytest.mark.parametrize("p", [7, 11])
def test_multiplication_and_division_have_unequal_counts(p: int) -> None:
    # 0 has 2p − 1 products and p − 1 quotients; every other answer has p − 1 of either.
    for task, zero in ((f"mult_mod{p}", 2 * p - 1), (f"div_mod{p}", p - 1)):
        subject, _, _ = some_runs(task, runs=1)
        assert conditioned_means(subject, HIDDEN).counts.tolist() == [zero] + [p - 1] * (p - 1)
    assert conditioned_means(some_runs(f"mult_mod{p}", 1)[0], HIDDEN, "sum").counts.tolist() == [p] * p
    assert sorted(conditioned_means(some_runs(f"div_mod{p}", 1)[0], HIDDEN, "sum").counts.tolist()) == [p - 1] * p


def test_an_answer_without_pairs_has_mean_zero_and_no_weight() -> None:
    activation = torch.tensor([[[3.0], [5.0], [3.0], [5.0]]])
    found = means_of(activation, torch.tensor([0, 2, 0, 2]), 4)
    assert found.counts.tolist() == [2, 0, 2, 0]
    assert found.means[0, :, 0].tolist() == [3.0, 0.0, 5.0, 0.0]
    assert float(found.answer_share) == pytest.approx(1)  # all variation is the answer's


def test_a_ten_thousandth_on_an_offset_of_one_survives_float32() -> None:
    task = named_task("add_mod97")
    wave = 1e-4 * np.cos(2 * np.pi * 3 * np.arange(97) / 97)
    noise = np.random.default_rng(0).normal(size=(97 * 97, 1)) * 1e-4
    activation = torch.from_numpy(1 + wave[task.answers][:, None] + noise).float()[None]
    found = means_of(activation, torch.tensor(task.answers), 97)
    assert found.means.dtype == torch.float64
    exact, share = means_by_loop(activation[0], task.answers, 97)
    assert torch.allclose(found.means[0], torch.from_numpy(exact), rtol=0, atol=1e-14)
    assert float(found.answer_share) == pytest.approx(share, rel=1e-6)
    power = spectrum(found.means, task.basis()).power[0, :, 0]
    assert power.argmax() == 2
    assert float(power[2]) == pytest.approx(97 / 2 * 1e-8, rel=0.1)


def test_what_never_varies_has_no_share() -> None:
    found = means_of(torch.full((1, 6, 2), 0.3), torch.tensor([0, 1, 2, 0, 1, 2]), 3)
    assert found.answer_share.isnan().all()
    assert found.finite.all()


def test_every_position_stands_beside_the_others() -> None:
    subject, _, _ = some_runs("add_mod31", 2)
    found = conditioned_means(subject, "blocks.0.hook_resid_mid", every_position=True)
    assert found.means.shape == (2, 31, 3 * SMALL.width)
    last = conditioned_means(subject, "blocks.0.hook_resid_mid").means
    assert torch.allclose(found.means[..., 2 * SMALL.width :], last, rtol=0, atol=1e-14)


def test_heads_are_read_as_neurons() -> None:
    subject, _, _ = some_runs("add_mod11", 2)
    z = subject.read("blocks.0.attn.hook_z")
    assert z.shape == (2, 121, SMALL.heads, SMALL.head_width)
    means, _ = means_by_loop(z[1].flatten(1), subject.task.answers, 11)
    assert torch.allclose(conditioned_means(subject, "blocks.0.attn.hook_z").means[1], torch.from_numpy(means))


def test_words_that_name_no_reading_are_refused() -> None:
    with pytest.raises(InputError, match="S3 has no sums a \\+ b to condition on"):
        condition_of(named_task("S3"), "sum")
    with pytest.raises(InputError, match="additive basis only, got 'multiplicative'"):
        conditioning_basis(named_task("mult_mod7"), "sum", "multiplicative")
    with pytest.raises(InputError, match=r"did you mean 'blocks\.0\.mlp\.hook_post'"):
        conditioned_means(some_runs("add_mod7", 1)[0], "blocks.0.mlp.hook_pst")


# NaN.


@pytest.mark.parametrize("task", ["add_mod11", "mult_mod11", "S3"])
def test_a_run_of_nan_in_a_stack_leaves_its_neighbours_alone(task: str) -> None:
    subject, cohort, flat = some_runs(task)
    healthy = conditioned_means(subject, HIDDEN)
    sick = flat.clone()
    sick[1] = torch.nan
    found = conditioned_means(subject_of(cohort.specs, sick), HIDDEN)
    assert found.finite.tolist() == [True, False, True]
    assert found.answer_share.isnan().tolist() == [False, True, False]
    assert torch.equal(found.means[[0, 2]], healthy.means[[0, 2]])
    result = fsd(spectrum(found.means, subject.task.basis()).density)
    assert result.fsd.isnan().tolist() == [False, True, False]


def test_one_run_of_nan_is_named_with_its_site() -> None:
    _, cohort, flat = some_runs("add_mod7", 1)
    sick = subject_of(cohort.specs, flat * torch.nan, names=["wd3_s42"])
    with pytest.raises(InputError, match=r"wd3_s42 has activations at blocks\.0\.mlp\.hook_post that are not numbers"):
        conditioned_means(sick, HIDDEN)


# A subject and its twins.


def twins(subject: Subject, cohort: Cohort, flat: Tensor) -> Iterator[tuple[int, Twin]]:
    for slot in range(len(subject)):
        yield slot, twin_in(cohort, flat, slot)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_logits_are_the_twins(name: str) -> None:
    subject, cohort, flat = some_runs("add_mod31", 4, ARCHITECTURES[name])  # in two chunks
    assert len(list(subject.chunks())) == 2
    logits, tokens = subject.logits(), torch.tensor(subject.task.tokens)
    assert logits.shape == (4, 961, 31)
    for slot, twin in twins(subject, cohort, flat):
        with torch.no_grad():
            assert torch.allclose(logits[slot], twin(tokens), rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    "site", [HIDDEN, "blocks.1.hook_attn_out", "blocks.1.hook_resid_post", "blocks.0.hook_mlp_out"]
)
def test_a_site_is_what_a_hook_in_the_twin_sees(site: str) -> None:
    subject, cohort, flat = some_runs("div_mod11", 2)
    values, tokens = subject.read(site), torch.tensor(subject.task.tokens)
    for slot, twin in twins(subject, cohort, flat):
        seen: list[Tensor] = []
        twin.get_submodule(site).register_forward_hook(lambda module, inputs, out, seen=seen: seen.append(out))
        with torch.no_grad():
            twin(tokens)
        assert torch.allclose(values[slot], seen[0][:, -1], rtol=0, atol=1e-12)


def test_attention_patterns_are_what_the_last_position_sees() -> None:
    subject, _, _ = some_runs("add_mod7", 2)
    pattern = subject.read("blocks.1.attn.hook_pattern")
    assert pattern.shape == (2, 49, SMALL.heads, 3)
    assert torch.allclose(pattern.sum(dim=-1), torch.ones(2, 49, SMALL.heads, dtype=torch.float64))


def test_reading_never_changes_the_weights() -> None:
    subject, _, flat = some_runs("add_mod11")
    before = flat.clone()
    conditioned_means(subject, HIDDEN)
    conditioned_means(subject, "blocks.1.hook_resid_post", every_position=True)
    subject.logits({HIDDEN: lambda value, rows: value.zero_()})
    assert torch.equal(flat, before)


def test_an_edit_knows_its_rows() -> None:
    subject, _, _ = some_runs("add_mod31", 4)
    plain, hidden = subject.logits(), subject.read(HIDDEN)
    seen: list[int] = []

    def put_back(value: Tensor, rows: slice) -> Tensor:
        seen.extend(range(rows.start, rows.stop))
        value = value.clone()
        value[:, -1] = hidden[:, rows]
        return value

    assert torch.allclose(subject.logits({HIDDEN: put_back}), plain, rtol=0, atol=1e-13)
    assert seen == list(range(961))
    assert not torch.allclose(subject.logits({HIDDEN: lambda value, rows: torch.zeros_like(value)}), plain, atol=1e-3)


def test_together_equals_alone_and_some_can_be_chosen() -> None:
    subject, cohort, flat = some_runs("mult_mod11")
    for slot, spec in enumerate(cohort.specs):
        alone = subject_of([spec], flat[slot : slot + 1])
        assert torch.allclose(alone.logits()[0], subject.logits()[slot], rtol=0, atol=1e-12)
    chosen = subject.select([2, 0])
    assert chosen.names == ("run 2", "run 0")
    assert torch.equal(chosen.is_train, subject.is_train[[2, 0]])
    assert torch.allclose(chosen.logits(), subject.logits()[[2, 0]], rtol=0, atol=1e-12)


def test_a_subject_knows_what_its_runs_were_trained_on() -> None:
    subject, cohort, flat = some_runs("add_mod11", 2, shuffled_labels=True)
    for slot, spec in enumerate(cohort.specs):
        train = split(subject.task, spec.train_fraction, spec.seeds.split).train
        assert sorted(subject.is_train[slot].nonzero().flatten().tolist()) == sorted(train.tolist())
        assert subject.labels[slot].tolist() == shuffled_labels(subject.task, spec.seeds.split).tolist()
    assert subject.answers.tolist() == subject.task.answers.tolist()
    own = in_slot(cohort, flat, 1)["embed.W_E"]
    assert torch.equal(subject.weights["embed.W_E"][1, :12], own)


def test_runs_of_two_kinds_are_no_subject() -> None:
    cohort = Cohort([small_run("add_mod7"), small_run("mult_mod7")])
    with pytest.raises(InputError, match="must share task and architecture, got 2 kinds"):
        subject_of(cohort.specs, cohort.initial())
