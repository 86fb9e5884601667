import getpass
import json
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from grokscope.jobs import (
    Notice,
    Progress,
    Stopped,
    compilation,
    run_all,
    state_at,
    training_stack,
)
from grokscope.jobs import states as state_module
from grokscope.runs import RunFolder, Store, outcome, run_name
from grokscope.runs.provenance import provenance
from grokscope.specs import Cadence, Fork, ReadingSpec, RunSpec, Training
from short_runs import STEPS, tiny
from stacks import train_stack

pytestmark = pytest.mark.usefixtures("quick_disk")


def contents(path: Path) -> dict[str, bytes]:
    """Every file, but for the lock of a stack that was killed when its last run had ended: nobody heeds it."""
    files = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith(".stack-"))
    return {str(p.relative_to(path)): p.read_bytes() for p in files}


def train(store: Store, *specs: RunSpec, stop_at: Callable[[int], bool] = lambda call: False, **options: object) -> int:
    """Run to the end, through every interruption; how many there were."""
    calls, stops = iter(range(10_000)), 0
    while True:
        try:
            run_all(specs, store, should_stop=lambda: stop_at(next(calls)), compiled=False, **options)
            return stops
        except Stopped:
            stops += 1


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Two runs that were never interrupted."""
    store = Store(tmp_path_factory.mktemp("straight"))
    train(store, tiny(0), tiny(1))
    return store


def states(folder: RunFolder) -> list[int]:
    return list(folder.checkpoints("state"))


@pytest.mark.parametrize(
    "stop_at",
    [
        lambda call: call == 0,
        lambda call: call == 1,
        lambda call: call == 4,
        lambda call: call == 6,
        lambda call: call % 2 == 1,
        lambda call: call % 3 == 2,
    ],
    ids=["at once", "off the checkpoints' cadence", "later", "between runs", "after each evaluation", "now and then"],
)
def test_resumed_equals_uninterrupted(stop_at: Callable[[int], bool], straight: Store, tmp_path: Path) -> None:
    assert train(Store(tmp_path), tiny(0), tiny(1), stop_at=stop_at) >= 1
    assert contents(tmp_path) == contents(straight.path)


def test_what_resumes_was_stored_when_it_stopped(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        run_all([tiny()], Store(tmp_path), should_stop=iter([False, True]).__next__, compiled=False)
    folder = Store(tmp_path).find(run_name(tiny()))
    assert states(folder) == [0, 2]
    assert not folder.outcome.is_finished
    seen: list[Progress] = []
    run_all([tiny()], Store(tmp_path), report=seen.append, compiled=False)
    assert [progress.step for progress in seen] == [4, 6, 8, 10, 12], "nothing is trained twice"
    assert {(progress.run, progress.last) for progress in seen} == {(folder.name, STEPS)}


class Killed(BaseException):
    """Stands for kill -9: no handler of ours knows it."""


def test_killed_at_every_single_change_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = replace(tiny(steps=4), checkpoints=Cadence(every=2))
    train(Store(tmp_path / "straight"), spec)
    expected = contents(tmp_path / "straight")
    countdown = [0]

    def dying(works: Callable[..., object]) -> Callable[..., object]:
        def change(path: Path, *arguments: object, **options: object) -> object:
            countdown[0] -= 1
            if countdown[0] == 0:
                raise Killed
            return works(path, *arguments, **options)

        return change

    for moment in range(1, 100):
        store = Store(tmp_path / str(moment))
        countdown[0] = moment
        with monkeypatch.context() as patch:
            for name in ("replace", "unlink", "mkdir"):
                patch.setattr(Path, name, dying(getattr(Path, name)))
            try:
                run_all([spec], store, compiled=False)
            except Killed:
                pass
            else:
                assert moment > 15, "saving changes the disk more often than that"
                break
        train(store, spec)
        assert contents(store.path) == expected, f"killed before change {moment}"
    else:
        pytest.fail("never got through")


def test_killed_while_writing_a_record(straight: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append = RunFolder.append

    def torn(folder: RunFolder, row: dict[str, object]) -> None:
        append(folder, row)
        if row["step"] == 6:
            log = folder.path / "log.jsonl"
            log.write_bytes(log.read_bytes()[:-20])
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "append", torn)
        with pytest.raises(Killed):
            run_all([tiny(0)], Store(tmp_path), compiled=False)
    train(Store(tmp_path), tiny(0), tiny(1))
    assert contents(tmp_path) == contents(straight.path)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "resumed_from", "is_reported"),
    [
        (lambda path: flip(path / "state-00000008.safetensors"), 6, True),
        (lambda path: (path / "state-00000008.safetensors").unlink(), 6, False),
        (lambda path: [flip(p) for p in path.glob("state-*")], 0, True),
        (lambda path: (path / "manifest.json").write_bytes(b"{"), 0, True),
        (lambda path: (path / "manifest.json").unlink(), 0, True),
        (lambda path: (path / "log.jsonl").write_bytes((path / "log.jsonl").read_bytes()[:-9]), 6, False),
        (lambda path: flip(path / "log.jsonl"), 0, False),
        (lambda path: (path / "log.jsonl").unlink(), 0, False),
    ],
    ids=["flipped", "missing", "all flipped", "manifest", "no manifest", "torn log", "flipped log", "no log"],
)
def test_after_damage_an_earlier_generation_leads_to_the_same_end(
    damage: Callable[[Path], object], resumed_from: int, is_reported: bool, straight: Store, tmp_path: Path
) -> None:
    calls = iter(range(100))
    with pytest.raises(Stopped):
        run_all([tiny(0)], Store(tmp_path), should_stop=lambda: next(calls) == 4, compiled=False)
    folder = Store(tmp_path).find(run_name(tiny(0)))
    assert states(folder) == [4, 6, 8]
    damage(folder.path)
    seen: list[Progress | Notice] = []
    run_all([tiny(0)], Store(tmp_path), report=seen.append, compiled=False)
    assert next(said.step for said in seen if isinstance(said, Progress)) <= resumed_from + 2
    notices = [one.notice for one in seen if isinstance(one, Notice)]
    assert bool(notices) == is_reported
    assert all(folder.name in sentence and "an earlier state serves" in sentence for sentence in notices)
    train(Store(tmp_path), tiny(1))
    assert contents(tmp_path) == contents(straight.path)


@pytest.fixture
def compiled_after(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[int, bool | None]]:
    """Runs are compiled from step 5 on; whether each step taken and each evaluation made was, by the step it led to."""
    monkeypatch.setattr(compilation, "plain_steps", lambda key: 5)
    taken: dict[int, bool | None] = {}

    def spied(module: ModuleType, name: str) -> None:
        works = getattr(module, name)

        def eager(*arguments: Any) -> object:
            if name == "advance":
                state, _, steps, asked = arguments
                taken.update(dict.fromkeys(range(int(state.step[0]) + 1, int(state.step[0]) + steps + 1), asked))
            else:
                evaluated.append(arguments[-1])
            return works(*arguments[:-1], False)

        monkeypatch.setattr(module, name, eager)

    evaluated: list[bool | None] = []
    for module in (training_stack, state_module):
        for name in ("advance", "snapshot"):
            spied(module, name)
    yield taken
    assert set(evaluated) <= {False, True}


@pytest.mark.parametrize("steps", [4, 5, 6, 8, 12])
def test_which_steps_are_compiled_does_not_depend_on_how_many_there_are(
    steps: int, tmp_path: Path, compiled_after: dict[int, bool | None]
) -> None:
    """Compiled and plain steps round differently: a run with fewer steps is the beginning of one with more."""
    run_all([tiny(steps=steps)], Store(tmp_path))
    assert compiled_after == {step: step > 5 for step in range(1, steps + 1)}
    layout = Store(tmp_path).find(run_name(tiny(steps=steps))).outcome.layout
    assert (layout["compiled"], layout.get("compiled_from")) == ((True, 5) if steps > 5 else (False, None))


def test_a_run_that_resumes_forks_or_is_trained_again_goes_on_as_it_began(
    tmp_path: Path, compiled_after: dict[int, bool | None]
) -> None:
    calls = iter(range(100))
    with pytest.raises(Stopped):
        run_all([tiny()], Store(tmp_path), should_stop=lambda: next(calls) == 3)
    run_all([tiny()], Store(tmp_path))
    state_at(Store(tmp_path).find(run_name(tiny())), 7, Store(tmp_path))
    assert compiled_after == {step: step > 5 for step in range(1, STEPS + 1)}
    compiled_after.clear()
    fork = replace(tiny(), fork=Fork(tiny().content_hash, 3))
    run_all([fork], Store(tmp_path))
    assert compiled_after == {step: step > 5 for step in range(1, STEPS + 1)}  # from its parent's first state on


@pytest.mark.parametrize("compiled", [False, True])
def test_a_run_of_an_earlier_version_is_trained_again_as_it_was(
    compiled: bool, straight: Store, compiled_after: dict[int, bool | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says only whether it was compiled, which then held for all of its steps."""
    folder = straight.find(run_name(tiny(0)))
    layout = {**(folder.outcome.layout or {}), "compiled": compiled}
    monkeypatch.setattr(RunFolder, "outcome", replace(folder.outcome, layout=layout))
    state_at(folder, 7, straight)
    assert set(compiled_after.values()) == {compiled}


