"""Every command that grokscope suggests works as it is printed, whatever folders are called."""

import re
import shlex
from pathlib import Path

import pytest

from grokscope.cli import COMMANDS, parse, run
from grokscope.jobs import Notice, Stopped, run_all
from grokscope.runs import Run, Store
from grokscope.runs.packing import save_records
from grokscope.specs import RunSpec
from grokscope.view.summary import summarize
from short_runs import tiny

pytestmark = pytest.mark.usefixtures("here", "in_process")


def advised(text: str) -> list[list[str]]:
    """The command lines that a text names: in `backticks`, or at the end of a line."""
    found = re.findall(r"`grokscope ([^`]+)`", text) + re.findall(r": grokscope (.+)$", text, re.MULTILINE)
    return [shlex.split(one) for one in found]


def stopped_run(folder: str) -> Run:
    calls = iter(range(100))
    with pytest.raises(Stopped):
        run_all([tiny()], Store(folder), should_stop=lambda: next(calls) == 2, compiled=False)
    return Run(Store(folder).locate(tiny()))


@pytest.mark.parametrize("folder", ["runs", "my runs", "it's $HOME"])
def test_what_is_said_of_a_folder_can_be_typed(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    going = stopped_run(folder)
    assert advised(summarize([going])) == [["resume", folder]]
    Path(folder, going.name, "spec.json").write_text("{")
    for command in ("list", "status", "show", "watch"):
        run([command, folder, *(["--once"] if command == "watch" else [])])
    run(["show", folder, going.name])
    run(["measure", folder])
    Path(f"{folder} 2").mkdir()
    run(["list", f"{folder} 2"])
    save_records(Path(f"{folder} 2", "some.records.gz"), [])
    run(["list", f"{folder} 2"])
    printed = capsys.readouterr()
    lines = advised(printed.out + printed.err)
    assert {line[0] for line in lines} >= {"doctor", "train", "import", "list"}
    for line in lines:
        assert any(folder in word for word in line), line
        parse(line)


def test_a_damaged_run_that_is_left_alone_names_the_folder() -> None:
    going, seen = stopped_run("my runs"), list[str]()
    Path("my runs", going.name, "spec.json").write_text("{")
    run_all([tiny()], Store("my runs"), report=lambda one: seen.extend([one.notice] * isinstance(one, Notice)))
    assert [line for text in seen for line in advised(text)] == [["doctor", "my runs"]]


def test_nobody_is_told_to_resume_what_only_its_own_loop_can(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = RunSpec("add_mod7", model="mine")
    folder = Store("runs").add(spec)
    folder.append({"step": 0, "train_accuracy": 0.1, "validation_accuracy": 0.1})
    assert not advised(summarize([Run(folder)]))
    monkeypatch.setattr(type(folder), "is_held", lambda self: True)
    assert "It is being trained." in summarize([stopped_run("other")])


def test_commands_in_the_page_and_in_the_code_exist() -> None:
    package = Path(run.__code__.co_filename).parents[1]
    texts = [path.read_text() for kind in ("*.py", "*.js") for path in package.rglob(kind)]
    named = {
        line.split()[0] for text in texts for line in re.findall(r"grokscope ([a-z]+ (?:DIR|--|RUN)[^`\"\n]*)", text)
    }
    assert named
    assert named <= {*COMMANDS}
