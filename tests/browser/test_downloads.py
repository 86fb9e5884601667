"""What can be taken away from a page: data as it was stored, and pictures that say what they show."""

import html
import re
from pathlib import Path
from typing import Any

import pytest
from browser_pages import downloaded, file_name, opened, rows_of
from browser_runs import HOSTILE_TASKS

from grokscope.view.page import source_of

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("name", ["add_mod97", "S5"])
def test_a_runs_csv_is_what_was_stored(name: str, page: Any, report: str, results: Path) -> None:
    run = next(run for run in source_of(results).runs if run.record.spec.task == name)
    opened(page, report, "run", f"run={run.record.spec.content_hash}")
    head, *rows = rows_of(downloaded(page, "#figure-accuracy .tools button"))
    assert set(head) == set(run.record.evaluations)
    for place, column_name in enumerate(head):
        assert [float(row[place]) for row in rows] == run.record.evaluations[column_name], column_name


def test_the_table_can_be_taken_away_and_computes_nothing_in_a_spreadsheet(page: Any, report: str) -> None:
    opened(page, report, "runs")
    rows = rows_of(downloaded(page, "#table-csv"))
    assert len(rows) == 1 + 17 + len(HOSTILE_TASKS)
    assert {"run", "task", "weight_decay", "fork_step", "memorized", "synchronized", "last_step", "hash"} <= set(
        rows[0]
    )
    tasks = {row[1] for row in rows}
    assert "'=1+1" in tasks
    assert set(HOSTILE_TASKS[:3]) <= tasks


def test_every_plot_can_be_taken_away_with_its_title_axes_and_legend(page: Any, report: str) -> None:
    for section in ("overview", "run", "forks", "groups"):
        opened(page, report, section)
        for figure in page.locator(f"#view-{section} figure.plot:visible").all():
            with page.expect_download() as waiting:
                figure.locator(".tools button", has_text="SVG").click()
            svg = Path(waiting.value.path()).read_text()
            title, key = figure.locator("h3").inner_text(), figure.locator(".legend .name").first.inner_text()
            words = html.unescape(svg)
            assert title[:40] in words
            assert key[:40] in words
            assert "rotate(-90" in svg, "a title of the y axis"
            assert len(re.findall(r"<text[^>]*>[^<]", svg)) > 6, "an axis without ticks or title"


def test_a_picture_has_two_pixels_for_each_of_the_screen(page: Any, report: str) -> None:
    opened(page, report, "run")
    content = downloaded(page, "#figure-accuracy .tools button:has-text('PNG')").read_bytes()
    assert content[:4] == b"\x89PNG"
    width = page.eval_on_selector("#figure-accuracy svg[role=img]", "svg => svg.width.baseVal.value")
    assert int.from_bytes(content[16:20], "big") == pytest.approx(2 * width, abs=2)


def words_of(page: Any, figure: str) -> list[str]:
    """The texts of a figure's SVG file, from top to bottom."""
    svg = downloaded(page, f"#figure-{figure} .tools button:has-text('SVG')").read_text()
    return [html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]+)", svg)]


def test_a_downloaded_plot_has_title_legend_and_axis_titles(page: Any, report: str, mixed_report: str) -> None:
    opened(page, mixed_report, "runs")
    assert {
        "Validation accuracy, by configuration",
        "step",
        "Validation accuracy",
        "λ = 1 (n = 10)",
        "λ = 10 (n = 3)",
    } <= set(words_of(page, "runs"))
    opened(page, report, "forks")
    words = words_of(page, "law")
    assert {"weight decay λ after the fork (log)", "steps Δt from fork to grokking (log)", "grokked"} <= set(words)
    assert {"1", "2", "3", "5"} <= set(words), "ticks at the λ that occur"


def test_files_are_called_after_the_page_and_what_they_hold(page: Any, mixed: Path, mixed_report: str) -> None:
    opened(page, mixed_report, "runs")
    assert file_name(page, "#table-csv") == "mixed-runs-table-of-runs.csv"
    assert file_name(page, "#figure-runs .tools button") == "mixed-runs-Validation-accuracy-by-configuration.csv"
    fork = next(run for run in source_of(mixed).runs if run.record.spec.fork)
    opened(page, mixed_report, "run", f"run={fork.record.spec.content_hash}")
    decay = f"{fork.record.spec.training.weight_decay:g}"
    plot = "#figure-norm .tools button"
    assert (
        file_name(page, f"{plot}:has-text('SVG')")
        == f"mixed-runs-add_mod97_s{fork.record.spec.seeds.split}-λ={decay}-forked-at-1000-Weight-norm.svg"
    )
    assert file_name(page, f"{plot}:has-text('PNG')").endswith("-Weight-norm.png")
