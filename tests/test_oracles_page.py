"""The page about oracles: its code runs, and gives what the page says."""

from pathlib import Path

import pytest

from pages import run_blocks

PATH = Path(__file__).parents[1] / "docs" / "oracles.md"
PAGE = PATH.read_text(encoding="utf-8")


def test_every_block_of_the_page_runs_in_order_and_gives_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_blocks(PATH)
    row, predicted, timeline = (names[name] for name in ("row", "predicted", "timeline"))
    assert f"# ({row['validation_accuracy']}, {row['fsd']:.2f}, {row['rank']})" in PAGE
    assert row["fsd"] == pytest.approx((40 / 100 - 1 / 11) / (1 - 1 / 11))
    assert row["excluded"] == pytest.approx(22 / 23**2)
    assert predicted.memorized <= timeline.memorized < predicted.memorized + 5
    assert predicted.grokked <= timeline.grokked < predicted.grokked + 5
    assert f"alone: {predicted.memorized:.1f} and {predicted.grokked:.1f}" in PAGE
    assert f"above: {timeline.memorized} and {timeline.grokked}" in PAGE
    assert f"gradient descent's: {predicted.deviation:.0e}".replace("e-0", "e-") in PAGE


def test_the_tests_that_the_page_names_exist() -> None:
    for name in ("tests/model/test_analytic.py", "tests/law/test_ridge.py"):
        assert f"`{name}`" in PAGE
        assert (PATH.parents[1] / name).exists()
