"""What the study of tasks trains: every run can be, and the parts are those of its page."""

from pathlib import Path

import pytest

from grokscope.studies.parts import SECONDS, parts_of
from grokscope.studies.tasks import STUDY
from grokscope.studies.tasks.experiments import CELLS, EXPERIMENTS, QUICK, SEEDS
from grokscope.tasks import named_task, reject_unsuited, train_size
from grokscope.training import cohort_key


@pytest.mark.parametrize("name", CELLS)
def test_the_model_reads_the_rows_and_the_split_leaves_some(name: str) -> None:
    run = CELLS[name].run(0, "tf32")
    reject_unsuited(run, named_task(run.task))
    assert 0 < train_size(named_task(run.task), run.train_fraction) < named_task(run.task).rows
    assert run.precision == ("float32" if CELLS[name].is_exact else "tf32")


def test_each_cell_is_one_stack_of_eight_seeds() -> None:
    runs = STUDY.runs(precision="tf32")
    assert sum(map(len, runs.values())) == SEEDS * len(CELLS)
    assert len({cohort_key(CELLS[name].run(0, "tf32")) for name in CELLS}) <= len(CELLS)
    for name, cell in CELLS.items():
        keys = {cohort_key(runs[cell.experiment][f"{name}_s{seed}"]) for seed in range(SEEDS)}
        assert len(keys) == 1, name


def test_all_of_it_is_about_five_million_run_steps_at_most() -> None:
    assert sum(cell.budget * SEEDS for cell in CELLS.values()) < 5.5e6


def test_the_page_names_every_task_budget_and_claim() -> None:
    page = " ".join((Path(__file__).parents[3] / "docs" / "studies" / "tasks.md").read_text(encoding="utf-8").split())
    assert all(claim.statement in page for claim in STUDY.claims)
    for cell in CELLS.values():
        assert f"`{cell.task}`" in page
        assert f"| {cell.budget:,} |" in page
    assert f"{sum(cell.budget * SEEDS for cell in CELLS.values()):,} run-steps" in page


def test_runs_go_on_after_grokking_as_long_as_stability_asks() -> None:
    assert STUDY.plan(["controls"], "runs").stop_after_grokking == 2000


def test_a_part_takes_minutes_and_the_long_runs_have_one_of_their_own() -> None:
    first, second = parts_of(STUDY, "tf32")
    assert len(first.plan.runs) + len(second.plan.runs) == SEEDS * len(CELLS)
    assert {spec.task for spec in second.plan.runs} == {CELLS[name].task for name in ("two-hop-3", "two-hop-7")}
    assert all(part.seconds < SECONDS and part.plan.stop_after_grokking == 2000 for part in (first, second))


def test_the_quick_version_is_small() -> None:
    assert set(QUICK) < set(CELLS)
    assert all(cell.budget < 1000 for cell in QUICK.values())
    assert set(STUDY.runs(quick=True)) == set(EXPERIMENTS)
