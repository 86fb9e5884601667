import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from grokscope.errors import InputError
from grokscope.jobs import Stopped, run_all, state_at
from grokscope.runs import RunFolder, Store, run_name
from grokscope.specs import Architecture, Cadence, Fork, RunSpec, Training
from grokscope.training import Cohort, advance, initial_state
from stacks import train_stack

pytestmark = pytest.mark.usefixtures("quick_disk")

STEPS, STORED, BETWEEN = 12, 6, 5
PARENT = RunSpec(
    task="S3",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=STEPS, batch_size=16, weight_decay=0.5),
    checkpoints=Cadence(every=4, at=(STORED,)),
    measurements=Cadence(every=2),
)
LAST = f"state-{STEPS:08d}.safetensors"


@pytest.fixture(scope="module")
def parents(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("parents"))
    run_all([PARENT], store, compiled=False)
    return store


@pytest.fixture
def store(parents: Store, tmp_path: Path) -> Store:
    """A finished parent, with full states at steps 6 and 12."""
    shutil.copytree(parents.path, tmp_path / "runs")
    return Store(tmp_path / "runs")


def fork_of(parent: RunSpec, step: int, moments: str = "kept", **training: object) -> RunSpec:
    return replace(parent, fork=Fork(parent.content_hash, step, moments), training=replace(parent.training, **training))


def run(store: Store, spec: RunSpec, **options: object) -> RunFolder:
    run_all([spec], store, compiled=False, **options)
    return store.find(run_name(spec))


def rows_after(folder: RunFolder, step: int) -> list[bytes]:
    """Its lines to the last byte, but for their checksums, which are of one run alone."""
    lines = [line.partition(b"\t")[0] for line in (folder.path / "log.jsonl").read_bytes().splitlines()]
    return [line for line, row in zip(lines, folder.log(), strict=True) if row["step"] > step]


def trained_by_hand(store: Store, spec: RunSpec, change: Callable[[dict[str, Tensor]], object]) -> dict[str, Tensor]:
    """The parent's state at the fork, changed, and the remaining steps: what a fork is."""
    cohort = Cohort([spec])
    state, row = initial_state(cohort), state_at(store.find(spec.fork.parent), spec.fork.step, store, compiled=False)
    change(row)
    state.put(0, row)
    advance(state, cohort, STEPS - spec.fork.step, False)
    return state.row(0)


def end_of(store: Store, folder: RunFolder) -> dict[str, Tensor]:
    return state_at(folder, STEPS, store)


@pytest.mark.parametrize("step", [0, 1, BETWEEN, STORED, 7, STEPS - 1])
def test_with_unchanged_weight_decay_it_equals_its_parent_bit_for_bit(step: int, store: Store) -> None:
    parent, child = store.find(run_name(PARENT)), run(store, fork_of(PARENT, step))
    assert (child.path / LAST).read_bytes() == (parent.path / LAST).read_bytes()
    assert rows_after(child, step) == rows_after(parent, step)
    assert [row["step"] for row in child.log()] == [step, *range(step + 2 - step % 2, STEPS + 1, 2)]
    for kept in parent.checkpoints("weights"):
        if kept > step:
            name = f"weights-{kept:08d}.safetensors"
            assert (child.path / name).read_bytes() == (parent.path / name).read_bytes()


def test_only_where_a_fork_may_begin_full_states_stay(store: Store) -> None:
    assert list(store.find(run_name(PARENT)).checkpoints("state")) == [STORED, STEPS]


def test_the_parent_is_only_read(store: Store) -> None:
    folder = store.find(run_name(PARENT)).path
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    run(store, fork_of(PARENT, BETWEEN, weight_decay=3.0))
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before


@pytest.mark.parametrize("step", [BETWEEN, STORED])
def test_with_another_weight_decay_only_that_differs(step: int, store: Store) -> None:
    spec = fork_of(PARENT, step, weight_decay=3.0)
    child = run(store, spec)
    by_hand = trained_by_hand(store, spec, lambda row: row.update(weight_decay=torch.tensor(3.0, dtype=torch.float64)))
    for name, value in end_of(store, child).items():
        assert value.equal(by_hand[name]), name
    parent = store.find(run_name(PARENT))
    assert not end_of(store, child)["weights"].equal(end_of(store, parent)["weights"])
    assert {row["weight_decay"] for row in child.log()} == {3.0}
    first, at_the_fork = child.log()[0], {row["step"]: row for row in parent.log()}.get(step)
    if at_the_fork is not None:
        assert {**first, "weight_decay": 0.5} == at_the_fork, "it begins where its parent was"


