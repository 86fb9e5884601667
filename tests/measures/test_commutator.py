from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from plain_runs import PLAIN_MLP, SMALL, TWO_LAYERS, PlainRun, fresh, small_run, with_new_seed
from torch.nn.functional import cross_entropy, mse_loss, one_hot

from grokscope.activations import RunStack, subject_of
from grokscope.measures.catalogue import measure
from grokscope.measures.commutator import STEP, commutator, commutator_defect
from grokscope.measures.loss_gradients import drawn_training_rows
from grokscope.measures.question import Question
from grokscope.specs import Architecture, RunSpec
from measured_stacks import stack_of

LINEAR = replace(PLAIN_MLP, layers=0)


def trained(runs: list[RunSpec], steps: int = 10) -> RunStack:
    return stack_of(runs, steps)


def ridge(seed: int = 0, **fields) -> RunSpec:
    return small_run("ridge_d7_n30_v10", seed, LINEAR, loss="mse", **fields)


# On quadratic losses the commutator is known.


@pytest.mark.parametrize("step", [1e-3, 0.1])
def test_of_a_linear_model_it_is_the_closed_form(step: float) -> None:
    """L_S(w) = mean (x·w − y)² has g_S = 2 Xᵀ(Xw − y)/n and H_S = 2 XᵀX/n: θ_AB − θ_BA = η² (H_B g_A − H_A g_B)."""
    subject = trained([ridge()])
    found = commutator_defect(subject, seed=3, pairs=4, rows=9, step=step)
    w = np.concatenate([subject.weights["unembed.W_U"][0].numpy()[:, 0], subject.weights["unembed.b_U"][0].numpy()])
    inputs = np.concatenate([subject.task.vectors, np.ones((subject.task.rows, 1))], axis=1)
    for pair in range(4):
        parts = []
        for batch in drawn_training_rows(subject, 3, pair, 9):
            x, y = inputs[batch.rows[0]], subject.task.answers[batch.rows[0], 0]
            parts.append((2 * x.T @ (x @ w - y) / 9, 2 * x.T @ x / 9))
        (g_a, h_a), (g_b, h_b) = parts
        lengths = np.linalg.norm(g_a) * np.linalg.norm(g_b)
        expected = np.linalg.norm(h_b @ g_a - h_a @ g_b) / lengths
        assert float(found.defect[pair, 0]) == pytest.approx(expected, rel=1e-9)
        assert float(found.gradient_cosine[pair, 0]) == pytest.approx(g_a @ g_b / lengths)


def test_hessians_that_commute_with_their_gradients_commute() -> None:
    """With the minimum of both at 0, H_B g_A − H_A g_B = (H_B H_A − H_A H_B) θ: zero where the Hessians commute."""
    theta = torch.tensor([[1.0, 2.0, 3.0]]).double()
    one, other = torch.diag(torch.tensor([1.0, 2.0, 3.0])).double(), torch.diag(torch.tensor([2.0, 5.0, 1.0])).double()
    assert commutator(theta, lambda w: w @ one, lambda w: w @ other).defect.item() == pytest.approx(0, abs=1e-12)
    mixed = torch.tensor([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]).double()
    bracket = (mixed @ one - one @ mixed) @ theta[0]
    expected = bracket.norm() / ((one @ theta[0]).norm() * (mixed @ theta[0]).norm())
    found = commutator(theta, lambda w: w @ one, lambda w: w @ mixed)
    assert found.defect.item() == pytest.approx(float(expected))
    swapped = commutator(theta, lambda w: w @ mixed, lambda w: w @ one)
    assert swapped.defect.item() == pytest.approx(float(expected))


def test_a_batch_commutes_with_itself() -> None:
    def gradient(w: torch.Tensor) -> torch.Tensor:
        return w**3 - w.flip(-1)

    assert commutator(torch.tensor([[1.0, -2.0]]), gradient, gradient).defect.item() == 0


# On networks, against plain modules that take the steps.


def loss_of(plain: PlainRun, module, rows: list[int]) -> torch.Tensor:
    outputs, labels = module(plain.given[rows]), plain.labels[rows]
    if plain.run.training.loss == "cross_entropy":
        return cross_entropy(outputs, labels)
    targets = labels if plain.task.is_real else one_hot(labels, plain.task.classes)
    return mse_loss(outputs, targets.to(outputs.dtype))


def stepped(plain: PlainRun, batches: list[list[int]], step: float) -> torch.Tensor:
    """The parameters after plain gradient descent on one batch after the other."""
    module = deepcopy(plain.reference)
    optimizer = torch.optim.SGD(module.parameters(), lr=step)
    for rows in batches:
        optimizer.zero_grad()
        loss_of(plain, module, rows).backward()
        optimizer.step()
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


