"""The filter of the runs: which rows pass, what is not understood, and which columns and lines are shown of them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks.synthetic import synthetic_records
from browser_pages import column, downloaded, opened, rows_of, run_names

from grokscope.runs import RunRecord, run_name
from grokscope.runs.packing import save_records
from grokscope.specs import Trigger
from grokscope.view.page import source_of, write_page

pytestmark = pytest.mark.browser


def decay(record: RunRecord) -> float:
    return record.spec.training.weight_decay


def passing(folder: Path, holds: Callable[[RunRecord], bool]) -> list[str]:
    """The runs of a folder for which something holds, counted from the records."""
    return sorted(run.name for run in source_of(folder).runs if holds(run.record))


@pytest.mark.parametrize(
    ("words", "holds"),
    [
        ("λ=1", lambda record: decay(record) == 1),
        ("λ=10", lambda record: decay(record) == 10),
        ("lambda=1", lambda record: decay(record) == 1),
        ("wd=1", lambda record: decay(record) == 1),
        ("weight_decay=10", lambda record: decay(record) == 10),
        ("Weight-Decay = 1.0", lambda record: decay(record) == 1),
        ("λ ≥ 3", lambda record: decay(record) >= 3),
        ("wd>=3", lambda record: decay(record) >= 3),
        ("λ>2 λ≤5", lambda record: 2 < decay(record) <= 5),
        ("λ≠1", lambda record: decay(record) != 1),
        ("λ!=1", lambda record: decay(record) != 1),
        ("seed=3", lambda record: record.spec.seeds.data_order == 3),
        ("forked=1,000", lambda record: record.spec.fork is not None),
        ("fork=none", lambda record: record.spec.fork is None),
        ("lead>1000", lambda record: (record.timeline.sync.lead.steps or 0) > 1000),
        ('outcome="grokked, then unstable"', lambda record: record.timeline.outcome.name == "UNSTABLE_AFTER"),
        ("dips>1", lambda record: record.timeline.outcome.name == "UNSTABLE_AFTER"),
        ("lead>−1 lead<1000", lambda record: 0 <= (record.timeline.sync.lead.steps or -1) < 1000),
        ("dropout", lambda record: record.spec.training.dropout > 0),
        ("add_mod97 seed<2", lambda record: record.spec.seeds.data_order < 2),
    ],
)
def test_a_filter_compares_numbers_as_numbers(
    words: str, holds: Callable[[RunRecord], bool], page: Any, mixed: Path, mixed_report: str
) -> None:
    opened(page, mixed_report, "runs")
    page.fill("#filter", words)
    expected = passing(mixed, holds)
    assert 0 < len(expected) < len(source_of(mixed).runs)
    assert sorted(run_names(page)) == expected
    assert page.inner_text("#filter-problem") == ""


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("nonsense=1", "nonsense=1 (there is no field nonsense)"),
        ("λ=strong", "λ=strong (strong is not a number)"),
        ("λ=", "λ= (the value is missing)"),
        ("or", "or (a run must pass all parts; there is no and, no or)"),
        ("=3", "=3 (no field is named)"),
        ("task>add", "task>add (task holds text: only = and ≠ compare it)"),
        ("grokked<never", "grokked<never (never can only be = or ≠)"),
    ],
)
def test_what_a_filter_does_not_understand_is_named_and_the_rest_holds(
    words: str, problem: str, page: Any, mixed: Path, mixed_report: str
) -> None:
    opened(page, mixed_report, "runs")
    page.fill("#filter", f"seed=3 {words}")
    assert problem in page.inner_text("#filter-problem")
    assert "Fields are λ, seed" in page.inner_text("#filter-problem")
    assert sorted(run_names(page)) == passing(mixed, lambda record: record.spec.seeds.data_order == 3)
    page.fill("#filter", "seed=3")
    assert page.inner_text("#filter-problem") == ""


def test_triggers_and_shuffled_labels_are_found_by_their_words(page: Any, tmp_path: Path) -> None:
    usual, *others = synthetic_records(15, evaluations=31, tasks=("add_mod97",))[::5]
    shuffled = replace(others[0], spec=replace(others[0].spec, shuffled_labels=True))
    triggered = replace(others[1], spec=replace(others[1].spec, trigger=Trigger("fsd", weight_decay=3.0)))
    save_records(tmp_path / "all.records.gz", [usual, shuffled, triggered])
    write_page(tmp_path / "page.html", source_of(tmp_path))
    opened(page, (tmp_path / "page.html").as_uri(), "runs")
    for words, spec in (("shuffled", shuffled.spec), ("fsd trigger", triggered.spec)):
        page.fill("#filter", words)
        assert run_names(page) == [run_name(spec)]
    page.fill("#filter", "")
    head, *rows = rows_of(downloaded(page, "#table-csv"))
    says = {row[head.index("run")]: row[head.index("shuffled_labels")] for row in rows}
    assert says == {run_name(one.spec): str(one is shuffled).lower() for one in (usual, shuffled, triggered)}


def test_the_columns_are_those_that_vary_and_can_be_chosen(page: Any, mixed_report: str) -> None:
    opened(page, mixed_report, "runs")
    heads = "heads => heads.map(head => head.dataset.sort)"
    usual = page.eval_on_selector_all("table.runs thead [data-sort]", heads)
    assert {"seed", "weight_decay", "forked", "dips"} <= set(usual)
    assert not {"task", "model", "train_fraction", "split_seed", "precision"} & set(usual), "they are all the same"
    page.click(".chooser summary")
    page.check("#column-model")
    page.uncheck("#column-seed")
    chosen = page.eval_on_selector_all("table.runs thead [data-sort]", heads)
    assert set(chosen) == {*usual, "model"} - {"seed"}
    assert set(column(page, "model")) == {"2 × 128, 4 heads, mlp 512"}
    opened(page, mixed_report, "runs", page.url.partition("?")[2])
    assert page.eval_on_selector_all("table.runs thead [data-sort]", heads) == chosen
    page.click(".chooser summary")
    page.click(".chooser button")
    assert page.eval_on_selector_all("table.runs thead [data-sort]", heads) == usual


def legend(page: Any) -> list[str]:
    return page.locator("#figure-runs .legend .name").all_inner_texts()


def lines(page: Any) -> int:
    return page.locator("#figure-runs svg[role=img] path[fill=none]").count()


def test_many_runs_are_grouped_by_task_and_decay_without_forks(page: Any, mixed_report: str) -> None:
    opened(page, mixed_report, "runs")
    assert page.inner_text("#runs-title") == "Validation accuracy, by configuration"
    assert legend(page) == ["λ = 1 (n = 10)", "λ = 10 (n = 3)", "λ = 1, dropout = 0.1"]
    assert lines(page) == 1 + 3 + 1, "a median of ten, and the others each for itself"
    assert page.locator("#figure-runs svg[role=img] path[fill-opacity]").count() == 1, "one band, of the ten"
    assert "8 forks left out" in page.inner_text("#figure-runs figcaption")
    rows = rows_of(downloaded(page, "#figure-runs .tools button"))
    assert rows[0][:3] == ["group", "run", "step"]
    medians = [row for row in rows[1:] if row[0] == "λ = 1 (n = 10)"]
    assert all(float(row[4]) <= float(row[3]) <= float(row[5]) for row in medians)
    assert {row[1] for row in medians} == {""}
    assert len({row[1] for row in rows[1:] if row[0] == "λ = 10 (n = 3)"}) == 3
    page.check("#with-forks")
    assert "λ = 2, forked at 1,000 (n = 2)" in legend(page)
    assert page.locator("#figure-runs svg[role=img] path[fill-opacity]").count() == 0, "no bands above four groups"
    page.uncheck("#with-forks")
    page.fill("#filter", "forked=1000")
    assert len(legend(page)) == 4, "forks that are asked for are drawn"


def test_fewer_than_eight_runs_are_drawn_each_for_itself(page: Any, mixed_report: str) -> None:
    opened(page, mixed_report, "runs", "q=seed<7 λ=1")
    assert page.inner_text("#runs-title") == "Validation accuracy"
    assert legend(page) == [f"seed {seed}" for seed in range(7)]
    titles = page.eval_on_selector_all("#figure-runs .legend li:not(.where-item)", "keys => keys.map(key => key.title)")
    assert titles[0].startswith("add_mod97_s0-"), "the hash is a tooltip"
