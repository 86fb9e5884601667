"""What is known of a folder of runs while they train."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from watched_runs import evaluation, shown, written

from grokscope.cli.watcher import Watcher
from grokscope.runs import Store, following, index, open_runs, run_name
from grokscope.runs.outcome import RunOutcome
from grokscope.specs import Architecture, Cadence, Fork, Plan, RunSpec, Training

watching = import_module("grokscope.cli.watcher")
TINY = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=2000, batch_size=16),
    checkpoints=Cadence(every=100),
    measurements=Cadence(every=20),
)


def test_an_empty_folder_is_said_to_be_empty(tmp_path: Path) -> None:
    assert "no run here yet" in shown(Watcher(tmp_path).snapshot())


def test_speed_time_left_and_alerts(tmp_path: Path) -> None:
    now = time.time()
    folder, later = (Store(tmp_path).add(RunSpec().with_seed(seed)) for seed in (0, 1))
    os.utime(folder.path / "spec.json", (now - 20, now - 20))
    written(folder, now - 10, evaluation(0, 0, 0.1), evaluation(100, 0, 0.1))
    clock = [now]
    watcher = Watcher(tmp_path, clock=lambda: clock[0])
    (line,) = watcher.snapshot().lines
    assert line.rate == pytest.approx(100 / 10, rel=1e-3)  # since it began: only one look was taken
    written(folder, now, evaluation(200, 0, 0.9))
    state = watcher.snapshot()
    assert state.lines[0].rate == pytest.approx(100 / 10, rel=1e-3)
    assert state.lines[0].left == pytest.approx((15_000 - 200 + 15_000) / 10, rel=1e-3)
    assert [alert[10:] for alert in state.alerts] == [f"{folder.name} synchronised at step 200 (FSD 0.90)"]
    written(folder, now + 5, evaluation(300, 0.99, 0.9))
    clock[0] = now + 5
    assert watcher.snapshot().alerts[-1].endswith(f"{folder.name} grokked at step 300, 100 steps after it synchronised")
    assert watcher.snapshot().lines[0].rate == pytest.approx(200 / 15, rel=1e-3)
    folder.rewind(100)
    assert watcher.snapshot().lines[0].grokked == 0
    written(folder, now + 20, evaluation(200, 0, 0.9), evaluation(300, 0.99, 0.9))
    assert len(watcher.snapshot().alerts) == 2, "what happens again after a restart is announced once"
    written(later, now + 20, evaluation(0, 0.99, 0.1))
    assert watcher.snapshot().alerts[-1].endswith(f"{later.name} grokked at step 0, not synchronised before")
    clock[0] = now + 200
    state = watcher.snapshot()
    assert (state.lines[0].rate, state.lines[0].left) == (None, None)
    assert state.lines[0].quiet == pytest.approx(180, abs=1)


def test_what_had_happened_before_is_counted_and_not_announced(tmp_path: Path) -> None:
    written(Store(tmp_path).add(RunSpec()), time.time(), evaluation(0, 0.0, 0.1), evaluation(100, 1.0, 1.0))
    state = Watcher(tmp_path).snapshot()
    assert (state.lines[0].grokked, state.lines[0].synchronized, state.alerts) == (1, 1, ())


@pytest.fixture
def crowd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve runs that have ended, nine of them grokked, and two that train; few enough to look at, and many enough."""
    monkeypatch.setattr(following, "PAYS_FROM", 10)
    monkeypatch.setattr(index, "PAYS_FROM", 10)
    monkeypatch.setattr(index, "SETTLED", 0)
    store = Store(tmp_path / "runs")
    for seed in range(14):
        folder = store.add(RunSpec().with_seed(seed))
        written(
            folder,
            time.time(),
            evaluation(0, 0.0, 0.1),
            evaluation(100, 0.99 if seed < 9 else 0.1, 0.9 if seed % 4 else 0.1),
        )
        if seed < 12:
            folder.finish(RunOutcome("grokked", grokked=100 if seed < 9 else None))
    time.sleep(0.02)  # a tick of the clock that stamps files
    return store.path


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of runs that are read, each as often as it is."""
    names: list[str] = []
    opens = os.open

    def noted(path: object, *rest: object, **more: object) -> int:
        names.append(Path(str(path)).name)
        return opens(path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", noted)
    return names


def test_of_many_runs_that_have_ended_few_logs_are_read(
    crowd: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "MOST_LOGS", 3)
    (line,) = Watcher(crowd, clock=lambda: 2e9).snapshot().lines
    assert opened.count("log.jsonl") == 3 + 2, "some that have ended, and all that train"
    assert (line.runs, line.finished, line.unread, line.grokked) == (14, 12, 9, 9)
    opened.clear()
    watcher = Watcher(crowd, clock=lambda: 2e9)
    assert watcher.snapshot().lines == (line,)
    assert opened.count("spec.json") == 2, "those that have ended are read from the index"
    assert opened.count("outcome.json") == 3 + 2
    opened.clear()
    state = watcher.snapshot()
    assert state.lines == (line,)
    assert sorted(opened) == ["log.jsonl", "log.jsonl", "outcome.json", "outcome.json"], "of those that train"
    assert line.synchronized is not None
    picture = shown(state)
    assert f"~{line.synchronized}" in picture
    assert "9 had ended before; of them only the outcomes were read" in picture


def test_a_crowd_that_is_read_is_shown_as_if_it_were_few(crowd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sparing = Watcher(crowd, clock=lambda: 2e9).snapshot()
    monkeypatch.setattr(following, "PAYS_FROM", 1000)
    assert Watcher(crowd, clock=lambda: 2e9).snapshot() == sparing
    assert sparing.lines[0].unread == 0
    assert "~" not in shown(sparing)
    assert (sparing.lines[0].synchronized, sparing.lines[0].grokked) == (10, 9)


def test_each_line_of_a_crowd_has_its_share_of_logs(crowd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "MOST_LOGS", 4)
    other = Store(crowd).add(replace(RunSpec(), task="sub_mod97"))
    written(other, time.time(), evaluation(0, 0.0, 0.1), evaluation(100, 0.99, 0.9))
    other.finish(RunOutcome("grokked", grokked=100))
    add, sub = Watcher(crowd, "task").snapshot().lines
    assert (add.unread, sub.unread) == (10, 0)
    assert (sub.synchronized, sub.grokked) == (1, 1)
    monkeypatch.setattr(watching, "MOST_LOGS", 1)
    add, sub = Watcher(crowd, "task").snapshot().lines
    assert (add.unread, sub.unread) == (11, 1)
    assert sub.synchronized is None, "nothing of it was read"
    assert sub.grokked == 1


def test_an_unread_run_that_is_opened_again_is_read(crowd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "MOST_LOGS", 1)
    watcher = Watcher(crowd)
    assert watcher.snapshot().lines[0].unread == 11
    unread = next(run for run in watcher.follower.runs.values() if not run.is_read)
    (crowd / unread.name / "outcome.json").unlink()
    state = watcher.snapshot()
    assert (state.lines[0].unread, state.lines[0].finished) == (10, 11)
    assert unread.step == 100
    assert not any(unread.name in alert for alert in state.alerts), "what it did before is no news"
    assert [step for _, step in watcher.pace.arrivals[unread.name]] == [100], "and was not made just now"


def test_a_damaged_run_in_a_crowd_disturbs_nobody(crowd: Path) -> None:
    names = Store(crowd).names()
    (crowd / names[0] / "spec.json").write_text("{")
    (crowd / names[1] / "outcome.json").write_text("{")
    for _ in range(2):
        state = Watcher(crowd).snapshot()
        (line,) = state.lines
        assert (line.runs, line.finished) == (12, 10)
        assert all(name in "\n".join(state.damaged) and name in shown(state) for name in names[:2])
        assert "2 damaged runs; `grokscope doctor" in shown(state)


def test_a_line_is_a_stack_a_task_or_replicates(tmp_path: Path) -> None:
    base = RunSpec()
    wider = replace(base, architecture=Architecture(width=256))
    decayed = replace(base, training=replace(base.training, weight_decay=2.0))
    forks = [replace(parent, fork=Fork(parent.content_hash, 500)) for parent in (base, base.with_seed(1))]
    for spec in (base, base.with_seed(1), decayed, wider, replace(base, task="sub_mod97"), *forks):
        Store(tmp_path).add(spec)
    Store(tmp_path).add(replace(base, task="table:gone.json#0123456789abcdef"))
    Store(tmp_path).add(replace(base, training=replace(base.training, gradient="grokfast")))

    def sizes(by: str) -> list[int]:
        return sorted(line.runs for line in Watcher(tmp_path, by).snapshot().lines)

    assert sizes("stack") == [1, 1, 1, 6]
    assert sizes("task") == [1, 1, 1, 1, 5]
    assert sizes("seeds") == [1, 1, 1, 1, 1, 2, 2]


def wait_for(seen: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_real_training_is_watched_while_it_is_killed_and_continued(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    out.mkdir()
    plan = tmp_path / "plan.json"
    plan.write_text(Plan(str(out), (TINY,)).to_json())
    command = [sys.executable, "-m", "grokscope.jobs.worker", "--spec", str(plan)]
    watcher = Watcher(out)
    progress: list[float] = []

    def moved(beyond: float) -> bool:
        lines = watcher.snapshot().lines
        progress.append(lines[0].progress if lines else 0.0)
        return progress[-1] > beyond

    first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    wait_for(lambda: moved(0.1))
    assert watcher.snapshot().lines[0].rate
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = watcher.snapshot().lines[0].progress
    assert 0 < before < 1
    second = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    wait_for(lambda: moved(before))
    assert second.wait() == 0
    state = watcher.snapshot()
    assert (state.lines[0].finished, state.lines[0].progress) == (1, 1.0)
    assert "finished" in shown(state)
    stored = open_runs(out)[run_name(TINY)].folder.log()
    assert list(watcher.follower.runs[run_name(TINY)].rows.values()) == stored
