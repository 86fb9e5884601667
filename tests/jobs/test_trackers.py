import io
import json
import sqlite3
import struct
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tiny_runs
from grokscope.cli import run
from grokscope.jobs.trackers import main, mirror_logs, send
from grokscope.runs import RunFolder, Store, open_runs
from grokscope.runs.following import FollowedRun, Follower
from grokscope.specs import Cadence

pytestmark = pytest.mark.interop

TINY = replace(tiny_runs.TINY, measurements=Cadence(every=2))
Points = dict[str, list[tuple[int, float]]]


def tensorboard_points(folder: Path) -> Points:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {tag: [(one.step, one.value) for one in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def trackio_points(folder: Path, name: str) -> Points:
    points: Points = {}
    with sqlite3.connect(folder / "grokscope.db") as database:
        rows = database.execute("select step, metrics from metrics where run_name = ? order by id", (name,)).fetchall()
    database.close()
    for step, metrics in rows:
        for tag, value in json.loads(metrics).items():
            points.setdefault(tag, []).append((step, value))
    return points


def wandb_points(file: Path) -> Points:
    """What a .wandb file holds: protobuf records in a log of 32 KiB blocks."""
    from wandb.proto import wandb_internal_pb2

    content, place, parts, points = file.read_bytes(), 7, b"", {}
    while place + 7 <= len(content):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        _, length, kind = struct.unpack_from("<IHB", content, place)
        parts += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            record, parts = wandb_internal_pb2.Record.FromString(parts), b""
            items = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
            for tag, value in items.items():
                if not tag.startswith("_"):
                    points.setdefault(tag, []).append((items.get("_step", record.history.step.num), value))
    return points


@pytest.mark.filterwarnings("ignore")  # of other people's libraries
def test_every_tracker_gets_what_the_log_holds_while_real_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.delenv("TRACKIO_DIR", raising=False)
    Path("tiny.json").write_text(TINY.to_json())
    words = "train add_mod7 --seeds 3,4 --spec tiny.json --out runs --track wandb tensorboard trackio"
    assert run(words.split()) == 0
    assert "warning" not in capsys.readouterr().err
    for one in open_runs("runs"):
        rows = one.folder.log()
        expected = {
            tag: [(row["step"], row[tag]) for row in rows if row[tag] is not None] for tag in rows[0] if tag != "step"
        }
        expected = {tag: points for tag, points in expected.items() if points}
        assert len(rows) == 5
        assert trackio_points(Path("runs/trackers/trackio"), one.name) == expected
        (file,) = Path("runs/trackers/wandb/wandb").glob(f"offline-run-*/run-{one.spec.content_hash}.wandb")
        assert wandb_points(file) == expected
        seen = tensorboard_points(Path("runs/trackers/tensorboard") / one.name)
        assert seen.keys() == expected.keys()
        for tag, points in seen.items():  # TensorBoard keeps float32
            assert [step for step, _ in points] == [step for step, _ in expected[tag]]
            assert [value for _, value in points] == pytest.approx([value for _, value in expected[tag]], rel=1e-6)


def evaluation(step: int, fsd: float | None = 0.5) -> dict[str, Any]:
    return {"step": step, "train_accuracy": 1.0, "validation_accuracy": 0.5, "fsd": fsd}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = Store(tmp_path / "runs").add(TINY)
    for step in (0, 2, 4):
        made.append(evaluation(step))
    return made


@pytest.mark.filterwarnings("ignore")
def test_a_continued_run_is_mirrored_once(folder: RunFolder) -> None:
    out = folder.path.parent
    other = Store(out).add(TINY.with_seed(1))
    other.append(evaluation(0))

    def mirror() -> Points:
        assert main(["tensorboard", str(out)], io.StringIO(json.dumps([folder.name]) + "\n")) == 0
        return tensorboard_points(out / "trackers" / "tensorboard" / folder.name)

    assert [step for step, _ in mirror()["fsd"]] == [0, 2, 4]
    folder.rewind(2)
    for step in (4, 6, 8):
        folder.append(evaluation(step))
    assert [step for step, _ in mirror()["fsd"]] == [0, 2, 4, 6, 8]
    assert not (out / "trackers" / "tensorboard" / other.name).exists(), "it was not asked for"
    assert len(open_runs(out)) == 2, "a tracker's folder is no run"


def test_what_is_undefined_is_left_out(folder: RunFolder) -> None:
    folder.append(evaluation(6, fsd=None))
    received: list[tuple[int, set[str]]] = []

    class Listener:
        def log(self, run: FollowedRun, step: int, values: dict[str, float]) -> None:
            received.append((step, set(values)))

        def close(self) -> None:
            raise AssertionError

    send(Listener(), Follower(folder.path.parent).update(), {folder.name: 2})
    assert received == [
        (4, {"train_accuracy", "validation_accuracy", "fsd"}),
        (6, {"train_accuracy", "validation_accuracy"}),
    ]


def test_a_tracker_that_cannot_write_says_why_in_one_sentence(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.path.parent / "trackers").write_text("in the way")
    assert main(["tensorboard", str(folder.path.parent)], io.StringIO("[]\n")) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("grokscope: ")
    assert shown.count("\n") == 1


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("raise RuntimeError('the service is down')", "RuntimeError: the service is down"),
        ("import time; time.sleep(600)", "it did not finish within 1 seconds"),
        ("import sys; sys.stdin.read(); import time; time.sleep(600)", "it did not finish within 1 seconds"),
        ("import os; os.abort()", "its process ended with status -6"),
    ],
)
def test_a_tracker_that_raises_hangs_or_crashes_costs_one_warning(program: str, reason: str, tmp_path: Path) -> None:
    warnings: list[str] = []
    many = [f"run-{number}" for number in range(20_000)]  # more than a pipe holds
    start = time.monotonic()
    with mirror_logs(["wandb"], tmp_path, many, warnings.append, 1.0, ["-c", program]):
        entered = time.monotonic() - start
    assert entered < 5, "training does not wait for it"
    assert time.monotonic() - start < 30
    assert len(warnings) == 1
    assert warnings[0] == f"wandb does not follow any more, training does not need it: {reason}"


def test_training_goes_on_without_its_tracker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.json").write_text(TINY.to_json())
    Path("runs").mkdir()
    Path("runs/trackers").write_text("in the way")
    assert (
        run(["train", "add_mod7", "--seeds", "3", "--spec", "tiny.json", "--out", "runs", "--track", "tensorboard"])
        == 0
    )
    shown = capsys.readouterr()
    assert " ".join(shown.err.split()).count("warning: tensorboard does not follow any more") == 1
    assert "add_mod7_s3" in shown.out
    assert open_runs("runs")["add_mod7_s3"].folder.outcome.is_finished
