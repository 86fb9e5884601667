"""Signals by tier of information: each is the measure of its name, or a plain loop over the rows."""

from dataclasses import replace
from math import isnan, log

import numpy as np
import pytest
import torch

from grokscope.activations import subject_of
from grokscope.measures import Question, fourier_rank, fsd, measure, tier_signals
from grokscope.measures.concentration import spectral_entropy
from grokscope.measures.restricted import variant_loss
from grokscope.measures.singular_values import singular_spectrum, weight_matrices
from grokscope.measures.spectrum import spectrum
from grokscope.measures.tier_signals import TIER_COLUMNS
from grokscope.specs import Architecture, RunSpec, Training
from grokscope.training import Cohort, advance, initial_state

SMALL = Architecture(layers=1, width=16, heads=2, mlp_width=24)
USUAL = RunSpec("add_mod11", 0.5, architecture=SMALL, training=Training(steps=30, learning_rate=0.01, batch_size=None))
SPECS = [USUAL, USUAL.with_seed(1), replace(USUAL, shuffled_labels=True).with_seed(2)]


def trained(specs: list[RunSpec]) -> tuple[torch.Tensor, Cohort]:
    cohort = Cohort(specs)
    state, _ = advance(initial_state(cohort), cohort, 30, False)
    return state.weights, cohort


WEIGHTS, COHORT = trained(SPECS)
ROWS = tier_signals.tier_signals(WEIGHTS, COHORT)


def test_what_has_a_measure_of_its_own_is_that_measure() -> None:
    names = ["concentration", "output_entropy", "embedding", "logit_map"]
    measured = measure(Question(subject_of(SPECS, WEIGHTS)), names)
    same = {"spectral_entropy": "entropy"} | {name: name for name in TIER_COLUMNS if name in measured[0]}
    assert len(same) >= 8
    for row, found in zip(ROWS, measured, strict=True):
        assert {name: row[name] for name in same} == pytest.approx({n: found[of] for n, of in same.items()}, rel=1e-4)


def test_the_restricted_loss_is_the_variants_with_seven_modes() -> None:
    specs = [replace(spec, task="add_mod31") for spec in SPECS[:2]]  # of true labels
    weights, cohort = trained(specs)
    found = variant_loss(subject_of(specs, weights), "trig", 7).loss
    rows = tier_signals.tier_signals(weights, cohort)
    assert [row["restricted_logit_loss"] for row in rows] == pytest.approx(found.tolist(), rel=1e-4)


def test_what_is_read_on_training_rows_reads_no_other_row() -> None:
    subject = subject_of(SPECS, WEIGHTS)
    task = COHORT.tasks[0]
    hidden, logits = subject.read("blocks.0.mlp.hook_post").flatten(2).double(), subject.logits().double()
    for run, row in enumerate(ROWS):
        rows = subject.is_train[run]
        own, answers = hidden[run][rows], subject.labels[run][rows]  # what the loss sees, of shuffled labels too
        means = torch.stack(
            [own[answers == one].mean(dim=0) if (answers == one).any() else own.mean(dim=0) for one in range(11)]
        )
        waves = spectrum(means, task.basis())
        counts = torch.bincount(answers, minlength=11)[:, None]
        between = ((means - own.mean(dim=0)).square() * counts).sum()
        given, labels = logits[run][rows], subject.labels[run][rows]
        best = given.gather(1, labels[:, None])[:, 0]
        others = given.scatter(1, labels[:, None], -torch.inf).amax(dim=1)
        expected = {
            "train_fsd": float(fsd(waves.density).fsd),
            "train_rank": float(fourier_rank(waves.power).median),
            "train_spectral_entropy": float(spectral_entropy(waves.power).median),
            "train_share": float(between / (own - own.mean(dim=0)).square().sum()),
            "train_margin": float((best - others).mean()),
        }
        assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-3)