def test_moments_may_begin_anew(store: Store) -> None:
    def forget(row: dict[str, Tensor]) -> None:
        for name in ("first", "second", "age"):
            row[name] = torch.zeros_like(row[name])

    spec = fork_of(PARENT, BETWEEN, "reset")
    end = end_of(store, run(store, spec))
    by_hand = trained_by_hand(store, spec, forget)
    for name, value in end.items():
        assert value.equal(by_hand[name]), name
    assert (int(end["step"]), int(end["age"])) == (STEPS, STEPS - BETWEEN)
    assert not end["weights"].equal(end_of(store, store.find(run_name(PARENT)))["weights"])


@pytest.mark.parametrize(("first", "second"), [(BETWEEN, BETWEEN), (BETWEEN, 9), (STORED, STORED), (0, 0)])
def test_a_fork_of_a_fork(first: int, second: int, store: Store) -> None:
    child = fork_of(PARENT, first)
    grandchild = fork_of(child, second)
    run(store, child)
    parent, folder = store.find(run_name(PARENT)), run(store, grandchild)
    assert (folder.path / LAST).read_bytes() == (parent.path / LAST).read_bytes()
    assert rows_after(folder, second) == rows_after(parent, second)


@pytest.mark.parametrize("keep", ["none", "state", "weights"])
def test_a_fork_needs_no_stored_state(keep: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    run(store, PARENT, keep=keep)
    child = run(store, fork_of(PARENT, 0))
    again = run(store, fork_of(PARENT, 7))
    assert rows_after(child, 0) == rows_after(store.find(run_name(PARENT)), 0)
    assert (again.path / LAST).read_bytes() == (child.path / LAST).read_bytes()


def test_an_unfinished_parent_can_be_forked_ahead_of_itself(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    calls = iter([False, False, True])
    with pytest.raises(Stopped):
        run_all([PARENT], other, should_stop=lambda: next(calls), compiled=False)
    child = run(other, fork_of(PARENT, 9))
    assert (child.path / LAST).read_bytes() == (store.find(run_name(PARENT)).path / LAST).read_bytes()
    assert not other.find(run_name(PARENT)).outcome.is_finished


def test_parent_and_forks_may_stand_in_one_plan(store: Store, tmp_path: Path) -> None:
    other, child = Store(tmp_path / "other"), fork_of(PARENT, 7)
    run_all([PARENT, child, fork_of(child, 9)], other, compiled=False)
    expected = (store.find(run_name(PARENT)).path / LAST).read_bytes()
    assert [(folder.path / LAST).read_bytes() for folder in other] == [expected] * 3


def test_a_schedule_goes_on_as_in_the_parent(tmp_path: Path) -> None:
    store = Store(tmp_path)
    parent = replace(PARENT, training=replace(PARENT.training, weight_decay_schedule=((4, 2.0), (10, 5.0))))
    expected = (run(store, parent).path / LAST).read_bytes()
    for step in (BETWEEN, STORED):
        assert (run(store, fork_of(parent, step)).path / LAST).read_bytes() == expected


def test_it_may_go_on_where_its_parent_ended(store: Store) -> None:
    child = run(store, fork_of(PARENT, STEPS, steps=STEPS + 4))
    whole = replace(PARENT, training=replace(PARENT.training, steps=STEPS + 4))
    name = f"state-{STEPS + 4:08d}.safetensors"
    assert (child.path / name).read_bytes() == (run(store, whole).path / name).read_bytes()


def test_an_interrupted_fork_equals_an_uninterrupted_one(store: Store, tmp_path: Path) -> None:
    spec = fork_of(PARENT, BETWEEN, weight_decay=2.0)
    other = Store(tmp_path / "other")
    run(other, PARENT)
    calls = iter(range(100))
    for _ in range(20):
        try:
            run_all([spec], other, should_stop=lambda: next(calls) % 2 == 1, compiled=False)
            break
        except Stopped:
            pass
    assert next(calls) > 4
    straight, stopped = run(store, spec).path, other.find(run_name(spec)).path
    assert {p.name: p.read_bytes() for p in straight.iterdir()} == {p.name: p.read_bytes() for p in stopped.iterdir()}


def test_forks_from_different_steps_share_a_stack(store: Store, tmp_path: Path) -> None:
    forks = [fork_of(PARENT, 4, weight_decay=2.0), fork_of(PARENT, 7, "reset"), fork_of(PARENT, 0)]
    alone = [end_of(store, run(store, spec)) for spec in forks]
    other = Store(tmp_path / "other")
    run(other, PARENT)
    train_stack(other, forks)
    for spec, expected in zip(forks, alone, strict=True):
        end = end_of(other, other.find(run_name(spec)))
        assert int(end["step"]) == STEPS
        assert int(end["age"]) == int(expected["age"])
        torch.testing.assert_close(end["weights"], expected["weights"], rtol=1e-3, atol=1e-4)  # another layout


DIVERGES = replace(PARENT, training=replace(PARENT.training, learning_rate=1e30, weight_decay=0.0))
CHILD = fork_of(PARENT, STORED)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (fork_of(PARENT, STEPS + 1, steps=STEPS + 9), rf"has states from step 0 to {STEPS}, got {STEPS + 1}"),
        (fork_of(CHILD, STORED - 1), rf"has states from step {STORED} to {STEPS}, got {STORED - 1}"),
        (fork_of(DIVERGES, 9), r"has states from step 0 to [0-9], got 9"),
        (replace(PARENT, fork=Fork("0123456789abcdef", 4)), r"there is no run '0123456789abcdef' in .* to fork from"),
        (
            replace(fork_of(PARENT, 4), architecture=replace(PARENT.architecture, width=32)),
            r"a fork must have the architecture and symbols of its parent",
        ),
        (replace(fork_of(PARENT, 4), task="S4"), r"a fork must have the architecture and symbols of its parent"),
    ],
    ids=["after the end", "before the beginning", "after it diverged", "no parent", "architecture", "task"],
)
def test_an_impossible_fork_is_rejected_and_leaves_nothing_behind(spec: RunSpec, sentence: str, store: Store) -> None:
    run_all([CHILD, DIVERGES], store, compiled=False)
    before = sorted(store.path.rglob("*"))
    with pytest.raises(InputError, match=sentence):
        run_all([spec], store, compiled=False)
    assert sorted(store.path.rglob("*")) == before


