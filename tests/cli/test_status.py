"""`grokscope status` and `cancel`, in folders and in remote stores."""

from pathlib import Path

import pytest
from small_commands import TINY, rejected, words

from grokscope.cli import run
from grokscope.runs import Store, keep_plan, kept_plans, open_store
from grokscope.runs.remote import Remote
from grokscope.specs import Plan

pytestmark = pytest.mark.usefixtures("here", "in_process")


def test_a_folder_is_cancelled_and_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    keep_plan(Plan("runs", (TINY,)), Store("runs"))
    assert run(words("cancel runs")) == 0
    assert Store("runs").is_cancelled
    assert run(words("status runs")) == 0
    assert "1 run: 0 finished, 0 begun, 1 pending\ncancelled; continue with" in capsys.readouterr().out
    assert run(words("resume runs")) == 0
    assert not Store("runs").is_cancelled
    assert Store("runs").is_finished(TINY)


def test_where_every_run_has_ended_nothing_is_cancelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words("train add_mod7 --seeds 0:2 --spec tiny.json --out runs")) == 0
    capsys.readouterr()
    assert run(words("cancel runs")) == 0
    assert capsys.readouterr().out == "nothing is to be stopped: every run of runs is finished\n"
    assert not Store("runs").is_cancelled
    Store("runs").add(TINY.with_seed(7))
    assert run(words("cancel runs")) == 0
    assert Store("runs").is_cancelled, "one was begun without a plan"
    rejected(words("cancel rnus"), "there is no folder 'rnus'; did you mean 'runs'?", tmp_path, capsys)


def test_a_remote_store_is_trained_in_copied_and_examined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = f"file://{tmp_path}/share"
    assert run(words(f"train add_mod7 --seeds 0:2 --spec tiny.json --out {place}")) == 0
    fetched: list[str] = []
    reads = Remote.read
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Remote, "read", lambda remote, name: fetched.append(name) or reads(remote, name))
        capsys.readouterr()
        assert run(words(f"status {place}")) == 0
    assert capsys.readouterr().out.startswith("2 runs: 2 finished")
    assert not [name for name in fetched if "safetensors" in name or "log.jsonl" in name], "to count takes no weights"
    assert run(words(f"doctor {place}")) == 0
    assert run(words(f"import {place} --out copy")) == 0
    assert "copied 2 runs to copy" in capsys.readouterr().out
    assert run(words("doctor copy")) == 0
    with open_store(place) as store:
        assert len(kept_plans(store)[0].runs) == 2
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
    assert run(words(f"import {place} --out again")) == 0
    for path in (tmp_path / "copy").glob("*/log.jsonl"):
        assert (tmp_path / "again" / path.relative_to(tmp_path / "copy")).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("cancel runs", "there is no folder 'runs'"),
        ("status nowhere", "there is no folder 'nowhere'"),
        ("doctor nowhere", "there is no folder 'nowhere'"),
        ("doctor tiny.json", "'tiny.json' is a file, and runs are stored in folders"),
    ],
)
def test_bad_input(line: str, sentence: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rejected(words(line), sentence, here, capsys)


def test_a_run_that_waits_for_its_turn_is_pending_and_one_with_a_log_in_progress(
    capsys: pytest.CaptureFixture[str],
) -> None:
    store = Store("runs")
    for seed in (1, 2, 3):
        store.add(TINY.with_seed(seed))
    store.locate(TINY.with_seed(2)).append({"step": 0, "train_accuracy": 0.1, "validation_accuracy": 0.1})
    assert run(words("status runs")) == 0
    assert capsys.readouterr().out == "3 runs: 0 finished, 1 begun, 2 pending\n"
