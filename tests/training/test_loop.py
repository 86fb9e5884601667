import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from plain_runs import (
    ARCHITECTURES,
    TWO_LAYERS,
    PlainRun,
    assert_gradients_of_the_references,
    assert_near,
    assert_same_bits,
    by_name,
    copy_of,
    fresh,
    in_slot,
    mixed_runs,
    padding_in,
    small_run,
    with_new_seed,
)

from grokscope.measures import snapshot
from grokscope.specs import Architecture
from grokscope.training import Cohort, advance, initial_state
from grokscope.training.batches import batches
from grokscope.training.loop import CHUNK

architectures = pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())


# Exact: the stack equals each run's module trained alone.


@architectures
def test_loss_and_every_gradient_equal_the_reference_modules(architecture: Architecture) -> None:
    runs = mixed_runs(architecture, beta1=0.0)  # so that the first moment is the gradient
    sizes = [[len(PlainRun(run).batch(step)) for step in range(4)] for run in runs]
    assert sizes == [[16, 16, 16, 12], [16, 8, 16, 8], [16, 2, 16, 2]]
    assert_gradients_of_the_references(runs, 4)


@architectures
def test_two_hundred_steps_equal_the_reference_modules(architecture: Architecture) -> None:
    runs, steps = [mixed_runs(architecture)[i] for i in (0, 2)], 200  # add_mod11 with λ = 1, S3 with λ = 5
    state, cohort = fresh(runs)
    state, info = advance(state, cohort, steps)
    for slot, run in enumerate(runs):
        plain = PlainRun(run).trained(steps)
        assert_near(in_slot(cohort, state.weights, slot), by_name(plain.reference), 1e-9)
        assert_near(in_slot(cohort, state.first, slot), plain.moment("exp_avg"), 1e-9)
        assert_near(in_slot(cohort, state.second, slot), plain.moment("exp_avg_sq"), 1e-9)
        assert info.loss[slot].tolist() == pytest.approx(plain.losses, abs=1e-9)
        for buffer in (state.weights, state.first, state.second):
            assert padding_in(cohort, buffer, slot).numel() > 0
            assert not padding_in(cohort, buffer, slot).any()
    assert state.step.tolist() == state.age.tolist() == [steps] * 2
    assert info.failed_at == (None, None)


# Independence: neighbours change nothing.


def test_a_run_alone_equals_the_run_in_a_stack() -> None:
    runs = mixed_runs(TWO_LAYERS)
    together, cohort = fresh(runs)
    start = copy_of(together)
    advance(together, cohort, 40)
    for slot, run in enumerate(runs):
        alone, own_cohort = fresh([run])
        assert torch.equal(alone.weights[0], start.weights[slot])
        advance(alone, own_cohort, 40)
        assert_near(in_slot(cohort, together.weights, slot), in_slot(own_cohort, alone.weights, 0), 1e-12)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_in_the_same_slot_neighbours_change_no_bit(precision: str) -> None:
    own = small_run("add_mod11", 5, TWO_LAYERS, precision=precision)
    neighbours = [
        [
            small_run("S4", 1, TWO_LAYERS, precision=precision),
            small_run("add_mod7", 2, TWO_LAYERS, precision=precision),
        ],
        [small_run("add_mod11", 8, TWO_LAYERS, precision=precision, learning_rate=0.01), None],
    ]
    ends = []
    for before, after in neighbours:
        state, cohort = fresh([before, own, after])
        advance(state, cohort, 30)
        ends.append(state)
    assert_same_bits(*ends, slots=[1])


def test_batches_do_not_depend_on_neighbours() -> None:
    together, _ = batches(torch.tensor([4, 5, 6]), torch.tensor([0, 9, 100]), 20, 24, 16, False)
    alone, _ = batches(torch.tensor([5]), torch.tensor([9]), 20, 24, 16, False)
    assert torch.equal(together[:, 1], alone[:, 0])


def test_an_empty_slot_keeps_every_bit() -> None:
    state, cohort = fresh([None, *mixed_runs(), None])
    before = copy_of(state)
    state, info = advance(state, cohort, 20)
    assert_same_bits(before, state, slots=[0, 4])
    assert info.loss[[0, 4]].isnan().all()
    assert info.loss[1:4].isfinite().all()
    assert info.failed_at == (None,) * 5
    assert state.step.tolist() == [0, 20, 20, 20, 0]


