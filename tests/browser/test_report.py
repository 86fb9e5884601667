"""The report as a person meets it: opened from the disk in a real browser."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from browser_pages import column, downloaded, opened, rows_of, run_names
from browser_runs import HOSTILE_FOLDER, HOSTILE_TASKS, TINY

import grokscope
from grokscope.runs import run_name
from grokscope.view.page import source_of, write_page

pytestmark = pytest.mark.browser
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
SECTIONS = ("overview", "runs", "run", "forks", "groups", "method")

ROOT = Path(__file__).parents[2]


def drawn_runs(page: Any) -> list[str]:
    """The runs behind the lines of the plot above the table; a line is labelled by what distinguishes its run."""
    return page.eval_on_selector_all("#figure-runs .legend li:not(.where-item)", "keys => keys.map(key => key.title)")


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
    assert column(page, "lead") == shown
    assert page.get_attribute("th:has([data-sort=lead])", "aria-sort") == "ascending"
    page.click("[data-sort=lead]")
    assert column(page, "lead") == shown[::-1]
    assert page.evaluate("document.activeElement.dataset.sort") == "lead"


def test_a_filter_drives_the_plots_and_is_in_the_address(page: Any, report: str) -> None:
    opened(page, report, "runs")
    everyone = len(run_names(page))
    page.select_option("#task", "S5")
    assert set(column(page, "task")) == {"S5"}
    assert len(column(page, "task")) < everyone
    assert drawn_runs(page) == run_names(page)
    page.click("nav a:has-text('Overview')")
    assert "of 1 task: S5" in page.inner_text("#view-overview .lede")
    link = page.url
    page.goto("about:blank")
    page.goto(link.replace("#/overview", "#/runs"))
    page.wait_for_selector("html[data-ready]")
    assert set(column(page, "task")) == {"S5"}


def test_selected_rows_are_compared_and_aggregated(page: Any, report: str) -> None:
    opened(page, report, "runs", "task=add_mod53&by=none")
    for place in (0, 2):
        page.locator("table.runs tbody input").nth(place).check()
    names = [run_names(page)[place] for place in (0, 2)]
    assert sorted(drawn_runs(page)) == sorted(names)
    labels = page.locator("#figure-runs .legend .name").all_inner_texts()
    for label, name in zip(labels, drawn_runs(page), strict=True):
        place = run_names(page).index(name)
        forked = column(page, "forked")[place]
        where = "from the start" if forked == "–" else f"forked at {forked}"
        assert label == f"λ = {column(page, 'weight_decay')[place]}, {where}"
    assert "2 selected" in page.inner_text(".counter")
    page.select_option("#by", "task")
    assert page.locator("#figure-runs .legend .name").all_inner_texts() == ["add_mod53 (n = 2)"]
    rows = rows_of(downloaded(page, "#figure-runs .tools button"))
    assert {row[1] for row in rows[1:]} == set(names), "each of two is drawn"
    assert all(row[4:] == ["", ""] for row in rows[1:]), "two have no band"


def test_a_law_says_what_it_is_fitted_to_or_why_it_is_not_fitted(page: Any, report: str, detailed: str) -> None:
    opened(page, report, "forks")
    assert re.search(r"Fitted to \d+ forks.* of add_mod\d+ forked at 1,000", page.inner_text("#figure-law figcaption"))
    opened(page, detailed, "forks")
    assert "The law is not fitted: " in page.inner_text("#figure-law figcaption")
    assert page.locator("#view-forks table >> nth=0").locator("tbody td.number").all_inner_texts() == ["–"] * 5


def test_a_section_without_content_is_no_tab(page: Any, mixed_report: str, report: str) -> None:
    opened(page, mixed_report)
    assert "Groups" not in page.inner_text("#nav")
    opened(page, report)
    assert "Groups" in page.inner_text("#nav")


def test_what_is_stated_of_results_is_no_json(page: Any, mixed: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(mixed, tmp_path / "stated"))
    stated = {"seeds": 16, "parts": {"base": {"runs": 3, "left": []}}, "machines": [{"torch": "2.11"}], "none": []}
    (folder / "provenance.json").write_text(json.dumps(stated))
    write_page(tmp_path / "page.html", source_of(folder))
    opened(page, (tmp_path / "page.html").as_uri(), "method")
    words = page.inner_text("#view-method")
    assert "base" in words
    assert "2.11" in words
    assert not set('{}[]"') & set(words.partition("How to cite")[0].partition("Provenance")[2])


def test_one_run_that_is_much_longer_stretches_no_axis_of_many(page: Any) -> None:
    source = (ROOT / "src" / "grokscope" / "view" / "page" / "assets" / "pooling.js").read_text()
    pooled = source[source.index("function pooled(") : source.index("// Runs of one configuration")]
    found = page.evaluate(f"""() => {{
        const isNumber = Number.isFinite, quantile = (values, q) => values[Math.floor(q * (values.length - 1))];
        {pooled}
        const steps = (from, to) => Array.from({{ length: (to - from) / 100 + 1 }}, (_, i) => from + 100 * i);
        return pooled([steps(0, 1000), steps(0, 1000), steps(200, 55000)].map(x => ({{ x, y: x }})));
    }}""")
    assert found["x"] == found["y"] == list(range(0, 1001, 100))


def test_a_link_leads_to_its_state(page: Any, report: str) -> None:
    opened(page, report, "runs", "q=s0&task=add_mod131&sort=weight_decay&dir=down&y=norm&by=weight_decay")
    assert column(page, "weight_decay") == ["5", "3", "2", "1", "1"]
    assert page.inner_text("#runs-title") == "Weight norm ‖W‖, by λ"
    page.go_back()
    opened(page, report, "nonsense", "sort=nothing&y=nothing&by=nothing&run=nothing&task=")
    assert page.is_visible("#view-overview h1")
    assert page.complaints == []


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
    assert "attn0" in page.inner_text("#view-run table >> nth=-1")  # the ablation's, with the names that records have


def test_hostile_names_are_text(page: Any, report: str, detailed: str) -> None:
    opened(page, report, "runs")
    shown = column(page, "task")
    assert all(task in shown for task in HOSTILE_TASKS)
    for section in SECTIONS:
        opened(page, report, section)
        assert page.locator("main img, main script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{section} is too wide"
    assert HOSTILE_TASKS[1] in page.inner_text(".brand")
    opened(page, detailed, "runs")
    assert HOSTILE_FOLDER in run_names(page)
    page.click(f'a[title="{HOSTILE_FOLDER}"]')
    assert page.inner_text("#view-run h1") == HOSTILE_FOLDER.rpartition("-")[0]
    assert "broken" not in page.title().replace(HOSTILE_TASKS[1], "")
    assert page.complaints == []


def test_no_section_is_wider_than_a_phone(page: Any, report: str, detailed: str, mixed_report: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for address in (report, detailed, mixed_report):
        for section in SECTIONS:
            opened(page, address, section)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{section} is too wide"


def test_the_message_comes_first_and_each_sentence_leads_to_its_numbers(page: Any, report: str) -> None:
    opened(page, report, "overview", "verdict=unlikely")  # which shows other claims than the sentence is about
    assert page.eval_on_selector_all("#view-overview > *", "parts => parts.slice(0, 2).map(one => one.localName)") == [
        "h1",
        "section",
    ]
    assert page.locator(".message h2").all_inner_texts() == ["What holds", "How sure this is"]
    first = page.locator(".message li").first
    assert first.inner_text() == "It groks in 9 of 9 runs. numbers and these"
    assert first.locator("strong").inner_text() == "It groks"
    assert [one.locator("button").count() for one in page.locator(".message li").all()] == [2, 1, 0]
    first.get_by_text("and these").click()
    claim = page.locator("[id='claim-drawn 3']")
    assert claim.locator("details").get_attribute("open") is not None
    assert "drawn 3" in page.evaluate("document.activeElement.textContent")
    assert page.complaints == []


def test_captions_and_claims_can_be_read_on_a_phone(page: Any, report: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for section in ("overview", "forks"):
        opened(page, report, section)
        texts = page.locator(f"#view-{section} caption > span, #view-{section} .claims .statement").all()
        assert texts
        assert all(0 < text.bounding_box()["x"] + text.bounding_box()["width"] <= 390 for text in texts)


@pytest.mark.parametrize("width", [390, 1280])
def test_no_text_of_a_plot_meets_its_axis_title_or_leaves_its_bar(width: int, page: Any, report: str) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, report)
    for figure in page.locator("figure.plot svg[role=img]").all():
        title = figure.locator("text[transform*='rotate(-90']").bounding_box()
        ticks = [tick.bounding_box() for tick in figure.locator("text[text-anchor=end]:not([transform])").all()]
        assert ticks
        assert title["x"] + title["width"] <= min(tick["x"] for tick in ticks)
    bars = [bar.bounding_box() for bar in page.locator("#figure-outcomes [data-bar]").all()]
    for number in page.locator("#figure-outcomes text[font-weight]").all():
        box = number.bounding_box()
        assert any(bar["x"] <= box["x"] and box["x"] + box["width"] <= bar["x"] + bar["width"] for bar in bars)


def test_forks_stand_after_their_parent_in_the_order_of_their_decay(page: Any, report: str) -> None:
    opened(page, report, "runs")
    rows = list(zip(column(page, "seed"), column(page, "forked"), column(page, "weight_decay"), strict=True))
    first = [(fork != "–", float(decay)) for seed, fork, decay in rows if seed == rows[0][0]]
    assert len(first) > 2
    assert first == sorted(first)


def test_outcomes_of_one_task_are_shown_by_weight_decay(page: Any, report: str, mixed_report: str) -> None:
    button = "#figure-outcomes .tools button"
    rows = rows_of(downloaded(opened(page, mixed_report, query="forks=1"), button))
    assert rows[0] == ["weight decay λ", "outcome", "runs"]
    bars = {row[0] for row in rows[1:]}
    assert {"all runs", "λ = 1", "λ = 10"} <= bars
    count = {bar: sum(int(row[2]) for row in rows[1:] if row[0] == bar) for bar in bars}
    assert count.pop("all runs") == sum(count.values())
    assert rows_of(downloaded(opened(page, report), button))[0] == ["task", "outcome", "runs"]


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
