import re
from pathlib import Path

import pytest

from grokscope.cli import COMMANDS, parse
from pages import blocks, command_lines, run_blocks

ROOT = Path(__file__).parents[1]
PATH = ROOT / "README.md"
README = PATH.read_text(encoding="utf-8")
PAGES = [PATH, *sorted((ROOT / "docs").rglob("*.md"))]


def numbers(line: str) -> dict[str, float]:
    return {name: float(value) for name, value in re.findall(r"(\w+) +(\d+(?:\.\d+)?)", line)}


def test_the_python_block_prints_what_is_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(blocks(README, "python")) == 1
    run_blocks(PATH)
    printed = [numbers(line) for line in capsys.readouterr().out.splitlines()]
    [text] = blocks(README, "text")
    stated = [numbers(line) for line in text.splitlines()]
    assert [row["step"] for row in printed] == [row["step"] for row in stated] == [0, 500, 1000, 1500, 2000]
    for ours, told in zip(printed, stated, strict=True):  # machines round differently
        assert ours == pytest.approx(told, abs=0.08)
    assert printed[-1]["validation"] >= 0.95
    assert max(row["FSD"] for row in printed) < 0.1


def test_every_command_can_be_given() -> None:
    for words in command_lines(README):
        parse(words)


def test_every_command_is_shown_on_a_page() -> None:
    shown = {words[0] for page in PAGES for words in command_lines(page.read_text(encoding="utf-8"))}
    assert shown >= set(COMMANDS)


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120
