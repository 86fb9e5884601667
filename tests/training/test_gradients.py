"""Grokfast and ⊥Grad: the stack, the optimiser wrappers around PyTorch's AdamW, and the papers' equations agree."""

from copy import deepcopy
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from plain_runs import (
    TWO_LAYERS,
    PlainRun,
    assert_near,
    assert_same_bits,
    by_name,
    copy_of,
    fresh,
    in_slot,
    padding_in,
    small_run,
)
from torch import Tensor

from grokscope.attach import one_hot
from grokscope.errors import InputError
from grokscope.model import sizes_of
from grokscope.specs import RunSpec
from grokscope.steering import Grokfast, OrthogonalGradient
from grokscope.tasks import named_task, split
from grokscope.training import Cohort, advance
from grokscope.training.checkpoint import cut, padded_row
from grokscope.training.gradients import grokfast_, orthogonal

STEPS = 25
# Where a gradient is zero but for rounding (unused symbols, biases of keys), Adam with its usual ε amplifies that.
CALM = {"epsilon": 1e-3}
GROKFAST = [
    small_run("add_mod11", 1, gradient="grokfast", **CALM),
    small_run("mult_mod7", 2, gradient="grokfast", grokfast_alpha=0.5, grokfast_lamb=5.0, weight_decay=3.0, **CALM),
    small_run("S3", 3, gradient="grokfast", grokfast_alpha=0.0, weight_decay=0.0, **CALM),
]
ORTHOGONAL = [replace(run, training=replace(run.training, gradient="orthogonal")) for run in GROKFAST]


def wrapped(run: RunSpec) -> PlainRun:
    """The run alone in plain PyTorch, with the wrapper that a user would take."""
    plain = PlainRun(run)
    training = run.training
    if training.gradient == "grokfast":
        plain.optimizer = Grokfast(plain.optimizer, training.grokfast_alpha, training.grokfast_lamb)
    else:
        plain.optimizer = OrthogonalGradient(plain.optimizer)
    return plain


@pytest.mark.parametrize("runs", [GROKFAST, ORTHOGONAL], ids=["grokfast", "orthogonal"])
def test_the_stack_equals_the_wrapper_around_torchs_adamw(runs: list[RunSpec]) -> None:
    state, cohort = fresh(runs)
    advance(state, cohort, STEPS)
    plain_stack, plain_cohort = fresh([replace(r, training=replace(r.training, gradient="plain")) for r in runs])
    advance(plain_stack, plain_cohort, STEPS)
    for slot, run in enumerate(runs):
        alone = wrapped(run).trained(STEPS)
        assert_near(in_slot(cohort, state.weights, slot), by_name(alone.reference), 1e-12)
        assert padding_in(cohort, state.weights, slot).eq(0).all()
        if run.training.gradient == "grokfast":
            slow = by_name(alone.reference, lambda parameter, own=alone: own.optimizer.slow[parameter])
            assert_near(in_slot(cohort, state.slow, slot), slow, 1e-12)
        if run.training.grokfast_alpha:  # with α = 0 the average is the gradient, and Adam forgets a constant scale
            assert (state.weights[slot] - plain_stack.weights[slot]).abs().max() > 1e-4


@pytest.mark.parametrize("gradient", ["plain", "grokfast"])
def test_coupled_decay_is_that_of_torchs_adam_and_comes_after_grokfast(gradient: str) -> None:
    """It reaches Adam through the gradient, so it is no shrinking by 1 − ηλ."""
    runs = [
        replace(run, training=replace(run.training, optimizer="adam", gradient=gradient, weight_decay=decay))
        for run, decay in zip(GROKFAST, (0.3, 0.02, 0.0), strict=True)
    ]
    state, cohort = fresh(runs)
    advance(state, cohort, STEPS)
    for slot, run in enumerate(runs):
        alone, training = PlainRun(run), run.training
        groups = [{"params": group["params"]} for group in alone.optimizer.param_groups]
        alone.optimizer = torch.optim.Adam(groups, betas=(training.beta1, training.beta2), eps=training.epsilon)
        if gradient == "grokfast":
            alone.optimizer = Grokfast(alone.optimizer, training.grokfast_alpha, training.grokfast_lamb)
        alone.trained(STEPS)
        assert_near(in_slot(cohort, state.weights, slot), by_name(alone.reference), 1e-11)
        assert padding_in(cohort, state.weights, slot).eq(0).all()
    decoupled = [replace(run, training=replace(run.training, optimizer="adamw")) for run in runs]
    other, others = fresh(decoupled)
    advance(other, others, STEPS)
    assert (state.weights[0] - other.weights[0]).abs().max() > 1e-3
    assert torch.equal(state.weights[2], other.weights[2]), "without decay both are Adam"


