"""The command line as a whole: help, completion, versions, and what cannot be parsed."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grokscope import cli
from grokscope.cli import COMMANDS, SHELLS, help_text, run
from grokscope.cli.commands import GROUPS
from grokscope.runs import Store
from grokscope.specs import RunSpec


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("grokscope 0.")


def test_python_dash_m() -> None:
    done = subprocess.run([sys.executable, "-m", "grokscope", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("grokscope 0.")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_every_command_in_its_group(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 0
    shown = capsys.readouterr().out
    assert shown == help_text() + "\n"
    assert re.findall(r"^  ([a-z]+)  +[A-Z]", shown, re.MULTILINE) == list(COMMANDS)
    assert all(f"\n{title}\n" in shown for title in (*GROUPS, "Options", "Examples"))
    assert max(map(len, shown.splitlines())) <= 100


@pytest.mark.parametrize("name", COMMANDS)
def test_every_default_that_help_names_is_one(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run([name, "--help"])
    assert "(default: )" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["lst"], "there is no command 'lst'; did you mean 'list'?"),
        (["xyzzy", "--seeds", "1"], "there is no command 'xyzzy'; `grokscope --help` shows them"),
        (["--bogus"], "there is no option '--bogus'"),
        (["--verson"], "there is no option '--verson'; did you mean '--version'?"),
        (["--version", "x"], "nothing is expected after --version, got 'x'"),
        (["--help", "-x"], "nothing is expected after --help, got '-x'"),
        (["measure", "fsd_null"], "a measure is explained by `grokscope measure --measures fsd_null`"),
        (["tasks", "S5", "--jsn"], "`grokscope tasks` has no option '--jsn'; did you mean '--json'?"),
        (["list", "--sedes"], "`grokscope list` has no option '--sedes'; `grokscope train --help` has '--seeds'"),
        (["train", "S5", "--lr", "1"], "`grokscope train` has no option '--lr'; did you mean '--learning-rate'?"),
        (["train", "S5", "--wd=1"], "`grokscope train` has no option '--wd'; did you mean '--weight-decay'?"),
        (["fork", "x", "y", "--lambda", "1"], "did you mean '--weight-decay'?"),
        (
            ["list", "--lr", "1"],
            "`grokscope list` has no option '--lr'; `grokscope train --help` has '--learning-rate'",
        ),
        (["list", "--tyro-print-completion", "bash"], "`grokscope list` has no option '--tyro-print-completion'"),
        (["train", "S5", "--out"], "--out needs a value; see `grokscope train --help`"),
        (["train", "S5", "--out=x", "--out", "y"], "--out was given twice"),
        (["watch", "x", "--every", "often"], "--every takes a number, got 'often'"),
        (["export", "x", "--format", "pickle"], "--format takes one of safetensors, parquet, got 'pickle'"),
        (["list"], "a command such as `grokscope list DIR` is expected, got nothing"),
        (["list", "a", "b"], "a command such as `grokscope list DIR` is expected, got 'a b'"),
        (["fork", "a"], "a command such as `grokscope fork DIR RUN --at ...` is expected, got 'a'; --at is missing"),
        (["list", ""], "the first word after `grokscope list` is empty; is a shell variable not set?"),
        (["tasks", "a", "b"], "a command such as `grokscope tasks [NAME]` is expected, got 'a b'"),
        (["--completion"], "--completion takes one shell of bash, zsh, fish, got ''"),
        (["--completion", "cmd"], "--completion takes one shell of bash, zsh, fish, got 'cmd'"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(arguments, sentence, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.strip().count("\n") == 0
    assert sentence in shown.err


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_knows_every_command(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        run(["--completion", shell])
    assert not stop.value.code
    script = capsys.readouterr().out
    assert all(name in script for name in COMMANDS)
    assert "weight-decay" in script
    if shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([shell, "-n", tmp_path / "script"], check=True)


def test_what_follows_two_dashes_is_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tasks", "--", "--json"]) == 2
    assert "'--json' is not a task" in capsys.readouterr().err


def test_a_terminal_that_knows_only_ascii_is_no_error() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for arguments in (["tasks", "PSL2_3", "--group"], ["tasks"], ["tasks", "sub_mod97"], ["show", "--help"]):
        command = [sys.executable, "-m", "grokscope", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.isascii()


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_ends_any_command_with_one_sentence(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(words: list[str]) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "parse", lambda words: lambda: interrupted(words))
    assert run([name]) == 130
    shown = capsys.readouterr()
    assert shown.err == "grokscope: ended by Ctrl-C; whatever was stored stays as it is\n"
    monkeypatch.setattr(cli, "parse", interrupted)
    assert run([name]) == 130, "while its libraries are loaded"


def test_a_real_ctrl_c_ends_a_real_command_with_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("starlette")
    Store(tmp_path / "runs").add(RunSpec()).append({"step": 0})
    command = [sys.executable, "-m", "grokscope", "serve", str(tmp_path / "runs"), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("open http")
    time.sleep(0.5)  # until it listens to signals
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, "grokscope: ended by Ctrl-C; whatever was stored stays as it is\n")
