"""The report as a person meets it: opened from the disk in a real browser."""

import csv
import html
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser_runs import HOSTILE_FOLDER, HOSTILE_TASKS, TINY

import grokscope
from grokscope.runs import run_name
from grokscope.specs import RunSpec
from grokscope.view.page import source_of

pytestmark = pytest.mark.browser
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
SECTIONS = ("overview", "runs", "run", "forks", "groups", "method")

ROOT = Path(__file__).parents[2]


def opened(page: Any, address: str, view: str = "overview", query: str = "") -> Any:
    page.goto("about:blank")
    page.goto(f"{address}#/{view}{f'?{query}' if query else ''}")
    page.wait_for_selector("html[data-ready]")
    return page


def column(page: Any, place: int) -> list[str]:
    return page.eval_on_selector_all("table.runs tbody tr", f"rows => rows.map(row => row.cells[{place}].textContent)")


def drawn_runs(page: Any) -> list[str]:
    """The runs behind the lines of the plot above the table; a line is labelled by what distinguishes its run."""
    return page.eval_on_selector_all("#figure-runs .legend li:not(.where-item)", "keys => keys.map(key => key.title)")


def downloaded(page: Any, selector: str) -> Path:
    with page.expect_download() as waiting:
        page.click(selector)
    return Path(waiting.value.path())


def rows_of(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_text())))


@pytest.mark.parametrize("which", ["report", "detailed"])
def test_every_section_opens_from_the_disk_without_complaint_or_request(
    which: str, page: Any, request: pytest.FixtureRequest
) -> None:
    address = request.getfixturevalue(which)
    for section in SECTIONS:
        opened(page, address, section)
        assert page.is_visible(f"#view-{section} h1"), section
        page.click("#theme")
        assert page.is_visible(f"#view-{section} h1"), section
    assert page.complaints == []
    outside = [url for url in page.requests if not url.startswith((address, "about:", "data:", "blob:"))]
    assert outside == []


def test_the_policy_stops_what_is_not_ours(page: Any, report: str) -> None:
    opened(page, report)
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.in = 1'}))"
    )
    assert page.evaluate("window.in") is None
    assert "default-src 'none'" in page.get_attribute("meta[http-equiv]", "content")


def test_a_heading_sorts_both_ways_and_what_was_not_reached_stands_last(page: Any, report: str, results: Path) -> None:
    opened(page, report, "runs")
    leads = [
        run.record.timeline.sync.lead.steps for run in source_of(results).runs if run.record.spec.task == "add_mod97"
    ]
    page.fill("#filter", "add_mod97 ")
    page.click("[data-sort=lead]")
    shown = [f"{lead:,}" for lead in sorted(leads)]
    assert column(page, 10) == shown
    assert page.get_attribute("th:has([data-sort=lead])", "aria-sort") == "ascending"
    page.click("[data-sort=lead]")
    assert column(page, 10) == shown[::-1]
    assert page.evaluate("document.activeElement.dataset.sort") == "lead"


def test_a_filter_drives_the_plots_and_is_in_the_address(page: Any, report: str) -> None:
    opened(page, report, "runs")
    everyone = len(column(page, 1))
    page.select_option("#task", "S5")
    assert set(column(page, 2)) == {"S5"}
    assert len(column(page, 2)) < everyone
    assert drawn_runs(page) == column(page, 1)
    page.click("nav a:has-text('Overview')")
    assert "of 1 task: S5" in page.inner_text("#view-overview .lede")
    link = page.url
    page.goto("about:blank")
    page.goto(link.replace("#/overview", "#/runs"))
    page.wait_for_selector("html[data-ready]")
    assert set(column(page, 2)) == {"S5"}


def test_selected_rows_are_compared_and_aggregated(page: Any, report: str) -> None:
    opened(page, report, "runs", "task=add_mod53&by=none")
    for place in (0, 2):
        page.locator("table.runs tbody input").nth(place).check()
    names = [column(page, 1)[place] for place in (0, 2)]
    assert drawn_runs(page) == names
    labels = page.locator("#figure-runs .legend .name").all_inner_texts()
    for label, place in zip(labels, (0, 2), strict=True):
        forked = column(page, 5)[place]
        where = "from the start" if forked == "–" else f"forked at {forked}"
        assert label == f"λ = {column(page, 4)[place]}, {where}"
    assert "2 selected" in page.inner_text(".counter")
    page.select_option("#by", "task")
    assert page.locator("#figure-runs .legend .name").all_inner_texts() == ["add_mod53 (n = 2)"]
    rows = rows_of(downloaded(page, "#figure-runs .tools button"))
    assert rows[0] == ["group", "step", "median", "low (10 %)", "high (90 %)"]
    assert all(float(row[3]) <= float(row[2]) <= float(row[4]) for row in rows[1:])


