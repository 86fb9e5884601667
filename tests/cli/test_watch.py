import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from math import nan
from pathlib import Path

import pytest
from rich.console import Console

from grokscope.cli import run
from grokscope.cli.frames import Line, Watched, frame
from grokscope.cli.watch import Watcher
from grokscope.runs import (
    RunFolder,
    Store,
    following,
    index,
    open_runs,
    run_name,
)
from grokscope.specs import Architecture, Cadence, Fork, Plan, RunSpec, Training

watching = import_module("grokscope.cli.watch")
LINE = Line("add_mod97 λ=1 (3)", 3, 1, 2, 1, 0.5, (0.0, 0.5, 1.0, nan), (0.2, 0.4, 0.8, nan), 48.7, 90.0, 2.0)
STATE = Watched("runs/first", "runs that differ in seeds", (LINE,), ("12:00:00  a grokked at step 4,000",))
TINY = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=2000, batch_size=16),
    checkpoints=Cadence(every=100),
    measurements=Cadence(every=20),
)


def shown(state: Watched, width: int = 120, ascii_only: bool = False) -> str:
    console = Console(width=width, highlight=False)
    with console.capture() as capture:
        console.print(frame(state, width, ascii_only))
    return capture.get()


def test_a_frame_says_all_that_is_known() -> None:
    picture = shown(STATE)
    for words in ("runs/first: 1 of 3 runs finished, 49 run-steps/s", "50%", "▁▅█  1.00", "▂▄▇  0.80", "2 min"):
        assert words in picture
    assert "a line stands for runs that differ in seeds" in picture
    assert picture.rstrip().endswith("12:00:00  a grokked at step 4,000")
    assert shown(STATE) == picture


@pytest.mark.parametrize("width", [70, 80, 100, 140])
def test_a_frame_fits_the_window(width: int) -> None:
    long = replace(LINE, label="poly_a2+ab+b2_mod97 and 13 more 12×1024 λ=0.125–10 (10,000)", validation=(0.5,) * 24)
    lines = shown(replace(STATE, lines=(long, LINE), alerts=()), width).splitlines()
    table = [line for line in lines if "▅" in line or "cohort" in line]
    assert len(table) == 3
    assert all(len(line) <= width for line in table)
    assert all(line.rstrip().endswith(("left", "2 min")) for line in table)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"finished": 3}, "finished"),
        ({"left": None, "rate": None, "quiet": 300.0}, "quiet 5 min"),
        ({"left": None, "rate": None, "quiet": None}, "waiting"),
    ],
)
def test_a_cohort_that_does_not_move_says_why(change: dict[str, float], words: str) -> None:
    assert words in shown(replace(STATE, lines=(replace(LINE, **change),)))


def test_a_terminal_without_blocks_gets_ascii_and_names_are_text() -> None:
    state = Watched("runs/[red]x", "x", (replace(LINE, label="[bold]x[/bold]"),), ("[link=x]y",))
    picture = shown(state, ascii_only=True)
    assert "_+#  1.00" in picture
    assert all(words in picture for words in ("runs/[red]x", "[bold]x[/bold]", "[link=x]y"))


def test_an_empty_folder_is_said_to_be_empty(tmp_path: Path) -> None:
    assert "no run here yet" in shown(Watcher(tmp_path).look())


def look(step: int, validation: float, fsd: float) -> dict[str, float]:
    return {"step": step, "train_accuracy": 1.0, "validation_accuracy": validation, "fsd": fsd, "norm": 1.0}


def written(folder: RunFolder, at: float, *rows: dict[str, float]) -> None:
    for row in rows:
        folder.append(row)
    os.utime(folder.path / "log.jsonl", (at, at))


