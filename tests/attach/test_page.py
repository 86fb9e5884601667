import re
from pathlib import Path

import pytest

from grokscope.attach import ATTACHED, ENCODERS
from pages import run_blocks

PATH = Path(__file__).parents[2] / "docs" / "own-model.md"
PAGE = PATH.read_text(encoding="utf-8")


def test_every_block_of_the_page_runs_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_blocks(PATH)
    assert [row["step"] for row in names["monitor"].log] == [0, 100, 200, 300]


def test_the_page_names_every_measure_and_encoder() -> None:
    named = set(re.findall(r"`\"?([a-z_]+)\"?`", PAGE))
    assert set(ATTACHED) | set(ENCODERS) <= named
