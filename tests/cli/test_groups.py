"""A group's classes, characters, modes and checks."""

import json
from importlib import import_module

import pytest
from rich.table import Table

from grokscope.cli import run

GROUPS = import_module("grokscope.cli.groups")


def test_groups_json_has_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tasks", "S5", "--group", "--json"]) == 0
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
    assert run(["tasks", name, "--group"]) == 0
    shown = capsys.readouterr().out
    assert shown.count(" ok ") == 6
    assert "FAILED" not in shown


def test_a_name_cannot_style_the_terminal(capsys: pytest.CaptureFixture[str], tmp_path) -> None:
    path = tmp_path / "[red]x.json"
    path.write_text("[[0, 1], [1, 0]]")
    assert run(["tasks", f"table:{path}", "--group"]) == 0
    assert "table:[red]x.json" in capsys.readouterr().out


def test_a_table_too_wide_to_print_is_not_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built = []
    monkeypatch.setattr(GROUPS, "_character_view", lambda characters: built.append(characters) or Table())
    monkeypatch.setenv("COLUMNS", "60")
    assert run(["tasks", "Z21", "--group"]) == 0
    assert not built
    assert "characters: 21 × 21, too wide for this window" in capsys.readouterr().out
    assert run(["tasks", "Z20", "--group"]) == 0
    assert len(built) == 1


@pytest.mark.parametrize("error", [0.1, float("nan")])
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_failed_check_exits_with_status_1(
    error: float, more: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(GROUPS, "checks", lambda *_: [("a law that holds", 0.0, 0.0), ("a law", error, 1e-10)])
    with pytest.raises(SystemExit) as stop:
        run(["tasks", "S3", "--group", *more])
    assert stop.value.code == 1
    shown = capsys.readouterr().out
    assert ("FAILED  a law: " in shown) != bool(more)
    assert "order" in shown
