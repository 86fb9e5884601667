"""Sequences of any length, vectors, real answers and squared errors: the stack against plain modules trained alone."""

import pytest
import torch
from plain_runs import (
    PLAIN_MLP,
    PlainRun,
    assert_gradients_of_the_references,
    assert_near,
    by_name,
    fresh,
    in_slot,
    padding_in,
    reference_in,
    small_run,
    stablemax,
)
from row_runs import ROW_RUNS, row_runs

from grokscope.errors import InputError
from grokscope.measures import snapshot
from grokscope.training import advance, cohort_key

runs = pytest.mark.parametrize("name", ROW_RUNS)


@runs
def test_loss_and_every_gradient_equal_the_reference_modules(name: str) -> None:
    assert_gradients_of_the_references(row_runs(name, beta1=0.0), 2)


@runs
def test_two_hundred_steps_equal_the_reference_modules(name: str) -> None:
    specs, steps = row_runs(name)[:2], 200
    state, cohort = fresh(specs)
    state, info = advance(state, cohort, steps)
    for slot, spec in enumerate(specs):
        plain = PlainRun(spec).trained(steps)
        assert_near(in_slot(cohort, state.weights, slot), by_name(plain.reference), 1e-9)
        assert info.loss[slot].tolist() == pytest.approx(plain.losses, abs=1e-9)
        assert not padding_in(cohort, state.weights, slot).any()


@runs
def test_an_evaluation_scores_every_row_as_the_definition_says(name: str) -> None:
    specs = row_runs(name)
    state, cohort = fresh(specs)
    found = snapshot(state.weights, cohort)
    for slot, spec in enumerate(specs):
        plain, reference = PlainRun(spec), reference_in(cohort, state.weights, slot)
        outputs = reference(plain.given).detach()
        for rows, label in ((plain.train, "train"), (plain.validation, "validation")):
            own, answers = outputs[rows], plain.answers[rows]
            if plain.task.is_real:
                errors = (own - answers).square().mean(dim=1)
                right, loss = (errors <= plain.task.success_error).double(), errors.mean()
            else:
                right = (own.argmax(dim=1) == answers).double()
                target = torch.nn.functional.one_hot(answers, own.shape[1]).double()
                squares = (own - target).square().mean()
                entropy = -own.log_softmax(dim=1)[target.bool()].mean()
                stable = stablemax(own, answers)
                loss = {"mse": squares, "cross_entropy": entropy, "stablemax": stable}[spec.training.loss]
            row = found.row(slot)
            assert row[f"{label}_accuracy"] == pytest.approx(right.mean().item(), abs=1e-12)
            assert row[f"{label}_loss"] == pytest.approx(loss.item(), abs=1e-12)


@pytest.mark.parametrize("name", ["five tokens, two layers", "normed mlp"])
def test_dropout_acts_on_every_branch(name: str) -> None:
    plain, dropped = (fresh(row_runs(name, dropout=share)) for share in (0.0, 0.4))
    for state, cohort in (plain, dropped):
        advance(state, cohort, 3)
    assert (plain[0].weights - dropped[0].weights).abs().amax(dim=1).min() > 1e-5


def test_what_a_model_cannot_read_is_rejected() -> None:
    with pytest.raises(InputError, match="a transformer reads tokens; vectors need an architecture of kind mlp"):
        fresh([small_run("vectors")])
    with pytest.raises(InputError, match="regression has real answers: loss must be mse, got cross_entropy"):
        cohort_key(small_run("regression", architecture=PLAIN_MLP))
