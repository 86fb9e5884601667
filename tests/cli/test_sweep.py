import importlib
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grokscope.cli import run
from grokscope.jobs import run_all
from grokscope.runs import (
    Measuring,
    Store,
    open_store,
    remember,
    remembered,
    run_name,
)
from grokscope.runs.remote import Remote
from grokscope.specs import Architecture, Cadence, Plan, RunSpec, Training

SWEEP = importlib.import_module("grokscope.cli.sweep")
PROGRESS = importlib.import_module("grokscope.cli.progress")
TINY = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=8, batch_size=16),
    checkpoints=Cadence(every=4),
    measurements=Cadence(every=4),
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a spec, and training in this process in the place of workers."""
    monkeypatch.chdir(tmp_path)
    Path("tiny.json").write_text(TINY.to_json())

    def trained_here(plan: Plan, report: Callable[[dict[str, Any]], None], **options: Any) -> bool:
        with open_store(plan.out) as store:
            asked, early = Measuring.asked_by(plan), plan.stop_after_grokking
            run_all(plan.runs, store, keep=plan.keep, compiled=False, stop_after_grokking=early, measuring=asked)
        return True

    monkeypatch.setattr(PROGRESS, "run_locally", trained_here)
    monkeypatch.setattr(SWEEP, "executor_named", lambda *arguments: trained_here)
    return tmp_path


def words(line: str) -> list[str]:
    return shlex.split(line)


def test_a_grid_is_every_combination(capsys: pytest.CaptureFixture[str]) -> None:
    grid = (
        "sweep --task add_mod7 mult_mod7 --seeds 0:2 --weight-decay 0.5 1 --learning-rate 0.001 0.01 --spec tiny.json"
    )
    assert run(words(f"{grid} --out runs")) == 0
    found = list(Store("runs"))
    assert len(found) == 2 * 2 * 2 * 2
    combinations = {
        (f.spec.task, f.spec.seeds.split, f.spec.training.weight_decay, f.spec.training.learning_rate) for f in found
    }
    assert len(combinations) == 16
    assert {f.spec.architecture for f in found} == {TINY.architecture}
    capsys.readouterr()
    assert run(words("status runs --json")) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["planned"], facts["finished"], facts["begun"], facts["waiting"]) == (16, 16, 0, 0)


def test_a_list_of_runs_is_trained_as_it_stands() -> None:
    Path("runs.jsonl").write_text("\n".join([TINY.to_json(), "", TINY.with_seed(9).to_json(), TINY.to_json()]))
    assert run(words("sweep --runs runs.jsonl --out runs")) == 0
    assert {folder.name for folder in Store("runs")} == {run_name(TINY), run_name(TINY.with_seed(9))}


def test_a_dry_run_tells_and_trains_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(words("sweep --task add_mod97 --seeds 0:256 --weight-decay 0.3 1 3 --out runs --dry-run --device cpu")) == 0
    )
    told = capsys.readouterr().out
    assert "768 of 11,520,000 steps" in told
    assert "shards    48 in 1 waves" in told
    assert all(word in told for word in ("memory", "time", "disk"))
    assert sorted(path.name for path in here.iterdir()) == ["tiny.json"]


def test_resume_remembers_how_the_sweep_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    plan = Plan("runs", (TINY, TINY.with_seed(1)), keep="forks", measures=("fsd",))
    remember(plan, Store("runs"))
    assert run(words("resume runs")) == 0
    folder = Store("runs").find(run_name(TINY))
    assert not folder.checkpoints("weights")
    assert [row["step"] for row in folder.log("measures")] == [0, 4, 8]
    capsys.readouterr()
    assert run(words("resume runs")) == 0
    assert capsys.readouterr().out == "every run in runs is finished\n"


def test_a_sweep_is_cancelled_and_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    remember(Plan("runs", (TINY,)), Store("runs"))
    assert run(words("cancel runs")) == 0
    assert Store("runs").is_cancelled
    assert run(words("status runs")) == 0
    assert "1 runs: 0 finished, 0 begun, 1 waiting\ncancelled; continue with" in capsys.readouterr().out
    assert run(words("resume runs")) == 0
    assert not Store("runs").is_cancelled
    assert Store("runs").is_finished(TINY)


def test_a_remote_place_is_swept_pulled_and_examined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = f"file://{tmp_path}/share"
    assert run(words(f"sweep --task add_mod7 --seeds 0:2 --spec tiny.json --out {place}")) == 0
    fetched: list[str] = []
    reads = Remote.read
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Remote, "read", lambda remote, name: fetched.append(name) or reads(remote, name))
        capsys.readouterr()
        assert run(words(f"status {place}")) == 0
    assert capsys.readouterr().out.startswith("2 runs: 2 finished")
    assert not [name for name in fetched if "safetensors" in name or "log.jsonl" in name], "to count takes no weights"
    assert run(words(f"doctor {place}")) == 0
    assert run(words(f"pull {place} --out copy")) == 0
    assert "copied 2 runs to copy" in capsys.readouterr().out
    assert run(words("doctor copy")) == 0
    with open_store(place) as store:
        assert len(remembered(store)[0].runs) == 2
    victim = next((tmp_path / "share").glob("*/files-*/log.jsonl@*"))
    victim.write_bytes(victim.read_bytes()[:-3])
    with pytest.raises(SystemExit) as left:
        run(words(f"doctor {place} --json"))
    assert left.value.code == 1
    assert "is not what its commit says" in capsys.readouterr().out
    assert run(words(f"doctor {place} --repair")) == 0
    assert run(words(f"cancel {place}")) == 0
    with open_store(place) as store:
        assert store.is_cancelled
        assert run(words(f"resume {place}")) == 0
        assert not store.is_cancelled
    assert run(words(f"doctor {place}")) == 0
    assert run(words(f"pull {place} --out again")) == 0
    for path in (tmp_path / "copy").glob("*/log.jsonl"):
        assert (tmp_path / "again" / path.relative_to(tmp_path / "copy")).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("sweep --task add_mod --out runs", "'add_mod' is not a task"),
        ("sweep --seeds x --out runs", "seeds must be numbers"),
        ("sweep --task add_mod7 --measures fsdd --out runs", "there is no measure 'fsdd'"),
        ("sweep --out file:///tmp/none --track tensorboard", "trackers follow a folder"),
        ("sweep --runs none.jsonl --out runs", "the runs 'none.jsonl' cannot be read"),
        ("sweep --out nowhere://x", "the address 'nowhere://x' cannot be used"),
        ("cancel runs", "there are no runs in runs"),
        ("sweep --task add_mod7 --executor ray --runs-per-shard 0 --dry-run --out runs", "at least one run, got"),
        ("sweep --task add_mod7 --memory-gib nan --dry-run --out runs", "memory_gib must be a number of GiB above 0"),
        ("doctor nowhere", "there is no folder 'nowhere'"),
        ("pull runs --out copy", "runs is no remote address"),
    ],
)
def test_bad_input_is_one_sentence(line: str, sentence: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words(line)) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert sentence in error
    assert sorted(path.name for path in here.iterdir()) == ["tiny.json"]
