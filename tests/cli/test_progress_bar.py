"""The bar counts optimiser steps, wherever they are taken."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grokscope.cli.progress_bar import TrainingBar
from grokscope.jobs import run_all
from grokscope.runs import Store, run_name
from grokscope.specs import Plan
from tiny_runs import CHILD, TINY

pytestmark = pytest.mark.usefixtures("quick_disk")
OTHER = TINY.with_seed(1)
REMOTE = Plan("s3://bucket/runs", (TINY, OTHER))


def line(step: int, spec: Any = TINY, **row: float | None) -> dict[str, Any]:
    row = {"train_accuracy": 0.0, "validation_accuracy": None, **row}
    return {"run": run_name(spec), "step": step, "last": spec.training.steps, "row": row}


@pytest.fixture
def bar() -> TrainingBar:
    return TrainingBar(REMOTE, "starting")


@pytest.fixture
def done(bar: TrainingBar) -> Callable[[], float]:
    return lambda: bar.bar.tasks[0].completed


def test_a_run_that_is_reported_once_moves_it_as_far_as_one_that_is_reported_often(
    bar: TrainingBar, done: Callable[[], float]
) -> None:
    assert bar.bar.tasks[0].total == 16
    for step in (0, 2, 6, 8):
        bar.report(line(step))
        assert done() == step
    bar.report(line(8, OTHER))
    assert done() == 16


def test_a_run_that_repeats_steps_moves_it_only_by_new_ones(bar: TrainingBar, done: Callable[[], float]) -> None:
    for step, expected in ((4, 4), (2, 4), (4, 4), (6, 6)):
        bar.report(line(step))
        assert done() == expected


def test_a_fork_has_the_steps_after_its_beginning() -> None:
    bar = TrainingBar(replace(REMOTE, runs=(CHILD,)), "")
    assert bar.bar.tasks[0].total == 4
    bar.report(line(6, CHILD))
    assert bar.bar.tasks[0].completed == 2


def test_what_is_stored_counts_from_the_beginning(tmp_path: Path) -> None:
    run_all((TINY,), Store(tmp_path))
    Store(tmp_path).add(OTHER).append({"step": 4, "train_accuracy": 0.0})
    bar = TrainingBar(Plan(str(tmp_path), (TINY, OTHER, TINY.with_seed(2))), "")
    assert (bar.bar.tasks[0].completed, bar.bar.tasks[0].total) == (8 + 4, 24)
    bar.report(line(6, OTHER))
    assert bar.bar.tasks[0].completed == 14
    bar.fill()
    assert bar.bar.tasks[0].completed == 24


def test_it_says_what_runs_have_reached_and_how_the_jobs_are(bar: TrainingBar) -> None:
    def facts() -> str:
        return bar.bar.tasks[0].fields["facts"]

    assert facts() == "starting"
    bar.report({"jobs": "jobs: 2 pending ([red])"})
    assert facts() == "0 memorised, 0 grokked\njobs: 2 pending ([red])"
    with bar.console.capture() as shown:
        bar.console.print(bar.bar.get_renderable())
    assert "jobs: 2 pending ([red])" in shown.get(), "text is no markup"
    bar.report(line(2, train_accuracy=1.0))
    bar.report(line(2, OTHER, train_accuracy=1.0, validation_accuracy=1.0))
    bar.report(line(4, OTHER))
    assert facts().startswith("2 memorised, 1 grokked")
    assert facts().endswith("\njobs: 2 pending ([red])")
    bar.fill()
    assert "jobs" not in facts()


def test_a_run_that_ended_early_counts_in_full_and_leaves_no_time(tmp_path: Path) -> None:
    times = iter(range(0, 1000, 10))
    bar = TrainingBar(Plan(str(tmp_path), (TINY, OTHER)), "", lambda: next(times))
    store = Store(tmp_path)
    for spec in (TINY, OTHER):
        store.add(spec)
    bar.report(line(2))
    assert "left" not in bar.bar.tasks[0].fields["facts"], "how long compiling took says nothing of the steps"
    (store.locate(TINY).path / "outcome.json").write_text("{}")
    bar.report(line(2, OTHER))
    assert (bar.bar.tasks[0].completed, bar.left) == (10, {run_name(TINY): 0, run_name(OTHER): 6})
    assert bar.bar.tasks[0].fields["facts"].endswith(", 30 s left"), "of the six steps of the other, at 4 in 20 s"
    bar.report(line(8, OTHER))
    assert bar.bar.tasks[0].completed == 16
    assert "left" not in bar.bar.tasks[0].fields["facts"]


def test_it_ends_with_what_is_finished_and_how_long_that_took(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan(str(tmp_path), (TINY, OTHER))
    times = iter([0.0, 1.0, 449.4])
    bar = TrainingBar(plan, "", lambda: next(times))
    bar.report(line(8))
    bar.conclude()
    assert capsys.readouterr().err == "1 of 2 runs finished in 7:29\n"
    run_all(plan.runs, Store(tmp_path))
    bar = TrainingBar(plan, "")
    bar.fill()
    bar.conclude()
    assert capsys.readouterr().err == "all 2 runs were finished before; nothing was trained\n"


def test_a_notice_is_printed_as_it_is(bar: TrainingBar, capsys: pytest.CaptureFixture[str]) -> None:
    bar.report({"notice": "a [red]note[/red]"})
    bar.warn("a warning")
    assert capsys.readouterr().err == "note: a [red]note[/red]\nwarning: a warning\n"
