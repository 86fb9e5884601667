import re
from pathlib import Path
from typing import Any

import pytest
import torch

from grokscope.attach import ATTACHED, ENCODERS

PAGE = (Path(__file__).parents[2] / "docs" / "own-model.md").read_text(encoding="utf-8")


def test_every_block_of_the_page_runs_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) >= 5
    for block in blocks:
        exec(block, names)
    assert [row["step"] for row in names["monitor"].log] == [0, 100, 200, 300]


def test_the_page_names_every_measure_and_encoder() -> None:
    named = set(re.findall(r"`\"?([a-z_]+)\"?`", PAGE))
    assert set(ATTACHED) | set(ENCODERS) <= named
