"""What the bake-off tries follows from its tuning; its tables and what the pages say follow from the stored runs."""

from pathlib import Path

import pytest

from grokscope.runs.records import RunRecord, unpacked
from grokscope.studies.bakeoff.configurations import CHOSEN, FIRST_TUNING_SEED, arm_of, bakeoff_plan
from grokscope.studies.bakeoff.tables import bakeoff_results, bakeoff_table, tuned
from grokscope.studies.figures import figure_csv
from grokscope.studies.bakeoff.figures import fig_bakeoff
from grokscope.studies.bakeoff.speed import read_speed
from grokscope.studies.tables import Table
from grokscope.view.render import csv_of, latex_of, markdown_of
from scripts import DOCS, module_at

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "results" / "bakeoff"


@pytest.fixture(scope="module")
def records() -> list[RunRecord]:
    return unpacked(FOLDER / "bakeoff.records.gz")


def is_stored(table: Table) -> bool:
    renders = {"csv": csv_of, "md": markdown_of, "tex": latex_of}
    return all(render(table) == (FOLDER / f"{table.name}.{end}").read_bytes() for end, render in renders.items())


def test_every_arm_has_the_setting_that_its_tuning_chooses() -> None:
    records = unpacked(FOLDER / "tuning.records.gz")
    assert all(record.spec.seeds.split >= FIRST_TUNING_SEED for record in records)
    chosen, table = tuned(records)
    assert chosen == CHOSEN
    assert is_stored(table)


def test_every_run_of_the_whole_plan_is_there(records: list[RunRecord]) -> None:
    plan = bakeoff_plan("runs", precision="tf32")
    assert len(plan.runs) == 1152
    assert {record.spec.content_hash for record in records} == {run.content_hash for run in plan.runs}


def test_table_and_figure_follow_from_the_records(records: list[RunRecord]) -> None:
    speed = read_speed(FOLDER / "speed.json")
    assert speed is not None
    assert is_stored(bakeoff_table(records, speed.seconds_per_step, speed.place))
    assert figure_csv(fig_bakeoff(bakeoff_results(records))) == (FOLDER / "fig-bakeoff.csv").read_bytes()


def test_what_the_page_says_of_it_follows_too(records: list[RunRecord]) -> None:
    made = module_at(DOCS / "make_results.py")
    page = (ROOT / "docs" / "own-model.md").read_text()
    assert made.with_bakeoff(page, made.bakeoff_block(records)) == page
    assert made.bakeoff_block(records) in page
    # The sentences below it.
    for task in bakeoff_results(records):
        loop, fixed = task.arm("closed loop"), task.arm(task.best_fixed or "")
        plain = task.arm("memorisation trigger")
        assert loop.steps.value > fixed.steps.value
        assert plain.grokked.value > 0.9
        assert plain.steps.value <= 1.5 * task.winner.steps.value
    early = [record for record in records if record.spec.task == "S5" and arm_of(record.spec) == "FSD trigger"]
    fired = [(record.outcome.fired_at, record.outcome.memorized) for record in early]
    assert sum(memorized is None or at < memorized for at, memorized in fired) > 0.8 * len(fired)
