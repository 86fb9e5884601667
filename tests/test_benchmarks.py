"""The page and the README's table are made of the stored measurements, and of nothing else."""

import copy
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import page as pages  # noqa: E402


def test_the_page_is_what_the_stored_measurements_give() -> None:
    assert pages.PAGE.read_text(encoding="utf-8") == pages.page()


def test_the_readmes_table_is_too() -> None:
    readme = pages.README.read_text(encoding="utf-8")
    assert pages.BLOCK.search(readme)
    assert pages.with_summary(readme) == readme


def test_another_measurement_gives_another_page(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = json.loads((pages.RESULTS / "training-cuda.json").read_text())
    moved = copy.deepcopy(stored)
    moved["measured"]["rows"][0]["measured"] += 1000
    before, works = pages.page(), pages.record
    monkeypatch.setattr(pages, "record", lambda name: moved if name == "training-cuda" else works(name))
    assert pages.page() != before
    assert pages.summary() != before


def test_every_measurement_says_where_it_comes_from() -> None:
    for path in pages.RESULTS.glob("*.json"):
        told = json.loads(path.read_text())["provenance"]
        assert told["commit"] not in ("", "unknown"), path
        assert told["torch"], path
