"""Runs in a notebook that was saved and is opened again, without any kernel."""

from html import escape
from pathlib import Path
from typing import Any

import pytest
from browser_pages import column

import grokscope

pytestmark = pytest.mark.browser


@pytest.fixture
def frame(store: Path, page: Any, tmp_path: Path) -> Any:
    """The frame of a page around the runs' HTML, as a notebook shows it."""
    saved = tmp_path / "notebook.html"
    output = grokscope.open(store).where(task="add_mod7")._repr_html_()
    saved.write_text(f"<!doctype html><title>{escape('a notebook')}</title><h1>Out[1]</h1>{output}", encoding="utf-8")
    page.goto(saved.as_uri())
    found = page.query_selector("iframe").content_frame()
    found.wait_for_selector("html[data-ready]")
    return found


def test_the_plots_of_the_page_are_drawn_without_complaint_or_request(frame: Any, page: Any) -> None:
    assert frame.is_visible("#view-overview h1")
    assert frame.locator("#view-overview svg path").count() > 0
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith(("file:", "about:", "data:", "blob:"))] == []
    box = page.locator("iframe").bounding_box()
    assert box["height"] == 720
    assert box["width"] > 1000


def test_links_filters_and_sorting_work_inside_it_and_the_notebook_stays(frame: Any, page: Any) -> None:
    address = page.url
    frame.click("nav a:has-text('Runs')")
    frame.wait_for_selector("table.runs tbody tr")
    assert len(column(frame, "weight_decay")) == 3
    frame.fill("#filter", "λ=3")
    assert column(frame, "weight_decay") == ["3"]
    frame.click("[data-sort=weight_decay]")
    frame.click("table.runs tbody th a")
    assert frame.is_visible("#view-run h1")
    assert frame.locator("#view-run svg path").count() > 0
    frame.focus(".skip")
    page.keyboard.press("Enter")
    assert frame.evaluate("document.activeElement.id") == "main"
    assert frame.is_visible("#view-run h1")
    assert (page.url, page.title(), frame.url) == (address, "a notebook", "about:srcdoc")
    assert page.complaints == []


def test_nothing_in_it_reaches_the_notebook(frame: Any) -> None:
    reached = "() => { try { return parent.document.title; } catch (error) { return error.name; } }"
    assert frame.evaluate(reached) == "SecurityError"