def test_one_run_that_is_much_longer_stretches_no_axis_of_many(page: Any) -> None:
    source = (ROOT / "src" / "grokscope" / "view" / "page" / "assets" / "overview.js").read_text()
    pooled = source[source.index("function pooled(") : source.index("const mark ")]
    found = page.evaluate(f"""() => {{
        const isNumber = Number.isFinite, quantile = (values, q) => values[Math.floor(q * (values.length - 1))];
        {pooled}
        const steps = (from, to) => Array.from({{ length: (to - from) / 100 + 1 }}, (_, i) => from + 100 * i);
        return pooled([steps(0, 1000), steps(0, 1000), steps(200, 55000)].map(x => ({{ x, y: x }})));
    }}""")
    assert found["x"] == found["y"] == list(range(0, 1001, 100))


def test_a_link_leads_to_its_state(page: Any, report: str) -> None:
    opened(page, report, "runs", "q=s0&task=add_mod131&sort=weight_decay&dir=down&y=norm&by=weight_decay")
    assert column(page, 4) == ["5", "3", "2", "1", "1"]
    assert page.inner_text("#runs-title") == "Weight norm ‖W‖, by λ"
    page.go_back()
    opened(page, report, "nonsense", "sort=nothing&y=nothing&by=nothing&run=nothing&task=")
    assert page.is_visible("#view-overview h1")
    assert page.complaints == []


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
            assert len(re.findall(r"<text[^>]*>[^<]", svg)) > 6, "an axis without ticks or title"


def test_a_picture_has_two_pixels_for_each_of_the_screen(page: Any, report: str) -> None:
    opened(page, report, "run")
    content = downloaded(page, "#figure-accuracy .tools button:has-text('PNG')").read_bytes()
    assert content[:4] == b"\x89PNG"
    width = page.eval_on_selector("#figure-accuracy svg[role=img]", "svg => svg.width.baseVal.value")
    assert int.from_bytes(content[16:20], "big") == pytest.approx(2 * width, abs=2)


def test_zoom_and_logarithm_are_in_the_address_and_shared(page: Any, report: str) -> None:
    opened(page, report, "run")
    ticks = "svg => [...svg.querySelectorAll('text')].map(text => text.textContent).join(' ')"
    before = page.eval_on_selector("#figure-norm svg[role=img]", ticks)
    box = page.locator("#figure-accuracy svg[role=img]").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 90)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 90, steps=4)
    page.mouse.up()
    assert "zoom=" in page.url
    near = page.eval_on_selector("#figure-norm svg[role=img]", ticks)
    assert near != before, "the other plots of the run are zoomed too"
    opened(page, report, "run", page.url.partition("?")[2])
    assert page.eval_on_selector("#figure-norm svg[role=img]", ticks) == near
    page.dblclick("#figure-accuracy svg[role=img]")
    assert page.eval_on_selector("#figure-norm svg[role=img]", ticks) == before
    page.click("#figure-accuracy .log")
    assert "log=1" in page.url
    assert "step (log)" in page.eval_on_selector("#figure-norm svg[role=img]", ticks)


def test_the_cursor_of_one_plot_moves_those_beside_it(page: Any, report: str) -> None:
    opened(page, report, "run")
    box = page.locator("#figure-accuracy svg[role=img]").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 90)
    step = page.inner_text("#figure-accuracy .where")
    assert step.startswith("step ")
    assert page.inner_text("#figure-norm .where") == step


