import torch
from plain_runs import assert_same_bits, copy_of, fresh, mixed_runs, small_run

from grokscope.training import advance


def test_a_new_state_is_at_step_zero() -> None:
    state, _ = fresh([*mixed_runs(), None])
    assert state.step.tolist() == state.age.tolist() == [0] * 4
    assert not state.first.any()
    assert not state.second.any()
    assert state.weight_decay.tolist() == [1.0, 0.0, 5.0, 1.0]
    assert state.alive.tolist() == [True, True, True, False]


def test_rows_taken_and_put_back_are_the_same() -> None:
    state, cohort = fresh(mixed_runs())
    advance(state, cohort, 5)
    kept, rows = copy_of(state), [state.row(slot) for slot in range(3)]
    advance(state, cohort, 5)  # a row is a copy: training on does not change it
    assert not torch.equal(state.weights, kept.weights)
    for slot, row in enumerate(rows):
        state.put(slot, row)
    assert_same_bits(state, kept)


def test_putting_a_row_changes_no_other() -> None:
    state, cohort = fresh(mixed_runs())
    advance(state, cohort, 5)
    kept = copy_of(state)
    state.put(1, {name: torch.zeros_like(value) for name, value in state.row(1).items()})
    assert_same_bits(state, kept, slots=[0, 2])
    assert not any(value.any() for value in state.row(1).values())


def test_resumed_equals_uninterrupted() -> None:
    runs = [*mixed_runs(), small_run("add_mod7", 9, sampling="replacement", warmup_steps=20)]
    whole, cohort = fresh(runs)
    advance(whole, cohort, 24)
    first, cohort = fresh(runs)
    advance(first, cohort, 11)
    rows = [first.row(slot) for slot in range(4)]
    resumed, cohort = fresh(runs)  # nothing of the first process is left but its rows
    for slot, row in enumerate(rows):
        resumed.put(slot, row)
    advance(resumed, cohort, 13)
    assert_same_bits(whole, resumed)