def test_speed_time_left_and_alerts(tmp_path: Path) -> None:
    now = time.time()
    folder, later = (Store(tmp_path).add(RunSpec().with_seed(seed)) for seed in (0, 1))
    os.utime(folder.path / "spec.json", (now - 20, now - 20))
    written(folder, now - 10, look(0, 0, 0.1), look(100, 0, 0.1))
    clock = [now]
    watcher = Watcher(tmp_path, clock=lambda: clock[0])
    (line,) = watcher.look().lines
    assert line.rate == pytest.approx(100 / 10, rel=1e-3)  # since it began: only one look was taken
    written(folder, now, look(200, 0, 0.9))
    state = watcher.look()
    assert state.lines[0].rate == pytest.approx(100 / 10, rel=1e-3)
    assert state.lines[0].left == pytest.approx((15_000 - 200 + 15_000) / 10, rel=1e-3)
    assert [alert[10:] for alert in state.alerts] == [f"{folder.name} synchronised at step 200 (FSD 0.90)"]
    written(folder, now + 5, look(300, 0.99, 0.9))
    clock[0] = now + 5
    assert watcher.look().alerts[-1].endswith(f"{folder.name} grokked at step 300, 100 steps after it synchronised")
    assert watcher.look().lines[0].rate == pytest.approx(200 / 15, rel=1e-3)
    folder.rewind(100)
    assert watcher.look().lines[0].grokked == 0
    written(folder, now + 20, look(200, 0, 0.9), look(300, 0.99, 0.9))
    assert len(watcher.look().alerts) == 2, "what happens again after a restart is told once"
    written(later, now + 20, look(0, 0.99, 0.1))
    assert watcher.look().alerts[-1].endswith(f"{later.name} grokked at step 0, not synchronised before")
    clock[0] = now + 200
    state = watcher.look()
    assert (state.lines[0].rate, state.lines[0].left) == (None, None)
    assert state.lines[0].quiet == pytest.approx(180, abs=1)


