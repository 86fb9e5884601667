from collections.abc import Iterator

import pytest
import torch
from plain_runs import ARCHITECTURES, SMALL, TWO_LAYERS, in_slot, reference_in, small_run
from torch import Tensor
from torch.nn.functional import cross_entropy

from grokscope.activations import (
    RunStack,
    conditioning_basis,
    means_of,
    run_stack,
    subject_of,
)
from grokscope.errors import InputError
from grokscope.measures.spectrum import spectrum
from grokscope.measures.synchronization import fsd
from grokscope.model import ReferenceModule
from grokscope.specs import Architecture
from grokscope.tasks import shuffled_labels, split
from grokscope.training import Cohort

HIDDEN = "blocks.0.mlp.hook_post"


def some_runs(
    task: str = "add_mod31", runs: int = 3, architecture: Architecture = TWO_LAYERS, **fields
) -> tuple[RunStack, Cohort, Tensor]:
    """Untrained runs, the cohort they come from and their flat weights."""
    cohort = Cohort([small_run(task, seed, architecture, **fields) for seed in range(runs)])
    flat = cohort.initial()
    return subject_of(cohort.specs, flat), cohort, flat


@pytest.mark.parametrize("task", ["add_mod11", "sub_mod11", "mult_mod11", "div_mod11", "S3", "poly_a2+b2_mod11"])
def test_a_sites_means_are_those_of_its_activations(task: str) -> None:
    subject, _, _ = some_runs(task)
    found = subject.means(HIDDEN)
    expected = means_of(subject.read(HIDDEN), torch.tensor(subject.task.answers), subject.task.symbols)
    assert torch.allclose(found.means, expected.means, rtol=0, atol=1e-12)
    assert torch.allclose(found.answer_share, expected.answer_share, rtol=1e-8, atol=0)
    assert ((found.answer_share > 0) & (found.answer_share < 1)).all()


def test_a_site_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(run_stack.PAIRS_AT_ONCE, "cpu", 1)
    subject, _, _ = some_runs("add_mod11")
    parts = list(subject.read_parts(HIDDEN))
    assert [rows.stop - rows.start for rows, _ in parts] == [64, 57]
    assert torch.equal(torch.cat([values for _, values in parts], dim=1), subject.read(HIDDEN))


@pytest.mark.parametrize("task", ["mult_mod11", "div_mod11"])
def test_answers_and_sums_are_two_readings(task: str) -> None:
    subject, _, _ = some_runs(task)
    by_answer, by_sum = (subject.means(HIDDEN, by) for by in ("answer", "sum"))
    a, b = subject.task.inputs.T
    expected = means_of(subject.read(HIDDEN), torch.tensor((a + b) % 11), 11)
    assert torch.allclose(by_sum.means, expected.means, rtol=0, atol=1e-12)
    assert torch.allclose(by_sum.answer_share, expected.answer_share, rtol=1e-8, atol=0)
    assert not torch.allclose(by_sum.means, by_answer.means, atol=1e-6)
    assert conditioning_basis(subject.task, "sum").answers.tolist() == list(range(11))


@pytest.mark.parametrize("p", [7, 11])
def test_multiplication_and_division_have_unequal_counts(p: int) -> None:
    # 0 has 2p − 1 products and p − 1 quotients; every other answer has p − 1 of either.
    for task, zero in ((f"mult_mod{p}", 2 * p - 1), (f"div_mod{p}", p - 1)):
        subject, _, _ = some_runs(task, runs=1)
        assert subject.means(HIDDEN).counts.tolist() == [zero] + [p - 1] * (p - 1)
    assert some_runs(f"mult_mod{p}", 1)[0].means(HIDDEN, "sum").counts.tolist() == [p] * p
    assert sorted(some_runs(f"div_mod{p}", 1)[0].means(HIDDEN, "sum").counts.tolist()) == [p - 1] * p


def test_every_position_stands_beside_the_others() -> None:
    subject, _, _ = some_runs("add_mod31", 2)
    found = subject.means("blocks.0.hook_resid_mid", every_position=True)
    assert found.means.shape == (2, 31, 3 * SMALL.width)
    last = subject.means("blocks.0.hook_resid_mid").means
    assert torch.allclose(found.means[..., 2 * SMALL.width :], last, rtol=0, atol=1e-14)


def test_heads_are_read_as_neurons() -> None:
    subject, _, _ = some_runs("add_mod11", 2)
    z = subject.read("blocks.0.attn.hook_z")
    assert z.shape == (2, 121, SMALL.heads, SMALL.head_width)
    expected = means_of(z, torch.tensor(subject.task.answers), 11).means
    assert torch.allclose(subject.means("blocks.0.attn.hook_z").means, expected)