def test_a_state_that_never_was_cannot_be_had(store: Store) -> None:
    folder = store.find(run_name(PARENT))
    with pytest.raises(InputError, match=rf"has states from step 0 to {STEPS}, got 13"):
        state_at(folder, 13, store)
    run(store, DIVERGES)
    with pytest.raises(InputError, match=r"diverged at step [0-9]; it has no state at step 11"):
        state_at(store.find(run_name(DIVERGES)), 11, store)


def test_a_fork_waits_for_a_parent_that_another_process_trains(store: Store, tmp_path: Path) -> None:
    parent = store.find(run_name(PARENT))
    state = parent.path / f"state-{STORED:08d}.safetensors"
    (parent.path / "outcome.json").unlink()
    state.rename(tmp_path / "later")
    child = fork_of(PARENT, STORED, weight_decay=3.0)
    waited: list[int] = []

    def arrives() -> bool:
        waited.append(1)
        if len(waited) == 3:
            (tmp_path / "later").rename(state)
        return False

    with parent.lock():
        run_all([child], store, compiled=False, should_stop=arrives)
    assert len(waited) >= 3
    assert store.find(run_name(child)).outcome.is_finished


def test_nobody_waits_for_a_parent_whose_process_is_gone(store: Store) -> None:
    parent = store.find(run_name(PARENT))
    for name in ("outcome.json", f"state-{STORED:08d}.safetensors", LAST):
        (parent.path / name).unlink()
    (parent.path / "lock").write_text("{}")
    child = run(store, fork_of(PARENT, STORED, weight_decay=3.0), should_stop=lambda: False)
    assert child.outcome.is_finished  # trained again from the beginning


def test_a_stack_is_trained_by_one_process_only(store: Store) -> None:
    child = fork_of(PARENT, STORED, weight_decay=3.0)
    with store.claim_stack([child]):
        run_all([child], store, compiled=False)
        assert not (store.path / run_name(child)).exists()
    run_all([child], store, compiled=False)
    assert store.find(run_name(child)).outcome.is_finished
