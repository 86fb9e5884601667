from math import log

import numpy as np
import pytest
import torch
from plain_runs import PLAIN_MLP, SMALL, PlainRun, small_run
from scipy.special import softmax
from scipy.stats import entropy

from grokscope.activations import run_stack
from grokscope.measures.catalogue import measure
from grokscope.measures.output_entropy import output_entropy
from grokscope.measures.question import Question
from grokscope.tasks import named_task
from measured_stacks import stack_of

NAMES = ("output_entropy", "output_entropy_train", "output_entropy_validation")


@pytest.mark.parametrize(
    ("task", "architecture"), [("add_mod11", SMALL), ("parity_n5_k2", PLAIN_MLP), ("twohop_e12_d2", SMALL)]
)
def test_it_is_scipys_entropy_of_the_plain_modules_softmax(task: str, architecture) -> None:
    run = small_run(task, 1, architecture)
    plain = PlainRun(run)
    logits = plain.reference(plain.given).detach().numpy()
    own = entropy(softmax(logits, axis=1), axis=1)
    (row,) = measure(Question(stack_of([run])), ["output_entropy"])
    expected = [own.mean(), own[plain.train].mean(), own[plain.validation].mean()]
    assert [row[name] for name in NAMES] == pytest.approx(expected, rel=1e-9)


def test_rows_that_are_held_out_are_no_validation_rows() -> None:
    task = named_task("twohop_e30_d3_ood0.4")
    run = small_run(task.name, 0, SMALL)
    subject = stack_of([run])
    (row,) = measure(Question(subject), ["output_entropy"])
    own = output_entropy(subject.logits())[0]
    kept = ~subject.is_train[0] & ~torch.tensor(task.is_held_out)
    assert task.is_held_out.any()
    assert row["output_entropy_validation"] == pytest.approx(float(own[kept].mean()))


def test_equal_logits_are_undecided_and_a_constant_changes_nothing() -> None:
    logits = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 7)))
    assert output_entropy(torch.zeros(5)).item() == pytest.approx(log(5))
    assert torch.allclose(output_entropy(logits), output_entropy(logits + 100))
    assert (output_entropy(10 * logits) < output_entropy(logits)).all()
    assert output_entropy(torch.tensor([0.0, 500.0])).item() == pytest.approx(0, abs=1e-200)
    assert output_entropy(torch.tensor([0.0, torch.nan])).isnan()


def test_padded_classes_are_no_classes() -> None:
    silent = stack_of([small_run("add_mod11", 0)])
    for name in ("unembed.W_U", "unembed.b_U"):
        silent.weights[name].zero_()
    (row,) = measure(Question(silent), ["output_entropy"])
    assert [row[name] for name in NAMES] == pytest.approx([log(11)] * 3)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = stack_of([small_run("add_mod11", seed) for seed in range(2)], 5)
    whole = measure(Question(subject), ["output_entropy", "representation"])
    monkeypatch.setitem(run_stack.PAIRS_AT_ONCE, "cpu", 1)
    parts = measure(Question(subject), ["output_entropy", "representation"])
    for one, other in zip(whole, parts, strict=True):
        assert one.pop("undefined") == other.pop("undefined") == ""
        assert one == pytest.approx(other, rel=1e-9)


def test_a_run_that_is_not_a_number_spoils_no_other() -> None:
    subject = stack_of([small_run("add_mod11", seed) for seed in range(3)])
    healthy = measure(Question(subject), ["output_entropy"])
    subject.weights["unembed.W_U"][1, 0, 0] = torch.nan
    sick = measure(Question(subject), ["output_entropy"])
    assert [sick[0], sick[2]] == [healthy[0], healthy[2]]
    assert sick[1]["undefined"] == "weights in unembed.W_U are not numbers"
