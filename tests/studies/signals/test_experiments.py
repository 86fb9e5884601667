"""What the study of signals trains: every run can be, families compare like with like, and the page says it."""

from collections import Counter
from pathlib import Path

import pytest

from grokscope.studies import find_study
from grokscope.studies.parts import parts_of
from grokscope.studies.selection import configuration
from grokscope.studies.signals import STUDY
from grokscope.studies.signals.catalogue import AFTERWARDS, CIRCUITS, MEASURES, ONE_LAYER
from grokscope.studies.signals.experiments import CELLS, EVERY, FAMILIES, family_of
from grokscope.tasks import named_task, reject_unsuited, train_size

PAGE = Path(__file__).parents[3] / "docs" / "studies" / "signals.md"


def test_it_is_found_by_its_name() -> None:
    assert find_study("signals") is STUDY


@pytest.mark.parametrize("name", CELLS)
def test_the_model_reads_the_rows_and_every_signal_is_read_at_one_cadence(name: str) -> None:
    run = CELLS[name].run(3, "tf32")
    reject_unsuited(run, named_task(run.task))
    assert 0 < train_size(named_task(run.task), run.train_fraction) < named_task(run.task).rows
    assert run.measurements.every == run.checkpoints.every == EVERY
    assert configuration(f"{name}_s3") == name


def test_cells_of_a_family_have_one_model_and_as_many_classes() -> None:
    for family in FAMILIES.values():
        cells = [CELLS[name] for name in (*family.groks, *family.cannot)]
        assert len({(cell.architecture, cell.train_fraction, cell.training.batch_size) for cell in cells}) == 1
        assert len({named_task(cell.task).classes for cell in cells}) == 1
        assert all(CELLS[name].kind == "groks" for name in family.groks)
        for name in family.cannot:
            cell = CELLS[name]
            assert cell.kind == "cannot-grok"
            assert cell.is_shuffled or cell.task.startswith(("latin", "random"))
            assert cell.seeds >= CELLS[family.groks[0]].seeds, "each is watched as long as a run of its seed"
    placed = Counter(name for family in FAMILIES.values() for name in (*family.groks, *family.cannot))
    assert set(placed.values()) == {1}
    assert {name for name in CELLS if not family_of(f"{name}_s0")} == {"square-sum", "cube-sum"}


def test_there_are_32_seeds_of_every_cell_that_is_compared() -> None:
    counts = Counter(configuration(name) for runs in STUDY.runs(precision="tf32").values() for name in runs)
    assert all(counts[name] >= 32 for name, cell in CELLS.items() if cell.kind != "polynomials")


def test_all_of_it_is_about_five_million_run_steps_at_most() -> None:
    steps = sum(cell.budget * cell.seeds for cell in CELLS.values())
    assert steps < 5e6
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"{steps:,} run-steps" in text
    assert f"{sum(cell.seeds for cell in CELLS.values())} runs" in text
    for name, cell in CELLS.items():
        assert f"| `{name}` |" in text, name
        assert f"| {cell.budget:,} | {cell.seeds} |" in text, name


def test_parts_measure_what_claims_and_tables_read_of_each_cell() -> None:
    whole = {spec.content_hash for runs in STUDY.runs(precision="tf32").values() for spec in runs.values()}
    names = {spec.content_hash: name for runs in STUDY.runs(precision="tf32").values() for name, spec in runs.items()}
    trained = Counter[str]()
    for part in parts_of(STUDY, "tf32"):
        plan = part.plan
        trained.update(spec.content_hash for spec in plan.runs)
        assert set(plan.measured) >= {spec.content_hash for spec in plan.runs}
        assert (plan.keep, plan.stop_after_grokking) == ("none", 2000)
        for spec in plan.runs:
            cell = configuration(names[spec.content_hash])
            assert ("trig@final" in plan.afterwards) == (cell in CIRCUITS)
            assert ("representation" in plan.measures) == (cell in ONE_LAYER)
            assert {"residual", "commutator", "paper_restricted", "trig"} <= set(plan.measures)
            assert {"attention_updates", "update_spectrum"} <= set(plan.afterwards)
    assert trained == Counter(whole)


def test_everything_is_measured_of_every_run_and_no_weights_are_stored() -> None:
    plan = STUDY.plan(STUDY.experiments, "runs")
    assert (plan.measures, plan.afterwards, plan.keep, plan.stop_after_grokking) == (MEASURES, AFTERWARDS, "none", 2000)
    assert set(plan.measured) == {spec.content_hash for spec in plan.runs}


def test_it_is_cut_into_parts_of_minutes() -> None:
    parts = parts_of(STUDY, "tf32")
    assert sum(part.steps for part in parts) == sum(cell.budget * cell.seeds for cell in CELLS.values())
    assert all(part.seconds <= 300 for part in parts)