@pytest.mark.parametrize(
    ("words", "holds"),
    [
        ("λ=1", lambda spec: spec.training.weight_decay == 1),
        ("wd>2", lambda spec: spec.training.weight_decay > 2),
        ("task=add_mod53 seed=0", lambda spec: (spec.task, spec.seeds.data_order) == ("add_mod53", 0)),
    ],
)
def test_a_filter_compares_numbers_as_numbers(
    words: str, holds: Callable[[RunSpec], bool], page: Any, report: str, results: Path
) -> None:
    opened(page, report, "runs")
    page.fill("#filter", words)
    expected = [run.name for run in source_of(results).runs if holds(run.record.spec)]
    assert sorted(column(page, 1)) == sorted(expected)
    page.fill("#filter", "nonsense=1")
    assert "not understood: nonsense=1" in page.inner_text(".counter")


def test_the_slider_moves_every_picture_of_the_network(page: Any, detailed: str) -> None:
    opened(page, detailed, "run", f"run={TINY.content_hash}")
    heights = "bars => bars.map(bar => bar.getAttribute('height'))"
    picture = "image => image.getAttribute('href')"
    before = page.eval_on_selector_all("[data-bar]", heights), page.eval_on_selector("#figure-neurons image", picture)
    where = "svg => [...svg.querySelectorAll('line')].map(one => one.getAttribute('x1')).join()"
    frame = page.eval_on_selector("#figure-heat svg[role=img]", where)
    assert page.inner_text("output") == "step 12"
    page.focus("#checkpoint")
    page.keyboard.press("Home")
    assert page.inner_text("output") == "step 0"
    assert "at=0" in page.url
    after = page.eval_on_selector_all("[data-bar]", heights), page.eval_on_selector("#figure-neurons image", picture)
    assert after[0] != before[0]
    assert after[1] != before[1]
    assert page.eval_on_selector("#figure-heat svg[role=img]", where) != frame
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("html[data-ready]")
    assert page.eval_on_selector_all("[data-bar]", heights) == after[0]


def test_participation_is_what_the_weights_give(page: Any, detailed: str, store: Path) -> None:
    from grokscope.measures import Question, fsd

    opened(page, detailed, "run", f"run={TINY.content_hash}&at=4")
    rows = rows_of(downloaded(page, "#figure-participation .tools button"))[1:]
    subject = grokscope.open(store)[run_name(TINY)].subject([4])
    expected = fsd(Question(subject).spectrum().density).participation[0].tolist()
    assert [float(row[2]) for row in rows] == pytest.approx(expected, abs=1e-4)
    assert "blocks.0.hook_attn_out" in page.inner_text("#view-run")  # the ablation's table
    assert "cos(2π" in page.inner_text("#view-run")


def test_hostile_names_are_text(page: Any, report: str, detailed: str) -> None:
    opened(page, report, "runs")
    shown = column(page, 2)
    assert all(task in shown for task in HOSTILE_TASKS)
    for section in SECTIONS:
        opened(page, report, section)
        assert page.locator("main img, main script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{section} is too wide"
    assert HOSTILE_TASKS[1] in page.inner_text(".brand")
    opened(page, detailed, "runs")
    assert HOSTILE_FOLDER in column(page, 1)
    page.click(f'a[title="{HOSTILE_FOLDER}"]')
    assert page.inner_text("#view-run h1") == HOSTILE_FOLDER
    assert "broken" not in page.title().replace(HOSTILE_TASKS[1], "")
    assert page.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(scheme: str, browser: Any, report: str, detailed: str) -> None:
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    for address, section in [*((report, section) for section in SECTIONS), (detailed, "run")]:
        opened(page, address, section)
        page.evaluate(AXE.read_text())
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        serious = [(v["id"], v["nodes"][0]["html"][:200]) for v in found if v["impact"] in ("serious", "critical")]
        assert serious == [], (section, scheme)
    context.close()


def test_a_plot_can_be_read_with_the_keyboard(page: Any, report: str) -> None:
    opened(page, report, "run")
    page.focus("#figure-accuracy [role=img]")
    page.keyboard.press("ArrowRight")
    first = page.inner_text("#figure-accuracy .where")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#figure-accuracy .where") != first
    assert page.inner_text("#figure-accuracy .value >> nth=0") != ""


def test_all_sections_are_printed(page: Any, report: str) -> None:
    opened(page, report)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert all(page.is_visible(f"#view-{section} h1") for section in SECTIONS)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not page.is_visible("#view-method h1")
