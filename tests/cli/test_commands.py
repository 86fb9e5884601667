"""The commands by name, and what is known of them without importing them."""

import inspect

import pytest

from grokscope.cli import COMMANDS, run
from grokscope.cli.commands import GROUPS, RENAMED, arguments_of, examples_of


def test_the_summary_of_a_command_is_its_first_line() -> None:
    for name, command in COMMANDS.items():
        first = (inspect.getdoc(command) or "").splitlines()[0]
        assert COMMANDS.summary(name) == first
        assert len(first) < 88
    assert sum(map(len, GROUPS.values())) == len(COMMANDS)


@pytest.mark.parametrize("name", RENAMED)
def test_an_old_name_names_the_new_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert name not in COMMANDS
    assert RENAMED[name].split()[0] in COMMANDS
    assert run([name, "x", "--out", "y"]) == 2
    assert capsys.readouterr().err == f"grokscope: `grokscope {name}` is now `grokscope {RENAMED[name]}`\n"


def test_arguments_are_those_of_the_help(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for name, command in COMMANDS.items():
        with pytest.raises(SystemExit):
            run([name, "--help"])
        shown = capsys.readouterr().out
        for one in arguments_of(command):
            assert one.written in shown
    found = {one.written: one for one in arguments_of(COMMANDS["train"])}
    assert found["--weight-decay"].takes_value
    assert not found["--dry-run"].takes_value


def test_examples_stand_at_the_end_of_a_docstring() -> None:
    assert examples_of("Say.\n\nArgs:\n    x: Y.\n\nExamples:\n    a b\n    c\n") == ["a b", "c"]
    assert examples_of("Say.") == []