def test_a_site_that_the_model_lacks_is_rejected() -> None:
    with pytest.raises(InputError, match=r"did you mean 'blocks\.0\.mlp\.hook_post'"):
        some_runs("add_mod7", 1)[0].means("blocks.0.mlp.hook_pst")


# NaN.


@pytest.mark.parametrize("task", ["add_mod11", "mult_mod11", "S3"])
def test_a_run_of_nan_in_a_stack_leaves_its_neighbours_alone(task: str) -> None:
    subject, cohort, flat = some_runs(task)
    healthy = subject.means(HIDDEN)
    sick = flat.clone()
    sick[1] = torch.nan
    found = subject_of(cohort.specs, sick).means(HIDDEN)
    assert found.finite.tolist() == [True, False, True]
    assert found.answer_share.isnan().tolist() == [False, True, False]
    assert torch.equal(found.means[[0, 2]], healthy.means[[0, 2]])
    result = fsd(spectrum(found.means, subject.task.basis()).density)
    assert result.fsd.isnan().tolist() == [False, True, False]


def test_one_run_of_nan_is_named_with_its_site() -> None:
    _, cohort, flat = some_runs("add_mod7", 1)
    sick = subject_of(cohort.specs, flat * torch.nan, names=["wd3_s42"])
    with pytest.raises(InputError, match=r"wd3_s42 has activations at blocks\.0\.mlp\.hook_post that are not numbers"):
        sick.means(HIDDEN)


# A subject and its reference modules.


def reference_modules(subject: RunStack, cohort: Cohort, flat: Tensor) -> Iterator[tuple[int, ReferenceModule]]:
    for slot in range(len(subject)):
        yield slot, reference_in(cohort, flat, slot)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_logits_are_the_reference_modules(name: str) -> None:
    subject, cohort, flat = some_runs("add_mod31", 4, ARCHITECTURES[name])  # in two chunks
    assert len(list(subject.chunks())) == 2
    logits, tokens = subject.logits(), torch.tensor(subject.task.tokens)
    assert logits.shape == (4, 961, 31)
    for slot, reference in reference_modules(subject, cohort, flat):
        with torch.no_grad():
            assert torch.allclose(logits[slot], reference(tokens), rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    "site", [HIDDEN, "blocks.1.hook_attn_out", "blocks.1.hook_resid_post", "blocks.0.hook_mlp_out"]
)
def test_a_site_is_what_a_hook_in_the_reference_module_sees(site: str) -> None:
    subject, cohort, flat = some_runs("div_mod11", 2)
    values, tokens = subject.read(site), torch.tensor(subject.task.tokens)
    for slot, reference in reference_modules(subject, cohort, flat):
        seen: list[Tensor] = []
        reference.get_submodule(site).register_forward_hook(lambda module, inputs, out, seen=seen: seen.append(out))
        with torch.no_grad():
            reference(tokens)
        assert torch.allclose(values[slot], seen[0][:, -1], rtol=0, atol=1e-12)


def test_attention_patterns_are_what_the_last_position_sees() -> None:
    subject, _, _ = some_runs("add_mod7", 2)
    pattern = subject.read("blocks.1.attn.hook_pattern")
    assert pattern.shape == (2, 49, SMALL.heads, 3)
    assert torch.allclose(pattern.sum(dim=-1), torch.ones(2, 49, SMALL.heads, dtype=torch.float64))


def test_reading_never_changes_the_weights() -> None:
    subject, _, flat = some_runs("add_mod11")
    before = flat.clone()
    subject.means(HIDDEN)
    subject.means("blocks.1.hook_resid_post", every_position=True)
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
    with pytest.raises(InputError, match="must share task, architecture and loss, got 2 kinds"):
        subject_of(cohort.specs, cohort.initial())


def test_pairs_are_graded_by_the_labels_that_the_loss_sees() -> None:
    subject, _, _ = some_runs("add_mod31", 4, shuffled_labels=True)
    labels = torch.where(subject.is_train, subject.labels, subject.answers)
    right, loss = subject.graded()
    expected = cross_entropy(subject.logits().double().flatten(0, 1), labels.flatten(), reduction="none").view(4, -1)
    assert torch.allclose(loss, expected, rtol=0, atol=1e-12)
    assert torch.equal(right, (subject.logits().argmax(dim=-1) == labels).double())
    silent = subject.graded({"logits": lambda value, rows: torch.zeros_like(value)})
    assert torch.equal(silent[0], (labels == 0).double()), "where all classes tie the first is the answer"
