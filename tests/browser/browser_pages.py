"""What a person does with a page: open it, read a column of the table, take a file away."""

import csv
import io
from pathlib import Path
from typing import Any

__all__ = ["column", "downloaded", "file_name", "opened", "rows_of", "run_names"]


def opened(page: Any, address: str, view: str = "overview", query: str = "") -> Any:
    page.goto("about:blank")
    page.goto(f"{address}#/{view}{f'?{query}' if query else ''}")
    page.wait_for_selector("html[data-ready]")
    return page


def column(page: Any, field: str) -> list[str]:
    """The cells of one column of the table of runs."""
    return page.eval_on_selector_all(
        f'table.runs tbody td[data-field="{field}"]', "cells => cells.map(cell => cell.textContent)"
    )


def run_names(page: Any) -> list[str]:
    """The runs of the table, with their hashes, which are the tooltips of their names."""
    return page.eval_on_selector_all("table.runs tbody th a", "links => links.map(link => link.title)")


def downloaded(page: Any, selector: str) -> Path:
    with page.expect_download() as waiting:
        page.click(selector)
    return Path(waiting.value.path())


def file_name(page: Any, selector: str) -> str:
    with page.expect_download() as waiting:
        page.click(selector)
    return str(waiting.value.suggested_filename)


def rows_of(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_text())))
