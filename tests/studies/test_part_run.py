"""A part trained and packed by the module that needs the core packages only; stopped in time, and continued."""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import small_study

from grokscope.errors import InputError
from grokscope.jobs import run_all
from grokscope.jobs.worker import TRY_AGAIN
from grokscope.runs import Store
from grokscope.runs.packing import read_head
from grokscope.runs.provenance import provenance
from grokscope.studies import part_run
from grokscope.studies.part_run import main, pack_part, read_part, write_part
from grokscope.studies.parts import Part, missing_parts, parts_of

WITHOUT = """
import sys
class Blocked:
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in ("tyro", "rich", "matplotlib", "scipy", "pyarrow", "pandas"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocked())
from grokscope.studies.part_run import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def part(tmp_path: Path) -> Part:
    [found] = parts_of(small_study.STUDY, "float32", "cpu", str(tmp_path / "runs"))
    write_part(tmp_path / "part.json", found.head, found.plan)
    return found


def test_a_part_is_trained_and_packed_without_anything_but_the_core(part: Part, tmp_path: Path) -> None:
    import subprocess
    import sys

    out = tmp_path / "part-01.records.gz"
    command = [sys.executable, "-c", WITHOUT, "--spec", str(tmp_path / "part.json"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 control forks equal their parent in every evaluation" in done.stdout
    head = read_head(out)
    assert (head["finished"], head["run_steps"], head["forks"]["differing"]) == (4, 36, [])
    assert missing_parts([part], tmp_path) == {}


def test_what_has_finished_is_packed_when_time_is_up_and_the_rest_continues(
    part: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        part_run, "run_locally", lambda plan, report, workers: False
    )  # stopped before the first run ended
    out = tmp_path / "part-01.records.gz"
    arguments = ["--spec", str(tmp_path / "part.json"), "--out", str(out), "--limit", "500"]
    assert main(arguments) == TRY_AGAIN
    assert read_head(out)["finished"] == 0
    assert missing_parts([part], tmp_path) == {1: "lacks 4 runs of 4"}
    monkeypatch.undo()
    assert main(arguments[:4]) == 0
    assert missing_parts([part], tmp_path) == {}


def test_a_part_that_was_continued_at_another_commit_names_both(
    part: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, rest = part.plan.select(part.plan.runs[:1]), part.plan
    for commit, plan in {"aaaa": begun, "bbbb": rest}.items():
        monkeypatch.setenv("GROKSCOPE_COMMIT", commit)
        provenance.cache_clear()
        run_all(plan.runs, Store(plan.out), compiled=False)
        pack_part(part.head, plan, tmp_path / f"{commit}.records.gz", seconds=1.0)
    provenance.cache_clear()
    commits = [read_head(tmp_path / f"{commit}.records.gz")["commit"] for commit in ("aaaa", "bbbb")]
    assert commits == ["aaaa", "aaaa, bbbb"]


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN], ids=["plain", "in the background"])
def test_a_limit_interrupts_as_ctrl_c_does(handler: Callable[..., Any] | signal.Handlers) -> None:
    before = signal.signal(signal.SIGINT, handler)  # whatever a worker of an earlier test has left
    try:
        with pytest.raises(KeyboardInterrupt), part_run.Alarm(0.1):
            time.sleep(20)
        with part_run.Alarm(1000.0):
            pass
        with part_run.Alarm(None):
            pass
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_part_comes_back_as_it_was_written(part: Part, tmp_path: Path) -> None:
    assert read_part(tmp_path / "part.json") == (part.head, part.plan)
    with pytest.raises(InputError, match="exists already"):
        write_part(tmp_path / "part.json", part.head, part.plan)


@pytest.mark.parametrize("content", ["{}", '{"about": 3, "plan": {}}', '{"runs": []}'])
def test_what_is_no_part_is_named(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.json").write_text(content)
    assert main(["--spec", str(tmp_path / "other.json"), "--out", str(tmp_path / "out.gz")]) == 2
    assert "is no part as" in capsys.readouterr().err
    assert not (tmp_path / "out.gz").exists()