def test_an_empty_slot_beside_a_scheduled_run_keeps_every_bit() -> None:
    state, cohort = fresh([small_run(weight_decay_schedule=((3, 2.0),)), None])
    before = copy_of(state)
    advance(state, cohort, 20)
    assert_same_bits(before, state, slots=[1])


# Pulling: how the steps are cut, and what is looked at in between, changes nothing.


@pytest.mark.parametrize("parts", [(1, 24), (17, 23), (CHUNK - 1, 3), (100, 60)])
def test_steps_in_two_calls_equal_steps_in_one(parts: tuple[int, int]) -> None:
    runs = [
        small_run("add_mod7", 1, weight_decay_schedule=((20, 3.0), (CHUNK, 0.0)), warmup_steps=30),
        small_run("add_mod11", 2, sampling="replacement"),
        small_run("S3", 3, steps=25),
    ]
    at_once, cohort = fresh(runs)
    at_once, whole = advance(at_once, cohort, sum(parts))
    in_parts, cohort = fresh(runs)
    losses = [advance(in_parts, cohort, steps)[1].loss for steps in parts]
    assert_same_bits(at_once, in_parts)
    assert torch.equal(torch.cat(losses, dim=1).nan_to_num(-1), whole.loss.nan_to_num(-1))


def test_measuring_changes_no_bit() -> None:
    runs = mixed_runs(TWO_LAYERS)
    unseen, cohort = fresh(runs)
    advance(unseen, cohort, 30)
    seen, cohort = fresh(runs)
    for _ in range(3):
        before = copy_of(seen)
        snapshot(seen.weights, cohort)
        assert_same_bits(before, seen)
        advance(seen, cohort, 10)
    assert_same_bits(unseen, seen)


def test_two_states_of_one_cohort_do_not_meet() -> None:
    cohort = Cohort(mixed_runs())
    one, other = initial_state(cohort), initial_state(cohort)
    for _ in range(2):
        advance(one, cohort, 5)
        advance(other, cohort, 5)
    assert_same_bits(one, other)
    assert one.step.tolist() == [10, 10, 10]


def test_no_steps_change_nothing() -> None:
    state, cohort = fresh(mixed_runs())
    before = copy_of(state)
    state, info = advance(state, cohort, 0)
    assert_same_bits(before, state)
    assert info.loss.shape == (3, 0)


# Forks: a row is a run.


def test_a_fork_into_another_slot_continues_bit_for_bit() -> None:
    parent = small_run("add_mod11", 1, TWO_LAYERS)
    state, cohort = fresh([parent, with_new_seed(parent, initialization=9), None])
    advance(state, cohort, 21)
    assert not torch.equal(state.weights[0], state.weights[1])
    state.put(1, state.row(0))
    state.put(2, state.row(0) | {"weight_decay": torch.tensor(4.0)})
    advance(state, cohort, 21)
    for name, value in vars(state).items():
        assert torch.equal(value[0], value[1]), name
    assert state.alive.all()
    assert (state.weights[2] - state.weights[0]).abs().max() > 1e-3


def test_forks_from_different_steps_share_a_stack() -> None:
    run = small_run("add_mod7", 3)
    state, cohort = fresh([run, run])
    advance(state, cohort, 7)
    early = state.row(0)
    advance(state, cohort, 10)
    at_17 = state.row(0)
    state.put(1, early)
    assert state.step.tolist() == [17, 7]
    advance(state, cohort, 10)
    assert state.step.tolist() == state.age.tolist() == [27, 17]
    assert torch.equal(state.weights[1], at_17["weights"])
    assert torch.equal(state.second[1], at_17["second"])


def test_a_fork_that_resets_adam_equals_a_new_optimizer() -> None:
    run = small_run("add_mod7", 3)
    state, cohort = fresh([run])
    plain = PlainRun(run).trained(15)
    advance(state, cohort, 15)
    zeros = torch.zeros_like(state.first[0])
    state.put(0, {"first": zeros, "second": zeros, "age": torch.tensor(0)})
    plain.optimizer.state.clear()
    advance(state, cohort, 15)
    assert_near(in_slot(cohort, state.weights, 0), by_name(plain.trained(15).reference), 1e-10)


# Failure: one run's NaN is its own.