def test_what_is_read_of_inputs_averages_over_the_first_symbol() -> None:
    hidden = subject_of(SPECS, WEIGHTS).read("blocks.0.mlp.hook_post").flatten(2).double()
    task = COHORT.tasks[0]
    first = torch.tensor(task.inputs[:, 0])
    for run, row in enumerate(ROWS):
        means = torch.stack([hidden[run][first == symbol].mean(dim=0) for symbol in range(11)])
        waves = spectrum(means, task.basis())
        assert row["input_fsd"] == pytest.approx(float(fsd(waves.density).fsd), rel=1e-3)
        assert row["input_rank"] == pytest.approx(float(fourier_rank(waves.power).median), rel=1e-3)


def test_participation_is_that_of_the_singular_values() -> None:
    matrices = weight_matrices(subject_of(SPECS, WEIGHTS)).values()
    for run, row in enumerate(ROWS):
        squares = [singular_spectrum(matrix[run]).values.square() for matrix in matrices]
        expected = np.mean([float(one.sum() ** 2 / one.square().sum()) for one in squares])
        assert row["singular_participation"] == pytest.approx(expected, rel=1e-6)


def test_tiers_3_and_4_read_no_validation_label() -> None:
    specs = [replace(USUAL, precision="float64")]
    weights, cohort = trained(specs)
    [before] = tier_signals.tier_signals(weights, cohort)
    tables = cohort.tables
    hidden = ~tables.is_train
    moved = (tables.conditions + 1) % 11
    changed = replace(
        tables,
        conditions=tables.conditions.where(~hidden, moved),
        labels=tables.labels.where(~hidden, (tables.labels + 1) % 11),
        answers=tables.answers.where(~hidden, (tables.answers + 1) % 11),
    )
    cohort.__dict__["tables"] = changed
    [after] = tier_signals.tier_signals(weights, cohort)
    for name, (tier, _) in TIER_COLUMNS.items():
        is_same = before[name] == pytest.approx(after[name], rel=1e-9)
        assert is_same == (tier < 5), name


def test_of_shuffled_labels_tier_3_reads_those_that_were_trained_on_and_no_true_one() -> None:
    [before] = tier_signals.tier_signals(*trained([SPECS[2]]))
    weights, cohort = trained([SPECS[2]])
    tables = cohort.tables
    moved = (tables.conditions + 1 + tables.conditions % 3) % 11
    cohort.__dict__["tables"] = replace(tables, conditions=moved, answers=moved)
    [after] = tier_signals.tier_signals(weights, cohort)
    for name, (tier, _) in TIER_COLUMNS.items():
        assert (before[name] == pytest.approx(after[name], rel=1e-6)) == (tier < 5), name


def test_only_runs_that_are_due_are_read() -> None:
    found = tier_signals.tier_signals(WEIGHTS, COHORT, [2, 0])
    assert [bool(row) for row in found] == [True, False, True]
    assert found[2] == pytest.approx(ROWS[2], rel=1e-6)
    assert tier_signals.tier_signals(WEIGHTS, COHORT, []) == [{}, {}, {}]


def test_runs_of_a_stack_are_read_as_alone_and_other_tasks_have_what_they_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tier_signals, "RUNS_AT_ONCE", 2)
    monkeypatch.setitem(tier_signals.ROWS_AT_ONCE, "cpu", 512)
    for row, alone in zip(tier_signals.tier_signals(WEIGHTS, COHORT), ROWS, strict=True):
        assert row == pytest.approx(alone, rel=1e-5)
    for task, missing in {"parity_n6_k2_tokens": "input_fsd", "S3": ""}.items():
        weights, cohort = trained([replace(USUAL, task=task)])
        [row] = tier_signals.tier_signals(weights, cohort)
        assert 0 <= row["output_entropy"] <= log(cohort.tasks[0].classes)
        assert not isnan(row["train_share"])
        assert (missing not in row) or not missing
    linear = Architecture(kind="mlp", layers=0, biases=False)
    ridge = RunSpec("ridge_d5_n10", architecture=linear, training=Training(steps=5, batch_size=None, loss="mse"))
    assert tier_signals.tier_signals(*reversed([Cohort([ridge]), Cohort([ridge]).initial()])) == [{}]
