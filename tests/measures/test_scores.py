import math
from dataclasses import fields

import pytest
import torch
from plain_runs import ARCHITECTURES, PlainRun, fresh, reference_in, small_run
from torch import Tensor

from grokscope.activations import RunStack, subject_of
from grokscope.measures import snapshot
from grokscope.measures.scores import Scores, scores, scores_of
from grokscope.specs import RunSpec
from grokscope.training import advance

FIELDS = ("train_accuracy", "validation_accuracy", "train_loss", "validation_loss")


def read_at(runs: list[RunSpec], steps: int = 25) -> tuple[RunStack, Scores]:
    state, cohort = fresh(list(runs))
    advance(state, cohort, steps)
    subject = subject_of(runs, state.weights)
    return subject, scores(subject)


def counted(run: RunSpec, logits: list[list[float]]) -> dict[str, float]:
    """Accuracies and losses pair by pair, in Python's own arithmetic."""
    data = PlainRun(run)
    found = {}
    for name, rows, labels in (("train", data.train, data.labels), ("validation", data.validation, data.answers)):
        right, loss = 0, 0.0
        for row in rows.tolist():
            label, own = int(labels[row]), logits[row]
            right += max(range(len(own)), key=own.__getitem__) == label
            loss += math.log(sum(math.exp(logit - max(own)) for logit in own)) + max(own) - own[label]
        found[f"{name}_accuracy"], found[f"{name}_loss"] = right / len(rows), loss / len(rows)
    return found


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("two_layers", "add_mod11"),
        ("two_layers", "div_mod7"),
        ("attention_only", "S3"),
        ("mlp_only_pooled", "mult_mod7"),
        ("nanda", "sub_mod11"),
    ],
)
def test_it_is_a_count_over_the_reference_modules_logits(name: str, task: str) -> None:
    runs = [small_run(task, seed, ARCHITECTURES[name]) for seed in range(2)]
    state, cohort = fresh(list(runs))
    advance(state, cohort, 25)
    found = scores(subject_of(runs, state.weights))
    for slot, run in enumerate(runs):
        with torch.no_grad():
            logits = reference_in(cohort, state.weights, slot)(PlainRun(run).given).tolist()
        expected = counted(run, logits)
        for field in FIELDS:
            assert float(getattr(found, field)[slot]) == pytest.approx(expected[field], abs=1e-11), field
        gap = expected["train_accuracy"] - expected["validation_accuracy"]
        assert float(found.generalization_gap[slot]) == pytest.approx(gap, abs=1e-12)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("task", ["add_mod31", "mult_mod11", "S3"])
def test_it_reads_as_the_snapshot_does(task: str, shuffled: bool) -> None:
    runs = [small_run(task, seed, shuffled_labels=shuffled) for seed in range(3)]
    state, cohort = fresh(list(runs))
    for steps in (0, 15):
        advance(state, cohort, steps)
        found, expected = scores(subject_of(runs, state.weights)), snapshot(state.weights, cohort)
        for field in FIELDS:
            assert torch.allclose(getattr(found, field), getattr(expected, field), atol=1e-12, rtol=0), field


def test_all_pairs_are_the_training_and_the_other_pairs_together() -> None:
    subject, found = read_at([small_run("add_mod31", seed, shuffled_labels=True) for seed in range(3)])
    assert len(list(subject.chunks())) > 1
    share = subject.is_train.double().mean(dim=1)
    for word in ("accuracy", "loss"):
        parts = share * getattr(found, f"train_{word}") + (1 - share) * getattr(found, f"validation_{word}")
        assert torch.allclose(getattr(found, word), parts, rtol=0, atol=1e-12)
    at_hand = scores_of(subject, subject.logits())
    for f in fields(Scores):
        assert torch.allclose(getattr(at_hand, f.name), getattr(found, f.name), rtol=0, atol=1e-12), f.name


