"""Forks that hold or scale the norm, and triggers, trained and stored by the runner."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from grokscope.errors import InputError
from grokscope.jobs import Stopped, run_all, state_at
from grokscope.model import reference_module, sizes_of
from grokscope.runs import RunFolder, Store, run_name
from grokscope.specs import Architecture, Cadence, Fork, RunSpec, Training, Trigger
from grokscope.steering import paired_run
from grokscope.tasks import named_task, split
from grokscope.training import Cohort, advance, initial_state
from stacks import train_stack

pytestmark = pytest.mark.usefixtures("quick_disk")

STEPS, AT = 16, 6
PARENT = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=STEPS, batch_size=16, weight_decay=1.0),
    checkpoints=Cadence(every=4, at=(AT,)),
    measurements=Cadence(every=2),
    precision="float64",
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "runs")
    run_all([PARENT], store, compiled=False)
    return store


def fork(weight_decay: float, **options: object) -> RunSpec:
    changed = replace(PARENT.training, weight_decay=weight_decay)
    return replace(PARENT, fork=Fork(PARENT.content_hash, AT, **options), training=changed)


def run(store: Store, spec: RunSpec) -> RunFolder:
    run_all([spec], store, compiled=False)
    return store.find(run_name(spec))


def norms(folder: RunFolder) -> dict[int, float]:
    return {row["step"]: row["norm"] for row in folder.log()}


def weights_at(store: Store, folder: RunFolder, step: int) -> Tensor:
    return state_at(folder, step, store, compiled=False)["weights"]


def test_a_frozen_norm_stays_what_it_was_at_the_fork(store: Store) -> None:
    parent = norms(store.find(run_name(PARENT)))
    frozen, free = (norms(run(store, fork(50.0, norm=kind))) for kind in ("frozen", "free"))
    assert list(frozen.values()) == [pytest.approx(parent[AT], rel=1e-12)] * len(frozen)
    assert abs(free[STEPS] - parent[AT]) > 1e-3 * parent[AT]


def test_a_frozen_norm_is_a_rescaling_after_every_step_and_nothing_else(store: Store) -> None:
    spec = fork(50.0, norm="frozen")
    free = replace(spec, fork=replace(spec.fork, norm="free"))
    cohort = Cohort([free])
    state = initial_state(cohort)
    state.put(0, state_at(store.find(run_name(PARENT)), AT, store, compiled=False))
    state.weight_decay[0] = 50.0
    norm = state.weights.norm()
    for _ in range(STEPS - AT):
        advance(state, cohort, 1, False)
        state.weights *= norm / state.weights.norm()
    found = weights_at(store, run(store, spec), STEPS)
    assert torch.allclose(found, state.weights[0], rtol=1e-12, atol=1e-14)


def test_a_matched_norm_is_the_parents_at_every_look(store: Store) -> None:
    parent = norms(store.find(run_name(PARENT)))
    folder = run(store, fork(50.0, norm="matched"))
    assert norms(folder) == {step: pytest.approx(norm, rel=1e-12) for step, norm in parent.items() if step >= AT}
    assert folder.outcome.layout["slots"] == 2
    ends = [weights_at(store, one, STEPS) for one in (folder, store.find(run_name(PARENT)))]
    assert not torch.allclose(*ends, rtol=1e-3)


def test_matched_with_the_parents_decay_is_the_parent(store: Store) -> None:
    folder = run(store, fork(1.0, norm="matched"))
    ends = [weights_at(store, one, STEPS) for one in (folder, store.find(run_name(PARENT)))]
    assert torch.allclose(*ends, rtol=1e-12, atol=1e-15)


def test_a_matched_run_that_was_stopped_begins_anew_and_ends_the_same(store: Store, tmp_path: Path) -> None:
    spec, other = fork(50.0, norm="matched"), Store(tmp_path / "other")
    whole = (run(store, spec).path / "log.jsonl").read_bytes()
    run_all([PARENT], other, compiled=False)
    calls = iter(range(100))
    with pytest.raises(Stopped):
        run_all([spec], other, compiled=False, should_stop=lambda: next(calls) == 3)
    assert (run(other, spec).path / "log.jsonl").read_bytes() == whole


def test_neighbours_in_a_stack_do_not_notice_who_holds_a_norm(store: Store, tmp_path: Path) -> None:
    specs = [fork(50.0, norm="frozen"), fork(3.0, norm="matched"), fork(5.0, norm="matched"), fork(2.0, norm="frozen")]
    other = Store(tmp_path / "stacked")
    run_all([PARENT], other, compiled=False)
    train_stack(other, specs)
    for spec in specs:
        alone, stacked = run(store, spec), other.find(run_name(spec))
        assert torch.allclose(
            weights_at(store, alone, STEPS), weights_at(other, stacked, STEPS), rtol=1e-10, atol=1e-13
        )


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_a_scaled_fork_begins_with_the_parents_weights_times_that(scale: float, store: Store) -> None:
    folder = run(store, fork(1.0, scale=scale))
    parent = norms(store.find(run_name(PARENT)))
    assert norms(folder)[AT] == pytest.approx(scale * parent[AT], rel=1e-12)
    before = state_at(store.find(run_name(PARENT)), AT, store, compiled=False)
    cohort = Cohort([folder.spec])
    state = initial_state(cohort)
    state.put(0, before | {"weights": before["weights"] * scale})
    advance(state, cohort, STEPS - AT, False)
    assert torch.equal(weights_at(store, folder, STEPS), state.weights[0])


def test_a_fork_may_have_another_temperature_and_begins_with_its_parents_answers(store: Store) -> None:
    tempered = replace(fork(1.0), architecture=replace(PARENT.architecture, temperature=2.0))
    parent, own = store.find(run_name(PARENT)), run(store, tempered)
    at_fork = [next(row for row in folder.log() if row["step"] == AT) for folder in (parent, own)]
    for column in ("train_accuracy", "validation_accuracy", "norm"):
        assert at_fork[0][column] == at_fork[1][column]
    assert torch.equal(*(weights_at(store, folder, AT) for folder in (parent, own)))
    task = named_task(PARENT.task)
    views = Cohort([PARENT]).layout.views(weights_at(store, parent, AT)[None])
    logits = reference_module(PARENT.architecture, sizes_of(task), views)(torch.tensor(task.tokens))
    rows = torch.tensor(split(task, PARENT.train_fraction, PARENT.seeds.split).train)
    expected = cross_entropy(logits[rows] / 2, torch.tensor(task.answers)[rows])
    assert at_fork[1]["train_loss"] == pytest.approx(expected.item(), rel=1e-9)
    assert not torch.equal(*(weights_at(store, folder, STEPS) for folder in (parent, own)))


def test_the_paired_run_is_the_parent_going_on() -> None:
    found = paired_run(fork(5.0, norm="matched", moments="reset"), PARENT)
    assert found == fork(1.0)


def test_a_trigger_changes_the_decay_from_its_look_on_and_the_record_says_so(store: Store) -> None:
    spec = replace(PARENT, trigger=Trigger("step", at_least=5, weight_decay=40.0, every=3))
    folder = run(store, spec)
    decays = {row["step"]: row["weight_decay"] for row in folder.log()}
    assert set(decays) == {0, 2, 3, 4, 6, 8, 9, 10, 12, 14, 15, 16}
    assert {step for step, decay in decays.items() if decay == 40.0} == {8, 9, 10, 12, 14, 15, 16}
    assert folder.outcome.trigger == {"fired_at": 6, "restored_at": None}
    scheduled = replace(PARENT, training=replace(PARENT.training, weight_decay_schedule=((6, 40.0),)))
    ends = [weights_at(store, run(store, one), STEPS) for one in (spec, scheduled)]
    assert torch.equal(*ends)


def test_the_state_between_checkpoints_is_trained_again_with_what_the_trigger_decided(store: Store) -> None:
    spec = replace(PARENT, trigger=Trigger("step", at_least=9, weight_decay=40.0, every=3))
    often = replace(spec, checkpoints=Cadence(every=1, at=tuple(range(STEPS))))
    run_all([often], store, compiled=False, keep="state")
    again = state_at(run(store, spec), 11, store, compiled=False)
    stored = state_at(store.find(run_name(often)), 11, store, compiled=False)
    assert float(again["weight_decay"]) == 40.0
    assert torch.equal(again["weights"], stored["weights"])


def test_a_matched_run_has_the_states_that_are_stored_and_no_others(store: Store) -> None:
    folder = run(store, fork(5.0, norm="matched"))
    with pytest.raises(InputError, match="follows its parent's norm: its state at step 11 was not stored"):
        state_at(folder, 11, store, compiled=False)


def test_a_trigger_that_never_fires_changes_nothing_and_is_recorded(store: Store) -> None:
    folder = run(store, replace(PARENT, trigger=Trigger("fsd", at_least=1.0, weight_decay=40.0)))
    assert folder.outcome.trigger == {"fired_at": None, "restored_at": None}
    assert torch.equal(weights_at(store, folder, STEPS), weights_at(store, store.find(run_name(PARENT)), STEPS))


@pytest.mark.parametrize("stop_at", range(1, 11))
def test_a_triggered_run_survives_any_interruption(stop_at: int, store: Store, tmp_path: Path) -> None:
    spec = replace(
        PARENT,
        trigger=Trigger("train_accuracy", at_least=0.05, weight_decay=40.0, every=3, restore_after_grokking=True),
    )
    whole = (run(store, spec).path / "log.jsonl").read_bytes()
    other, calls = Store(tmp_path / "other"), iter(range(100))
    with pytest.raises(Stopped):
        run_all([spec], other, compiled=False, should_stop=lambda: next(calls) == stop_at)
    assert (run(other, spec).path / "log.jsonl").read_bytes() == whole


def test_a_trigger_and_a_schedule_do_not_go_together() -> None:
    training = replace(PARENT.training, weight_decay_schedule=((3, 2.0),))
    with pytest.raises(InputError, match="a trigger or a weight_decay_schedule, not both"):
        replace(PARENT, training=training, trigger=Trigger())


def test_a_scale_must_be_positive() -> None:
    with pytest.raises(InputError, match="scale must be positive, got 0"):
        Fork("0" * 16, 1, scale=0.0)
