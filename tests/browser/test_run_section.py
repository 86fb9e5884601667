"""A run's own section: what is said of it, how small a thing FSD reads, and its formulas."""

from pathlib import Path
from typing import Any

import pytest
from browser_pages import column, downloaded, opened, rows_of
from browser_runs import TINY

import grokscope
from grokscope.runs import run_name
from grokscope.view.page import source_of

pytestmark = pytest.mark.browser


def test_a_link_to_a_run_that_is_not_here_says_so(page: Any, mixed: Path, mixed_report: str) -> None:
    opened(page, mixed_report, "run", "run=0123456789abcdef")
    assert "the run 0123456789abcdef, which is not on this page" in page.inner_text("#view-run .alert")
    known = source_of(mixed).runs[0].record.spec.content_hash
    opened(page, mixed_report, "run", f"run={known}")
    assert page.inner_text("#view-run .alert") == ""


def test_a_mark_is_explained_where_it_stands_and_dips_are_counted(page: Any, mixed: Path, mixed_report: str) -> None:
    opened(page, mixed_report)
    assert "grokked, then unstable †: 1" in page.inner_text("#figure-outcomes .legend")
    note = page.inner_text("#figure-outcomes figcaption")
    assert "† grokked, and validation accuracy fell below 0.5 at one later evaluation or more" in note
    assert "Dips below one half: 1 run, 2 dips; the longest lasted 200 steps." in note
    run = next(run for run in source_of(mixed).runs if run.record.timeline.outcome.name == "UNSTABLE_AFTER")
    opened(page, mixed_report, "run", f"run={run.record.spec.content_hash}")
    assert "(2 dips below one half after grokking, the longest of 200 steps)" in page.inner_text("#view-run .lede")
    opened(page, mixed_report, "method")
    words = page.inner_text("#view-method .words")
    assert "grokked, then unstable †" in words
    assert "unstable ‡" in words


def test_the_answer_share_stands_under_fsd_with_what_ablation_costs(page: Any, detailed: str, store: Path) -> None:
    opened(page, detailed, "run", f"run={TINY.content_hash}")
    record = grokscope.open(store)[run_name(TINY)].record
    share = float(f"{100 * record.evaluations['answer_share'][-1]:.2g}")
    ablated = rows_of(downloaded(page, "#view-run > div .tools button >> nth=-1"))
    lost = next(float(row[2]) for row in ablated if row[:2] == ["mlp0", "mean"])
    note = page.inner_text("#figure-share figcaption")
    start = f"FSD is read at mlp0. At the last evaluation {share:g} % of this site's variance goes with the answer"
    assert note.startswith(start)
    assert f"loses {100 * lost:.1f} points of accuracy".replace("-", "−") in note
    boxes = [page.locator(f"#figure-{name}").bounding_box() for name in ("fsd", "share")]
    assert boxes[0]["x"] == boxes[1]["x"]
    assert boxes[0]["y"] < boxes[1]["y"]


def test_formulas_are_folded_and_the_strongest_stand_first(page: Any, detailed: str) -> None:
    opened(page, detailed, "run", f"run={TINY.content_hash}")
    assert not page.is_visible("table.formulas")
    page.click(".folded > summary")
    assert page.locator("table.formulas tbody tr").count() == 12
    amplitudes = page.eval_on_selector_all(
        "table.formulas tbody tr", "rows => rows.map(row => Number(row.cells[1].textContent.replace('−', '-')))"
    )
    assert amplitudes == sorted(amplitudes, reverse=True)
    assert all(cell.count("cos(2π") <= 3 for cell in page.locator("table.formulas summary").all_inner_texts())
    page.click(".folded button")
    assert page.locator("table.formulas tbody tr").count() == TINY.architecture.mlp_width


def test_a_parent_that_had_memorised_is_said_of_its_fork(page: Any, mixed: Path, mixed_report: str) -> None:
    fork = next(run for run in source_of(mixed).runs if run.record.spec.fork)
    assert fork.record.timeline.memorized == fork.record.timeline.first == 1000
    opened(page, mixed_report, "run", f"run={fork.record.spec.content_hash}")
    assert "had memorised before its fork" in page.inner_text("#view-run .lede")
    assert "memorised" not in page.text_content("#figure-accuracy svg[role=img]")
    opened(page, mixed_report, "runs", "q=forked=1000")
    assert set(column(page, "memorized")) == {"before"}