def test_finished_runs_are_not_trained_again(straight: Store) -> None:
    before = {path: path.stat().st_mtime_ns for path in straight.path.rglob("*")}
    seen: list[Progress] = []
    run_all([tiny(0), tiny(1)], straight, report=seen.append, compiled=False)
    assert seen == []
    assert {path: path.stat().st_mtime_ns for path in straight.path.rglob("*") if path.is_file()} == {
        path: time for path, time in before.items() if path.is_file()
    }


def test_a_run_that_is_named_twice_is_trained_once(tmp_path: Path) -> None:
    seen: list[Progress] = []
    run_all([tiny(steps=2), tiny(steps=2)], Store(tmp_path), report=seen.append, compiled=False)
    assert [progress.step for progress in seen] == [0, 2]


def test_a_run_that_another_holds_is_left_to_it(straight: Store, tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.add(tiny(0)).lock():
        train(store, tiny(0), tiny(1))
        assert store.find(run_name(tiny(1))).outcome.is_finished
        assert list((store.path / run_name(tiny(0))).glob("*.jsonl")) == []
    train(store, tiny(0))
    assert contents(tmp_path) == contents(straight.path)


@pytest.mark.parametrize(
    ("keep", "weights", "full"),
    [("weights", [0, 4, 6, 8, 12], [6, 12]), ("state", [], [0, 4, 6, 8, 12]), ("none", [], [])],
)
# With nothing kept there is nothing to resume from: an interrupted run begins again, and must get through at last.
@pytest.mark.parametrize("stop_at", [lambda call: False, lambda call: call in (1, 3)], ids=["straight", "interrupted"])
def test_what_is_kept(
    keep: str, weights: list[int], full: list[int], stop_at: Callable[[int], bool], tmp_path: Path
) -> None:
    train(Store(tmp_path), tiny(), stop_at=stop_at, keep=keep)
    folder = tmp_path / run_name(tiny())
    names = [f"state-{step:08d}.safetensors" for step in full] + [f"weights-{s:08d}.safetensors" for s in weights]
    always = ["format", "log.jsonl", "outcome.json", "spec.json"]
    assert sorted(p.name for p in folder.iterdir()) == sorted(names + always + ["manifest.json"] * (keep != "none"))


def test_the_outcome_tells_how_it_went_and_where_it_comes_from(straight: Store) -> None:
    folder = straight.find(run_name(tiny(1)))
    outcome = folder.outcome
    assert outcome.outcome in ("grokked", "unstable_after", "unstable", "never")
    assert (outcome.failed_at, outcome.stopped_early) == (None, False)
    assert outcome.layout == {"slots": 1, "slot": 0, "padded_size": 136, "compiled": False, "kernels": False}
    assert outcome.provenance.keys() == provenance("cpu").keys()
    for private in (socket.gethostname(), str(Path.home()), str(Path.cwd()), f'"{getpass.getuser()}"'):
        assert private not in json.dumps(outcome.to_dict()), "nothing about the place where it was made"


@pytest.mark.parametrize(
    ("cadence", "steps"),
    [
        (Cadence(every=5), [0, 5, 10, 12]),
        (Cadence(every=None), [0, 12]),
        (Cadence(every=100), [0, 12]),
        (Cadence(every=None, per_decade=2), [0, 1, 3, 10, 12]),
        (Cadence(every=None, at=(7,)), [0, 7, 12]),
    ],
    ids=["every", "none", "too long", "logarithmic", "listed"],
)
def test_measuring_at_any_cadence_sees_both_ends_and_changes_nothing(
    cadence: Cadence, steps: list[int], straight: Store, tmp_path: Path
) -> None:
    spec = replace(tiny(), measurements=cadence)
    seen: list[Progress] = []
    run_all([spec], Store(tmp_path), report=seen.append, compiled=False)
    folder = Store(tmp_path).find(run_name(spec))
    assert [row["step"] for row in folder.log()] == [progress.step for progress in seen] == steps
    other = straight.find(run_name(tiny()))
    name = "state-00000012.safetensors"
    assert (folder.path / name).read_bytes() == (other.path / name).read_bytes()
    assert folder.log()[-1] == other.log()[-1]


def test_a_schedule_survives_interruptions(tmp_path: Path) -> None:
    spec = tiny(weight_decay_schedule=((5, 3.0), (8, 0.0)))
    train(Store(tmp_path / "straight"), spec)
    train(Store(tmp_path / "stopped"), spec, stop_at=lambda call: call % 2 == 1)
    assert contents(tmp_path / "straight") == contents(tmp_path / "stopped")
    decays = [row["weight_decay"] for row in Store(tmp_path / "straight").find(run_name(spec)).log()]
    assert decays[0] == 1.0
    assert set(decays) == {1.0, 3.0, 0.0}


# Early ends: a run that fails, a run that has grokked.

NAN = replace(tiny(), training=Training(steps=STEPS, batch_size=16, learning_rate=1e30, weight_decay=0.0))


def test_a_run_that_diverges_is_marked_with_its_step_and_the_others_finish(straight: Store, tmp_path: Path) -> None:
    store = Store(tmp_path)
    train(store, tiny(0), NAN, tiny(1))
    folder = store.find(run_name(NAN))
    assert folder.outcome.outcome == "diverged"
    assert 1 <= folder.outcome.failed_at < STEPS
    assert [row["step"] for row in folder.log()] == [s for s in range(0, STEPS, 2) if s <= folder.outcome.failed_at]
    train(store, NAN)
    for spec in (tiny(0), tiny(1)):
        name = run_name(spec)
        assert contents(tmp_path / name) == contents(straight.path / name)


def stacked(store: Store, *specs: RunSpec, stop: Iterator[bool] | None = None) -> None:
    """Several runs in one stack, as on CUDA."""
    train_stack(store, specs, (lambda: False) if stop is None else stop.__next__)


def test_the_neighbours_of_a_run_that_diverges_are_bit_equal_to_those_of_one_that_does_not(tmp_path: Path) -> None:
    with_failure, without = Store(tmp_path / "with"), Store(tmp_path / "without")
    stacked(with_failure, tiny(0), NAN, tiny(1, steps=8))
    stacked(without, tiny(0), tiny(2), tiny(1, steps=8))
    for spec in (tiny(0), tiny(1, steps=8)):
        name = run_name(spec)
        assert contents(with_failure.path / name) == contents(without.path / name)
    layout = with_failure.find(run_name(NAN)).outcome.layout
    assert (layout["slots"], layout["slot"]) == (3, 1)
    assert with_failure.find(run_name(NAN)).outcome.outcome == "diverged"


def test_an_interrupted_stack_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    specs = (tiny(0), tiny(1, steps=8), replace(tiny(2), measurements=Cadence(every=3)))
    stacked(Store(tmp_path / "straight"), *specs)
    for _ in range(2):  # before any of them is finished: a smaller stack is another layout
        with pytest.raises(Stopped):
            stacked(Store(tmp_path / "stopped"), *specs, stop=iter([False, True]))
    stacked(Store(tmp_path / "stopped"), *specs)
    assert contents(tmp_path / "straight") == contents(tmp_path / "stopped")


@pytest.mark.parametrize(("after", "end"), [(0, 0), (5, 6), (6, 6), (11, 12), (100, 12)])
def test_a_run_may_end_some_steps_after_grokking(
    after: int, end: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_stack, "GROKKED", 0.0)  # grokked at step 0
    monkeypatch.setattr(outcome, "READING", ReadingSpec(grokked=1e-9))
    train(Store(tmp_path / "straight"), tiny(), stop_after_grokking=after)
    folder = Store(tmp_path / "straight").find(run_name(tiny()))
    assert folder.log()[-1]["step"] == end
    assert folder.outcome.stopped_early is (end < STEPS)
    assert folder.outcome.grokked == 0
    assert end in states(folder), "the full state at the end stays"
    assert end in folder.checkpoints("weights")
    train(Store(tmp_path / "stopped"), tiny(), stop_after_grokking=after, stop_at=lambda call: call % 2 == 1)
    assert contents(tmp_path / "stopped") == contents(tmp_path / "straight"), "what it grokked is remembered"


def test_a_killed_worker_s_lock_does_not_stop_the_next(straight: Store, tmp_path: Path) -> None:
    folder = Store(tmp_path).add(tiny(0))
    (folder.path / "lock").write_text(json.dumps({"host": socket.gethostname(), "process": os.getpid()}))
    train(Store(tmp_path), tiny(0), tiny(1))
    assert contents(tmp_path) == contents(straight.path)