def test_what_had_happened_before_is_counted_and_not_announced(tmp_path: Path) -> None:
    written(Store(tmp_path).add(RunSpec()), time.time(), look(0, 0.0, 0.1), look(100, 1.0, 1.0))
    state = Watcher(tmp_path).look()
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
        written(folder, time.time(), look(0, 0.0, 0.1), look(100, 0.99 if seed < 9 else 0.1, 0.9 if seed % 4 else 0.1))
        if seed < 12:
            folder.finish({"outcome": "grokked", "failed_at": None, "grokked": 100 if seed < 9 else None})
    time.sleep(0.02)  # a tick of the clock that stamps files
    return store.path


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of runs that are read, each as often as it is."""
    names: list[str] = []
    opens = Path.open

    def noted(path: Path, *rest: object, **more: object) -> object:
        names.append(path.name)
        return opens(path, *rest, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", noted)  # read_text and read_bytes open too
    return names


def test_of_many_runs_that_have_ended_few_logs_are_read(
    crowd: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "MOST_LOGS", 3)
    (line,) = Watcher(crowd, clock=lambda: 2e9).look().lines
    assert opened.count("log.jsonl") == 3 + 2, "some that have ended, and all that train"
    assert (line.runs, line.finished, line.unread, line.grokked) == (14, 12, 9, 9)
    opened.clear()
    watcher = Watcher(crowd, clock=lambda: 2e9)
    assert watcher.look().lines == (line,)
    assert opened.count("spec.json") == 2, "of those that have ended the index tells"
    assert opened.count("outcome.json") == 3 + 2
    opened.clear()
    state = watcher.look()
    assert state.lines == (line,)
    assert sorted(opened) == ["log.jsonl", "log.jsonl", "outcome.json", "outcome.json"], "of those that train"
    assert line.synchronized is not None
    picture = shown(state)
    assert f"~{line.synchronized}" in picture
    assert "9 that had ended are known by their outcomes alone" in picture


def test_a_crowd_that_is_read_is_shown_as_if_it_were_few(crowd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sparing = Watcher(crowd, clock=lambda: 2e9).look()
    monkeypatch.setattr(following, "PAYS_FROM", 1000)
    assert Watcher(crowd, clock=lambda: 2e9).look() == sparing
    assert sparing.lines[0].unread == 0
    assert "~" not in shown(sparing)
    assert (sparing.lines[0].synchronized, sparing.lines[0].grokked) == (10, 9)


def test_each_line_of_a_crowd_has_its_share_of_logs(crowd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "MOST_LOGS", 4)
    other = Store(crowd).add(replace(RunSpec(), task="sub_mod97"))
    written(other, time.time(), look(0, 0.0, 0.1), look(100, 0.99, 0.9))
    other.finish({"outcome": "grokked", "failed_at": None, "grokked": 100})
    add, sub = Watcher(crowd, "task").look().lines
    assert (add.unread, sub.unread) == (10, 0)
    assert (sub.synchronized, sub.grokked) == (1, 1)
    monkeypatch.setattr(watching, "MOST_LOGS", 1)
    add, sub = Watcher(crowd, "task").look().lines
    assert (add.unread, sub.unread) == (11, 1)
    assert sub.synchronized is None, "nothing of it was read"
    assert sub.grokked == 1


def test_an_unread_run_that_is_opened_again_is_read(crowd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "MOST_LOGS", 1)
    watcher = Watcher(crowd)
    assert watcher.look().lines[0].unread == 11
    unread = next(run for run in watcher.follower.runs.values() if not run.is_read)
    (crowd / unread.name / "outcome.json").unlink()
    state = watcher.look()
    assert (state.lines[0].unread, state.lines[0].finished) == (10, 11)
    assert unread.step == 100
    assert not any(unread.name in alert for alert in state.alerts), "what it did before is no news"
    assert [step for _, step in watcher.arrivals[unread.name]] == [100], "and was not made just now"


def test_a_damaged_run_in_a_crowd_disturbs_nobody(crowd: Path) -> None:
    names = Store(crowd).names()
    (crowd / names[0] / "spec.json").write_text("{")
    (crowd / names[1] / "outcome.json").write_text("{")
    for _ in range(2):
        (line,) = Watcher(crowd).look().lines
        assert (line.runs, line.finished) == (13, 10)


def test_a_line_is_a_cohort_a_task_or_replicates(tmp_path: Path) -> None:
    base = RunSpec()
    wider = replace(base, architecture=Architecture(width=256))
    decayed = replace(base, training=replace(base.training, weight_decay=2.0))
    forks = [replace(parent, fork=Fork(parent.content_hash, 500)) for parent in (base, base.with_seed(1))]
    for spec in (base, base.with_seed(1), decayed, wider, replace(base, task="sub_mod97"), *forks):
        Store(tmp_path).add(spec)
    Store(tmp_path).add(replace(base, task="table:gone.json#0123456789abcdef"))

    def sizes(by: str) -> list[int]:
        return sorted(line.runs for line in Watcher(tmp_path, by).look().lines)

    assert sizes("cohort") == [1, 1, 6]
    assert sizes("task") == [1, 1, 1, 5]
    assert sizes("seeds") == [1, 1, 1, 1, 2, 2]


def test_once_prints_a_picture_and_a_wrong_folder_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(Store("runs").add(RunSpec()), time.time(), look(0, 0.0, 0.1))
    for more in ([], ["--once"]):  # what is captured is no terminal
        assert run(["watch", "runs", *more]) == 0
        assert "0 of 1 runs finished" in capsys.readouterr().out
    assert run(["watch", "rums"]) == 2
    assert "did you mean 'runs'?" in capsys.readouterr().err
    assert run(["watch", "runs", "--every", "nan"]) == 2


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
        lines = watcher.look().lines
        progress.append(lines[0].progress if lines else 0.0)
        return progress[-1] > beyond

    first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    wait_for(lambda: moved(0.1))
    assert watcher.look().lines[0].rate
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = watcher.look().lines[0].progress
    assert 0 < before < 1
    second = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    wait_for(lambda: moved(before))
    assert second.wait() == 0
    state = watcher.look()
    assert (state.lines[0].finished, state.lines[0].progress) == (1, 1.0)
    assert "finished" in shown(state)
    stored = open_runs(out)[run_name(TINY)].folder.log()
    assert list(watcher.follower.runs[run_name(TINY)].rows.values()) == stored


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_on_a_terminal_it_goes_on_until_ctrl_c(tmp_path: Path) -> None:
    folder = Store(tmp_path).add(RunSpec())
    written(folder, time.time(), look(0, 0.0, 0.1))
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    command = [sys.executable, "-m", "grokscope", "watch", str(tmp_path), "--every", "0.1"]
    child = subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, env=environment)
    os.close(theirs)
    heard = b""
    while b"runs finished" not in heard:
        heard += os.read(ours, 4096)
    written(folder, time.time(), look(100, 0.99, 0.9))
    while b"grokked at step 100" not in heard:
        heard += os.read(ours, 4096)
    child.send_signal(signal.SIGINT)
    while True:
        try:
            if not os.read(ours, 4096):
                break
        except OSError:  # the other end has gone
            break
    os.close(ours)
    _, complaint = child.communicate(timeout=60)
    assert (child.returncode, complaint) == (0, b"")