def test_where_logits_tie_the_first_class_is_the_answer() -> None:
    subject, _ = read_at([small_run("add_mod11", seed) for seed in range(2)], 0)
    logits = torch.zeros(2, 121, 11, dtype=torch.float64)
    assert torch.equal(scores_of(subject, logits).accuracy, (subject.scored_labels == 0).double().mean(dim=1))
    logits[..., 3:] = 5.0
    assert torch.equal(scores_of(subject, logits).accuracy, (subject.scored_labels == 3).double().mean(dim=1))


def test_shuffled_labels_are_memorised_and_never_generalised() -> None:
    run = small_run("add_mod11", 1, shuffled_labels=True, learning_rate=0.01, weight_decay=0.0)
    _, found = read_at([run], 200)
    assert float(found.train_accuracy) > 0.9
    assert float(found.validation_accuracy) < 0.5
    assert float(found.generalization_gap) > 0.4


def test_a_loss_below_float32s_rounding_is_not_zero() -> None:
    run = small_run("add_mod11", 0, precision="float32")
    subject, _ = read_at([run], 0)
    answers = subject.answers

    def sure(logits: Tensor, rows: slice) -> Tensor:
        wanted = answers[rows, None] == torch.arange(logits.shape[-1])
        return torch.where(wanted, 20.0, 0.0).to(logits).expand_as(logits)

    found = scores(subject, {"logits": sure})
    assert float(found.train_loss) == pytest.approx(math.log1p(10 * math.exp(-20)), rel=1e-6)
    assert float(found.train_accuracy) == float(found.validation_accuracy) == 1


def test_an_edit_changes_what_is_read_and_the_subject_not() -> None:
    runs = [small_run("add_mod11", seed) for seed in range(2)]
    subject, before = read_at(runs)
    silenced = scores(subject, {"blocks.0.mlp.hook_post": lambda value, rows: torch.zeros_like(value)})
    assert not torch.allclose(silenced.train_loss, before.train_loss)
    assert torch.equal(scores(subject).train_loss, before.train_loss)
    same = scores(subject, {"blocks.0.mlp.hook_post": lambda value, rows: value})
    assert torch.equal(same.train_loss, before.train_loss)


def test_logits_that_are_not_numbers_have_no_accuracy() -> None:
    runs = [small_run("add_mod11", seed) for seed in range(3)]
    subject, healthy = read_at(runs)
    subject.weights["blocks.0.mlp.W_in"][1] = torch.nan
    sick = scores(subject)
    for field in (*FIELDS, "generalization_gap"):
        assert getattr(sick, field).isnan().tolist() == [False, True, False], field
        assert torch.equal(getattr(sick, field)[[0, 2]], getattr(healthy, field)[[0, 2]])
    assert scores(subject.select([1])).train_accuracy.isnan().all()


def test_one_validation_pair_of_nan_leaves_the_training_pairs() -> None:
    run = small_run("add_mod11", 0)
    subject, healthy = read_at([run])
    pair = int(PlainRun(run).validation[0])

    def spoiled(logits: Tensor, rows: slice) -> Tensor:
        is_pair = torch.arange(rows.start, rows.stop) == pair
        return torch.where(is_pair[:, None], torch.nan, logits)

    found = scores(subject, {"logits": spoiled})
    assert torch.equal(found.train_accuracy, healthy.train_accuracy)
    assert torch.equal(found.train_loss, healthy.train_loss)
    assert found.validation_accuracy.isnan().all()
    assert found.validation_loss.isnan().all()


@pytest.mark.gpu
def test_a_gpu_reads_alike() -> None:
    runs = [small_run("add_mod11", seed) for seed in range(2)]
    state, _ = fresh(list(runs))
    here, there = (scores(subject_of(runs, weights)) for weights in (state.weights, state.weights.cuda()))
    for field in FIELDS:
        assert torch.allclose(getattr(here, field), getattr(there, field).cpu())