@pytest.mark.parametrize("runs", [GROKFAST, ORTHOGONAL], ids=["grokfast", "orthogonal"])
def test_adam_is_given_the_same_gradients(runs: list[RunSpec]) -> None:
    runs = [replace(run, training=replace(run.training, beta1=0.0)) for run in runs]  # its first moment is the gradient
    state, cohort = fresh(runs)
    plain = [wrapped(run) for run in runs]
    for _ in range(4):
        advance(state, cohort, 1)
        for slot, alone in enumerate(plain):
            alone.step()
            given = by_name(alone.reference, lambda parameter: parameter.grad)
            assert_near(in_slot(cohort, state.first, slot), given, 1e-12)


def test_clipping_comes_first() -> None:
    run = small_run(seed=1, architecture=TWO_LAYERS, gradient="grokfast", clip_norm=0.3, **CALM)
    state, cohort = fresh([run])
    advance(state, cohort, 15)
    assert_near(in_slot(cohort, state.weights, 0), by_name(wrapped(run).trained(15).reference), 1e-12)


def test_grokfast_is_its_sum_written_out() -> None:
    gradients = torch.randn(6, 2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    alpha, lamb = torch.tensor([0.9, 0.5], dtype=torch.float64), torch.tensor([2.0, 1.0], dtype=torch.float64)
    slow, active = torch.zeros(2, 5, dtype=torch.float64), torch.tensor([True, True])
    for t in range(6):
        found = grokfast_(slow, gradients[t], active, torch.tensor([t == 0, t == 0]), alpha, lamb)
        for run in range(2):
            a = alpha[run].item()
            since = sum((1 - a) * a ** (t - s) * gradients[s, run] for s in range(1, t + 1))
            average = a**t * gradients[0, run] + since
            assert torch.allclose(found[run], gradients[t, run] + lamb[run] * average, rtol=1e-13, atol=1e-14)


def test_the_first_step_is_given_the_first_gradient_times_one_and_lamb() -> None:
    grokfast = GROKFAST[0]
    grokfast = replace(
        grokfast, training=replace(grokfast.training, beta1=0.0)
    )  # the first moment is what Adam is given
    plain, cohort = fresh([replace(grokfast, training=replace(grokfast.training, gradient="plain"))])
    filtered, own = fresh([grokfast])
    advance(plain, cohort, 1)
    advance(filtered, own, 1)
    assert torch.allclose(filtered.first, 3 * plain.first, rtol=1e-12)
    assert torch.equal(filtered.slow, plain.first)
    assert plain.first.abs().max() > 0


def test_an_orthogonal_gradient_is_orthogonal_as_long_and_in_the_plane_of_both() -> None:
    draw = torch.Generator().manual_seed(0)
    weights, gradient = (torch.randn(3, 4, 5, dtype=torch.float64, generator=draw) for _ in range(2))
    found = orthogonal(weights, gradient)
    for w, g, x in zip(weights.flatten(1), gradient.flatten(1), found.flatten(1), strict=True):
        assert abs(w @ x) < 1e-12
        assert x.norm().item() == pytest.approx(g.norm().item(), rel=1e-12)
        coefficients = torch.linalg.lstsq(torch.stack([w, g], dim=1), x[:, None]).solution
        assert torch.allclose(torch.stack([w, g], dim=1) @ coefficients, x[:, None], atol=1e-12)
        assert coefficients[1] > 0


def test_where_there_are_no_weights_or_no_gradient_nothing_is_undefined() -> None:
    zeros, ones = torch.zeros(1, 3), torch.ones(1, 3)
    assert torch.equal(orthogonal(zeros, ones), ones)
    assert torch.equal(orthogonal(ones, zeros), zeros)


def test_a_gradient_along_the_weights_becomes_zero_and_not_rounding_at_full_length() -> None:
    draw = torch.Generator().manual_seed(0)
    single = torch.randn(500, 1, generator=draw)
    assert torch.equal(orthogonal(single, torch.randn(500, 1, generator=draw)), torch.zeros(500, 1))
    weights = torch.randn(3, 40, generator=draw)
    assert orthogonal(weights, -0.37 * weights).abs().max() == 0


# Plain cohorts are what they were.


def test_a_plain_state_and_its_checkpoint_have_no_average() -> None:
    state, cohort = fresh([small_run()])
    assert state.slow.shape == (1, 0)
    tensors = cut(state.row(0), cohort.layout, sizes_of(cohort.tasks[0]))
    assert not any(name.startswith("slow") for name in tensors)
    assert {name.partition(".")[0] for name in tensors} >= {"first", "second", "embed", "step"}


def test_grokfast_that_adds_nothing_equals_plain_bit_for_bit() -> None:
    plain, cohort = fresh([small_run(seed=1)])
    advance(plain, cohort, 12)
    nothing, own = fresh([small_run(seed=1, gradient="grokfast", grokfast_lamb=0.0)])
    advance(nothing, own, 12)
    assert torch.equal(plain.weights, nothing.weights)
    assert torch.equal(plain.second, nothing.second)
    assert nothing.slow.abs().max() > 0


def test_plain_steps_never_reach_the_transform(monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(*arguments: Tensor) -> None:
        raise AssertionError("a plain cohort transforms nothing")

    monkeypatch.setattr("grokscope.training.loop.Trainer._transform", reject)
    state, cohort = fresh([small_run()])
    advance(state, cohort, 2)
    with pytest.raises(AssertionError, match="transforms nothing"):
        advance(*fresh(GROKFAST[:1]), 2)


def test_kinds_of_gradients_do_not_share_a_stack() -> None:
    with pytest.raises(InputError, match="got 2 kinds"):
        Cohort([small_run(), small_run(gradient="grokfast")])


class Windowed:
    """An optimiser that is given g + ℓ times the mean of the last w gradients, once there are as many."""

    def __init__(self, optimizer: torch.optim.Optimizer, window: int, lamb: float) -> None:
        self.optimizer, self.param_groups, self.window, self.lamb = optimizer, optimizer.param_groups, window, lamb
        self.queues: dict[Tensor, list[Tensor]] = {}

    def zero_grad(self) -> None:
        self.optimizer.zero_grad()

    def step(self) -> None:
        for parameter in (one for group in self.param_groups for one in group["params"]):
            queue = self.queues.setdefault(parameter, [])
            queue.append(parameter.grad.clone())
            if len(queue) > self.window:
                queue.pop(0)
            if len(queue) == self.window:
                parameter.grad += self.lamb * sum(queue) / self.window
        self.optimizer.step()


WINDOWED = [
    small_run("add_mod11", 1, gradient="grokfast_window", grokfast_window=7, **CALM),
    small_run("mult_mod7", 2, gradient="grokfast_window", grokfast_window=7, grokfast_lamb=5.0, **CALM),
]


def test_a_window_is_that_of_a_queue_of_gradients() -> None:
    state, cohort = fresh(WINDOWED)
    advance(state, cohort, STEPS)
    for slot, run in enumerate(WINDOWED):
        alone = PlainRun(run)
        alone.optimizer = Windowed(alone.optimizer, 7, run.training.grokfast_lamb)
        assert_near(in_slot(cohort, state.weights, slot), by_name(alone.trained(STEPS).reference), 1e-11)
        newest = by_name(alone.reference, lambda parameter, own=alone: own.optimizer.queues[parameter][-1])
        ring = state.recent.view(2, 7, -1)
        assert_near(in_slot(cohort, ring[:, (STEPS - 1) % 7], slot), newest, 1e-11)
    plain, other = fresh([replace(run, training=replace(run.training, gradient="plain")) for run in WINDOWED])
    advance(plain, other, 6)
    early, same = fresh(WINDOWED)
    advance(early, same, 6)
    assert torch.equal(plain.weights, early.weights), "a window that is not full changes nothing"


def test_a_stored_window_continues_bit_for_bit_and_an_idle_run_keeps_it() -> None:
    runs = [WINDOWED[0], replace(WINDOWED[1], training=replace(WINDOWED[1].training, steps=12))]
    state, cohort = fresh(runs)
    advance(state, cohort, 12)
    finished = copy_of(state)
    again, other = fresh(runs)
    for slot in range(2):
        sizes = sizes_of(cohort.tasks[slot])
        again.put(slot, padded_row(cut(state.row(slot), cohort.layout, sizes), other.layout, sizes))
    assert_same_bits(again, state)
    advance(state, cohort, 9)
    advance(again, other, 9)
    assert_same_bits(again, state)
    assert_same_bits(state, finished, slots=[1])


# The average is state: idle runs keep it, checkpoints hold it.


def test_a_finished_run_keeps_its_average() -> None:
    state, cohort = fresh([small_run(seed=1, steps=6, gradient="grokfast"), small_run(seed=2, gradient="grokfast")])
    advance(state, cohort, 6)
    finished = copy_of(state)
    advance(state, cohort, 5)
    assert_same_bits(state, finished, slots=[0])
    assert not torch.equal(state.slow[1], finished.slow[1])


def test_a_stored_average_continues_bit_for_bit() -> None:
    state, cohort = fresh(GROKFAST)
    advance(state, cohort, 10)
    rows = [cut(state.row(slot), cohort.layout, sizes_of(cohort.tasks[slot])) for slot in range(3)]
    assert "slow.embed.W_E" in rows[0]
    again, other = fresh(GROKFAST)
    for slot, tensors in enumerate(rows):
        again.put(slot, padded_row(tensors, other.layout, sizes_of(other.tasks[slot])))
    assert_same_bits(again, state)
    advance(state, cohort, 7)
    advance(again, other, 7)
    assert_same_bits(again, state)


# The wrappers, as a user has them.


@pytest.mark.parametrize("kind", [Grokfast, OrthogonalGradient])
def test_a_wrapper_keeps_schedulers_groups_and_state(kind: type) -> None:
    def made() -> tuple[torch.nn.Linear, torch.optim.Optimizer]:
        torch_model = torch.nn.Linear(3, 2, dtype=torch.float64)
        with torch.no_grad():
            torch_model.weight.copy_(torch.arange(6.0).view(2, 3) / 7)
            torch_model.bias.fill_(0.1)
        return torch_model, kind(torch.optim.AdamW(torch_model.parameters(), lr=0.1, weight_decay=0.5))

    def train(model: torch.nn.Linear, optimizer: torch.optim.Optimizer, steps: range) -> None:
        for step in steps:
            optimizer.zero_grad()
            inputs = torch.sin(torch.arange(3.0, dtype=torch.float64) + step)
            model(inputs).square().sum().backward()
            optimizer.step()

    model, optimizer = made()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    train(model, optimizer, range(3))
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.05 == optimizer.optimizer.param_groups[0]["lr"]
    stored = deepcopy(optimizer.state_dict())
    copied, other = made()
    copied.load_state_dict({name: value.clone() for name, value in model.state_dict().items()})
    other.load_state_dict(stored)
    assert other.param_groups[0]["lr"] == 0.05
    train(model, optimizer, range(3, 6))
    train(copied, other, range(3, 6))
    assert torch.equal(model.weight, copied.weight)
    assert torch.equal(model.bias, copied.bias)


def test_a_closure_is_called_once_and_its_gradient_changed() -> None:
    weight = torch.nn.Parameter(torch.tensor([1.0]))
    optimizer = Grokfast(torch.optim.SGD([weight], lr=0.1), alpha=0.0, lamb=1.0)
    calls = []

    def closure() -> Tensor:
        calls.append(1)
        optimizer.zero_grad()
        loss = weight.sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 1.0
    assert len(calls) == 1
    assert weight.item() == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda sgd: Grokfast(sgd, alpha=1.0), r"alpha must lie in \[0, 1\), got 1.0"),
        (lambda sgd: Grokfast(sgd, lamb=-1.0), "lamb must be at least 0, got -1.0"),
        (lambda sgd: Grokfast(sgd).load_state_dict({}), "is not one of Grokfast: it has no entry 'optimizer'"),
        (lambda sgd: Grokfast(sgd).load_state_dict({"optimizer": sgd.state_dict()}), "must have 1 averages, got 0"),
        (lambda sgd: small_run(grokfast_alpha=1.0), r"grokfast_alpha must lie in \[0, 1\), got 1.0"),
        (lambda sgd: small_run(grokfast_lamb=-1.0), "grokfast_lamb must be at least 0"),
        (lambda sgd: small_run(gradient="grokfst"), "gradient must be one of .* did you mean .*grokfast"),
    ],
)
def test_what_makes_no_sense_is_rejected(make, sentence: str) -> None:
    sgd = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    with pytest.raises(InputError, match=sentence):
        make(sgd)


@pytest.mark.slow
def test_orthogonal_gradients_grok_in_their_authors_setting_where_plain_ones_memorise() -> None:
    """An MLP of two hidden layers without biases, p = 113, 40 % of the pairs, the whole batch (Prieto et al. 2025)."""
    task = named_task("add_mod113")
    part = split(task, 0.4, seed=0)
    inputs, answers = one_hot(*torch.tensor(task.inputs.T), 113), torch.tensor(task.answers)
    reached = {}
    for kind in ("orthogonal", "plain"):
        torch.manual_seed(0)
        sizes = [226, 200, 200, 113]
        layers = [torch.nn.Linear(*pair, bias=False) for pair in pairwise(sizes)]
        model = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
        inner = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.0)
        optimizer = OrthogonalGradient(inner) if kind == "orthogonal" else inner
        for _ in range(250):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs[part.train]), answers[part.train]).backward()
            optimizer.step()
        with torch.no_grad():
            right = model(inputs).argmax(dim=1) == answers
        reached[kind] = [float(right[rows].double().mean()) for rows in (part.train, part.validation)]
    assert reached["orthogonal"][1] > 0.95
    assert reached["plain"][0] == 1.0
    assert reached["plain"][1] < 0.1
