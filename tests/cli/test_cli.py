import importlib
import inspect
import json
import os
import subprocess
import sys

import pytest
import tyro
from rich.table import Table

from grokscope.cli import COMMANDS, CONFIG, DESCRIPTION, run

GROUPS = importlib.import_module("grokscope.cli.groups")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("grokscope 0.")


def test_groups_json_has_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["groups", "S5", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["order"] == 120
    assert sorted(facts["class_sizes"]) == [1, 10, 15, 20, 20, 24, 30]
    assert sorted(facts["dimensions"]) == [1, 1, 4, 4, 5, 5, 6]
    assert facts["indicators"] == [1] * 7
    assert facts["characters"][0] == [[1.0, 0.0]] * 7
    assert {mode["label"]: mode["dimension"] for mode in facts["modes"]}["(3,1,1)"] == 36
    assert all(check["error"] <= check["limit"] for check in facts["checks"])


@pytest.mark.parametrize("name", ["Z96", "D15", "Q8", "SL2_3", "Z3xA4", "add_mod97", "Z1", "Z2"])
def test_every_group_passes_its_checks(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["groups", name]) == 0
    shown = capsys.readouterr().out
    assert shown.count(" ok ") == 6
    assert "FAILED" not in shown


def test_tasks_lists_and_explains(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tasks"]) == 0
    listed = capsys.readouterr().out
    for name in ("add_mod97", "div_mod97", "poly_a2+ab+b2_mod97", "PSL2_7", "table:FILE"):
        assert name in listed
    assert run(["tasks", "mult_mod97", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["pairs_per_answer"] == [96, 193]
    assert [basis["name"] for basis in facts["bases"]] == ["multiplicative", "additive"]


def test_every_example_in_the_list_is_a_task(capsys: pytest.CaptureFixture[str]) -> None:
    run(["tasks", "--json"])
    for row in json.loads(capsys.readouterr().out):
        if row["example"] != "table:FILE":
            assert run(["tasks", row["example"]]) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tasks", "ad_mod97"], "did you mean 'add_mod97'?"),
        (["tasks", "mult_mod96"], "mult needs a prime modulus, got 96"),
        (["groups", "S7"], "has more than 1000 elements"),
        (["groups", "sub_mod97"], "is not a group's operation"),
        (["tasks", "table:nope.json"], "cannot be read: No such file or directory"),
        (["tasks", "Z1"], "train_fraction 0.3 of the 1 pairs of Z1 leaves no training pair"),
        (["groups", "table:\ud800.json"], r"a printable name, as in table:my_group.json, got 'table:\ud800.json'"),
        (["lst"], "there is no command 'lst'; did you mean 'list'?"),
        (["frobnicate", "--seeds", "1"], "there is no command 'frobnicate'; `grokscope --help` shows them all"),
        (["status", "nowhere"], "there is no folder 'nowhere'"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(arguments, sentence, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.strip().count("\n") == 0
    assert sentence in shown.err


@pytest.mark.parametrize(
    "arguments",
    [["--bogus"], ["groups"], ["groups", "S5", "--bogus"], ["list", "--tyro-print-completion", "bash"]],
)
def test_unknown_words_exit_with_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        run(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("arguments", [[], ["--help"], ["tasks", "--help"], ["groups", "--help"]])
def test_help_teaches_by_example(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        run(arguments)
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    examples = [line.strip().removeprefix("Example: ") for line in shown.splitlines() if "grokscope " in line]
    examples = [line.split("   ")[0].split() for line in examples if line.startswith("grokscope ")]
    assert examples
    for _, command, *rest in examples:
        assert command in {*COMMANDS, "--version"}
        if command in {"tasks", "groups", "--version"}:  # the others train, or read what was trained
            assert run([command, *rest]) == 0


def test_the_help_of_all_commands_is_that_of_the_commands_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    described = COMMANDS.described()
    assert list(described) == list(COMMANDS)
    assert {name: inspect.getdoc(one) for name, one in described.items()} == {
        name: inspect.getdoc(command) for name, command in COMMANDS.items()
    }
    with pytest.raises(SystemExit):
        run(["--help"])
    shown = capsys.readouterr().out
    with pytest.raises(SystemExit):
        tyro.extras.subcommand_cli_from_dict(
            dict(COMMANDS), prog="grokscope", description=DESCRIPTION, args=["--help"], config=CONFIG
        )
    assert capsys.readouterr().out == shown


def test_an_option_that_a_command_does_not_have_is_looked_for_in_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["list", "--sedes"], ["--sedes"]):
        with pytest.raises(SystemExit):
            run(arguments)
        shown = capsys.readouterr().err
        assert "--seeds" in shown
        assert "grokscope train --help" in shown


def test_a_name_cannot_style_the_terminal(capsys: pytest.CaptureFixture[str], tmp_path) -> None:
    path = tmp_path / "[red]x.json"
    path.write_text("[[0, 1], [1, 0]]")
    assert run(["groups", f"table:{path}"]) == 0
    assert "table:[red]x.json" in capsys.readouterr().out


def test_a_table_too_wide_to_print_is_not_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built = []
    monkeypatch.setattr(GROUPS, "_character_view", lambda characters: built.append(characters) or Table())
    monkeypatch.setenv("COLUMNS", "60")
    assert run(["groups", "Z21"]) == 0
    assert not built
    assert "characters: 21 × 21, too wide for this window" in capsys.readouterr().out
    assert run(["groups", "Z20"]) == 0
    assert len(built) == 1


@pytest.mark.parametrize("error", [0.1, float("nan")])
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_failed_check_exits_with_status_1(
    error: float, more: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(GROUPS, "checks", lambda *_: [("a law that holds", 0.0, 0.0), ("a law", error, 1e-10)])
    with pytest.raises(SystemExit) as stop:
        run(["groups", "S3", *more])
    assert stop.value.code == 1
    shown = capsys.readouterr().out
    assert ("FAILED  a law: " in shown) != bool(more)
    assert "order" in shown


def test_a_terminal_that_knows_only_ascii_is_no_error() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for arguments in (["groups", "PSL2_3"], ["tasks"], ["tasks", "sub_mod97"], ["groups", "--help"]):
        command = [sys.executable, "-m", "grokscope", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.isascii()


def test_the_name_of_a_group_is_called_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["groups", "--help"])
    assert "NAME" in capsys.readouterr().out.splitlines()[0]


def test_python_dash_m() -> None:
    done = subprocess.run([sys.executable, "-m", "grokscope", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("grokscope 0.")
