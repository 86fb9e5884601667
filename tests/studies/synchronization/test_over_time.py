"""Table 5 comes out as reported; Figures 2 and 4 draw the runs' own columns, phases, medians and nulls."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial

import built
import numpy as np
import pytest
from built import labelled
from lifelike import lifelike
from planted import EMPTY, agree, evidence, only, reported_base

from grokscope.runs.records import RunRecord
from grokscope.studies import Evidence
from grokscope.studies.synchronization.over_time import FIGURES
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.view.charts.figure import Figure, Series
from paper_tables import RANK

table = partial(built.table, "tab-rank")

SEEDS = 7  # more than are reported of this task
OWN = "add_mod97_s42"
figures = pytest.mark.parametrize("name", [item.name for item in FIGURES])


@cache
def wide() -> Evidence:
    return only("base", **lifelike(SEEDS, ["base"]).records["base"])


def seeds() -> dict[str, RunRecord]:
    return {name: record for name, record in wide().records["base"].items() if record.spec.task == "add_mod97"}


def figure(name: str, found: Evidence | None = None) -> Figure:
    return built.figure(name, wide() if found is None else found)


def series(found: Figure) -> Iterator[Series]:
    return (one for panel in found.panels for one in panel.series)


def test_rank_and_norm_come_out_as_reported() -> None:
    values = {step: (accuracy, rank, norm) for step, accuracy, rank, norm, _ in RANK}
    names = ("validation_accuracy", "rank", "norm")
    log = {name: {step: row[i] for step, row in values.items()} for i, name in enumerate(names)}
    found = table(evidence("base", {OWN: {"log": log}}))
    steps = [str(row[0]) for row in RANK]
    agree(found, steps, ["Val acc", "Median rank", "Total norm"])
    phases = [str(found.cell(step, "Phase").ours) for step in steps]
    assert phases == ["1 (formation)"] * 4 + ["2 (liberation)"] * 3 + ["grokking", "post-grokking"]


def test_more_seeds_than_reported_give_medians_with_intervals() -> None:
    base = reported_base() | {f"add_mod97_s{seed}": {"grok": 2500, "sync": 1000} for seed in range(3, 9)}
    cell = table(evidence("base", base, n_seeds=11)).cell("500", "Total norm, all seeds")
    assert (cell.ours, cell.interval, cell.n) == (30, (30, 30), 11)


def test_the_phases_are_those_of_the_timeline() -> None:
    found, record = figure("fig-two-phase"), seeds()[OWN]
    span = labelled(found.panels[0], "Phase 2, seed 42")
    assert (span.low, span.high) == ((record.timeline.liberated,), (record.timeline.grokked,))
    rank = labelled(found.panels[2], "seed 42")
    assert dict(zip(rank.x, rank.y, strict=True)) == {
        step: record.at(int(step), "rank") for step in record.evaluations["step"] if step <= max(rank.x)
    }
    assert [panel.x_label for panel in found.panels] == ["", "", "", "step"]
    paper = labelled(found.panels[3], "paper")
    assert dict(zip(paper.x, paper.y, strict=True)) == {
        int(step): REPORTED["tab:rank"].get(step, "norm") for step in REPORTED["tab:rank"].rows
    }
    assert f"{record.timeline.grokked:,}" in found.title
    assert f"all {SEEDS} seeds" in found.title


def test_a_rank_that_is_not_1_is_not_called_so() -> None:
    runs = seeds()
    own = runs[OWN]
    grok = own.timeline.grokked
    assert grok is not None
    ranks = [20.0 if step <= grok else 3.0 for step in own.evaluations["step"]]
    runs[OWN] = replace(own, evaluations=own.evaluations | {"rank": ranks})
    found = figure("fig-two-phase", only("base", **runs))
    assert f"rank 3 at step {grok + 100:,}" in found.title
    assert labelled(found.panels[0], "rank 3, seed 42").x == (grok + 100,)
    assert any("seed 42 has none" in note for note in found.notes)
    assert not any("has none" in note for note in figure("fig-two-phase").notes)


def test_many_seeds_are_a_median_between_quartiles() -> None:
    runs = list(seeds().values())
    one = next(s for s in figure("fig-two-phase").panels[3].series if s.source == "seeds")
    for place in (0, 7, 31):
        values = [record.at(int(one.x[place]), "norm") for record in runs]
        assert (one.low[place], one.y[place], one.high[place]) == pytest.approx(np.percentile(values, [25, 50, 75]))
    assert one.label.endswith(f"{SEEDS} seeds")


def test_the_gap_is_train_less_validation() -> None:
    record = seeds()[OWN]
    gap = labelled(figure("fig-memorisation").panels[1], "gap, seed 42")
    for step, value in zip(gap.x, gap.y, strict=True):
        at = [record.at(int(step), f"{name}_accuracy") for name in ("train", "validation")]
        assert value == pytest.approx(at[0] - at[1])


def test_fsd_is_drawn_with_its_nulls() -> None:
    panel = figure("fig-two-phase").panels[1]
    band = next(one for one in panel.series if one.label.startswith("untrained, range"))
    values = [record.at(0, "fsd") for record in seeds().values()]
    assert (band.low[0], band.high[0]) == (min(values), max(values))
    assert 0 < labelled(panel, "independent neurons, 95 %").y[0] < 0.3


@figures
def test_every_curve_is_a_quantity(name: str) -> None:
    drawn = [one for one in series(figure(name)) if len(one) and one.source in ("run", "seeds")]
    assert drawn
    assert all(one.quantity for one in drawn)


@figures
def test_without_runs_a_figure_says_so_and_shows_the_paper_alone(name: str) -> None:
    found = figure(name, EMPTY)
    assert not any(panel.has_runs for panel in found.panels)
    assert {one.source for one in series(found) if len(one)} <= {"paper", "fit"}
    assert any(note.startswith("Not trained, so left empty") for note in found.notes)
    assert found.title.endswith("no runs")


@figures
def test_one_run_alone_is_drawn(name: str) -> None:
    own = figure(name, only("base", **{OWN: seeds()[OWN]}))
    assert own.panels[0].has_runs
    other = next(key for key in seeds() if key != OWN)
    alone = figure(name, only("base", **{other: seeds()[other]}))
    assert alone.title.endswith("all 1 seeds")


def test_without_the_run_table_5_is_the_papers() -> None:
    empty = table(EMPTY)
    assert any(note.startswith("Not trained, so left empty") for note in empty.notes)
    assert all(cell.ours is None for row in empty.rows for cell in row if cell.paper is not None)