NETWORKS: dict[str, tuple[str, Architecture, dict]] = {
    "addition": ("add_mod11", SMALL, {}),
    "two hops": ("twohop_e12_d2", TWO_LAYERS, {}),
    "parity": ("parity_n6_k3", PLAIN_MLP, {}),
    "quadratic": ("add_mod7", replace(PLAIN_MLP, activation="square", biases=False), {"loss": "mse"}),
    "ridge": ("ridge_d7_n30_v10", PLAIN_MLP, {"loss": "mse"}),
    "shuffled labels": ("add_mod11", SMALL, {"shuffled_labels": True}),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_it_is_the_distance_between_two_orders_of_plain_steps(name: str) -> None:
    task, architecture, fields = NETWORKS[name]
    run, step = small_run(task, 2, architecture, **fields), 0.05
    plain, subject = PlainRun(run), trained([run], steps=0)
    found = commutator_defect(subject, seed=1, pairs=2, rows=10, step=step)
    for pair in range(2):
        a, b = (batch.rows[0].tolist() for batch in drawn_training_rows(subject, 1, pair, 10))
        start = stepped(plain, [], step)
        apart = stepped(plain, [a, b], step) - stepped(plain, [b, a], step)
        lengths = (stepped(plain, [a], step) - start).norm() * (stepped(plain, [b], step) - start).norm()
        assert float(found.defect[pair, 0]) == pytest.approx(float(apart.norm() / lengths), rel=1e-6)


def test_a_small_step_size_does_not_matter() -> None:
    subject = trained([small_run("add_mod11", 0)])
    found = [commutator_defect(subject, step=step).defect for step in (STEP, STEP / 10)]
    assert torch.allclose(*found, rtol=1e-2)
    assert not torch.allclose(commutator_defect(subject, step=3.0).defect, found[0], rtol=1e-2)


# Batches.


def test_batches_are_disjoint_training_rows() -> None:
    subject = trained([small_run("add_mod11", seed) for seed in range(3)], 0)
    for draw in range(3):
        a, b = drawn_training_rows(subject, 0, draw, 12)
        for run in range(3):
            rows = [*a.rows[run].tolist(), *b.rows[run].tolist()]
            assert len(set(rows)) == 24
            assert subject.is_train[run, rows].all()
    assert not torch.equal(a.rows, drawn_training_rows(subject, 0, 0, 12)[0].rows)
    assert not torch.equal(a.rows, drawn_training_rows(subject, 1, 2, 12)[0].rows)


def test_of_few_training_rows_each_batch_has_half() -> None:
    few, many = small_run("S3", 0, train_fraction=0.2), small_run("S3", 0, train_fraction=0.8)
    subject = subject_of([few, many], torch.cat([fresh([run])[0].weights for run in (few, many)]))
    a, b = drawn_training_rows(subject, 0, 0, 10)
    assert a.counts.sum(dim=1).tolist() == b.counts.sum(dim=1).tolist() == [int(subject.is_train[0].sum()) // 2, 10]
    for run in range(2):
        rows = [*a.rows[run, a.counts[run]].tolist(), *b.rows[run, b.counts[run]].tolist()]
        assert len(set(rows)) == len(rows)
        assert subject.is_train[run, rows].all()
    together = commutator_defect(subject, rows=10)
    for run in range(2):
        alone = commutator_defect(subject.select([run]), rows=10)
        assert torch.allclose(alone.defect[:, 0], together.defect[:, run], rtol=1e-9)


def test_all_checkpoints_of_a_run_are_asked_about_the_same_rows() -> None:
    run = small_run("add_mod11", 0)
    early, late = trained([run], 0), trained([run], 20)
    assert torch.equal(drawn_training_rows(early, 0, 1, 9)[1].rows, drawn_training_rows(late, 0, 1, 9)[1].rows)


# Columns.


def test_columns_are_medians_and_follow_the_seed() -> None:
    subject = trained([small_run("add_mod11", seed) for seed in range(2)])
    found = commutator_defect(subject, seed=5)
    for run, row in enumerate(measure(Question(subject, seed=5), ["commutator"])):
        assert row["commutator_defect"] == pytest.approx(np.median(found.defect[:, run].numpy()))
        assert row["gradient_cosine"] == pytest.approx(np.median(found.gradient_cosine[:, run].numpy()))
    assert measure(Question(subject, seed=5), ["commutator"]) == measure(Question(subject, seed=5), ["commutator"])
    assert measure(Question(subject, seed=6), ["commutator"]) != measure(Question(subject, seed=5), ["commutator"])


def test_weights_in_float32_are_read_in_float64_and_left_alone() -> None:
    subject = trained([small_run("add_mod11", 0, precision="float32")])
    before = {name: weight.clone() for name, weight in subject.weights.items()}
    found = commutator_defect(subject, pairs=1)
    wide = replace(subject, weights={name: weight.double() for name, weight in subject.weights.items()})
    assert found.defect.dtype == torch.float64
    assert torch.equal(found.defect, commutator_defect(wide, pairs=1).defect)
    assert all(torch.equal(weight, subject.weights[name]) for name, weight in before.items())


def test_a_run_that_is_not_a_number_spoils_no_other() -> None:
    subject = trained([small_run("add_mod11", seed) for seed in range(3)])
    healthy = commutator_defect(subject, pairs=2)
    subject.weights["blocks.0.mlp.W_in"][1, 0, 0] = torch.nan
    sick = commutator_defect(subject, pairs=2)
    assert sick.defect.isnan().any(dim=0).tolist() == [False, True, False]
    assert torch.allclose(sick.defect[:, [0, 2]], healthy.defect[:, [0, 2]], rtol=1e-9)


def test_with_another_split_it_is_another() -> None:
    run = small_run("add_mod11", 0)
    one, other = (commutator_defect(trained([spec], 0)).defect for spec in (run, with_new_seed(run, split=7)))
    assert not torch.equal(one, other)