def test_a_poisoned_run_is_marked_and_its_neighbours_keep_every_bit() -> None:
    runs = mixed_runs(TWO_LAYERS)
    healthy, cohort = fresh(runs)
    sick = copy_of(healthy)
    advance(healthy, cohort, 30)
    advance(sick, cohort, 12)
    cohort.layout.views(sick.weights)["pos_embed.W_pos"][1, 2, 0] = math.nan
    at_failure = copy_of(sick)
    sick, info = advance(sick, cohort, 9)
    assert info.failed_at == (None, 12, None)
    assert sick.alive.tolist() == [True, False, True]
    assert info.loss[1].isnan().all()
    sick, info = advance(sick, cohort, 9)
    assert info.failed_at == (None, None, None)  # it was reported once
    at_failure.alive[1] = False
    assert_same_bits(sick, at_failure, slots=[1])
    assert_same_bits(sick, healthy, slots=[0, 2])


def test_an_overflowing_run_fails_at_the_step_at_which_it_would_alone() -> None:
    runs = mixed_runs()
    wild = small_run("mult_mod7", 2, learning_rate=1e120, weight_decay=0.0, warmup_steps=0)
    plain = PlainRun(wild).trained(6)
    failing = next(step for step, loss in enumerate(plain.losses) if not math.isfinite(loss))
    assert failing >= 1
    healthy, cohort = fresh(runs)
    advance(healthy, cohort, 20)
    sick, cohort = fresh([runs[0], wild, runs[2]])
    sick, info = advance(sick, cohort, 20)
    assert info.failed_at == (None, failing, None)
    assert sick.alive.tolist() == [True, False, True]
    assert sick.step.tolist() == [20, failing, 20]
    assert info.loss[1, :failing].isfinite().all()
    assert_same_bits(sick, healthy, slots=[0, 2])


def test_a_failure_after_the_first_chunk_is_dated_right() -> None:
    state, cohort = fresh([small_run("add_mod7", 1), small_run("add_mod7", 2)])
    advance(state, cohort, CHUNK + 3)
    state.weights[1] = math.nan
    _, info = advance(state, cohort, CHUNK + 3)
    assert info.failed_at == (None, CHUNK + 3)


def test_a_clipped_stack_isolates_its_failures_too() -> None:
    runs = mixed_runs(clip_norm=0.1)
    healthy, cohort = fresh(runs)
    sick = copy_of(healthy)
    sick.weights[0] = math.nan
    advance(healthy, cohort, 10)
    _, info = advance(sick, cohort, 10)
    assert info.failed_at == (0, None, None)
    assert_same_bits(sick, healthy, slots=[1, 2])


# Precision and compilation.


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-3), ("tf32", 1e-3), ("bf16", 0.05)])
def test_other_precisions_follow_float64(precision: str, tolerance: float) -> None:
    exact, cohort = fresh(mixed_runs(TWO_LAYERS))
    _, expected = advance(exact, cohort, 10)
    setting = torch.get_float32_matmul_precision()
    state, cohort = fresh(mixed_runs(TWO_LAYERS, precision=precision))
    state, info = advance(state, cohort, 10)
    assert state.weights.dtype == torch.float32
    assert torch.get_float32_matmul_precision() == setting
    assert info.loss.tolist() == [pytest.approx(row, abs=tolerance) for row in expected.loss.tolist()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        "{}",
        '{"dropout": 0.1}',
        '{"clip_norm": 0.1}',
        '{"gradient": "grokfast", "epsilon": 1e-3}',
        '{"gradient": "orthogonal", "epsilon": 1e-3}',
    ],
    ids=["plain", "dropout", "clipped", "grokfast", "orthogonal"],
)
def test_compiled_equals_eager(options: str) -> None:
    # In a process of its own: the compiler cannot look through the shape checks of the tests.
    script = Path(__file__).with_name("compiled_runs.py")
    done = subprocess.run([sys.executable, script, options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    differences = json.loads(done.stdout)
    assert set(differences) == {"loss", "weights", "first", "second", "snapshot"}
    assert max(differences.values()) < 1e-10, differences


def test_a_failed_run_does_not_carry_a_decay_it_never_came_to() -> None:
    options = {"learning_rate": 1e120, "weight_decay": 0.0, "steps": 300, "weight_decay_schedule": ((100, 1e-200),)}
    state, cohort = fresh([small_run(seed=1, **options), small_run(seed=2)])
    state, info = advance(state, cohort, 128)
    assert info.failed_at[0] is not None
    assert state.weight_decay[0] == 0


def test_a_replaced_buffer_is_trained_and_not_the_old_one() -> None:
    state, cohort = fresh([small_run(seed=1)])
    other, _ = fresh([small_run(seed=1)])
    advance(state, cohort, 3)
    state.weights = state.weights.clone()
    advance(state, cohort, 3)
    advance(other, cohort, 6)
    assert torch.equal(state.weights, other.weights)
