"""The quick version, trained, measured and judged as the whole study is; and tables and figures of planted runs."""

import json
from math import isfinite
from pathlib import Path

import pytest
from signal_runs import after, world

from grokscope.jobs import run_all
from grokscope.runs import Measuring, Store
from grokscope.studies import Evidence
from grokscope.studies.results import write_results
from grokscope.studies.signals import STUDY
from grokscope.studies.signals.catalogue import SIGNALS
from grokscope.studies.signals.costs import FILE, Costs, save_costs
from grokscope.studies.signals.readings import trace
from grokscope.studies.sources import every_record
from grokscope.view.charts.figure import Figure
from grokscope.view.table import Table


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """One of two additions mod 7 that grok within 160 steps, and one of two with shuffled labels."""
    out = tmp_path_factory.mktemp("runs")
    whole = STUDY.plan(["groks", "cannot-grok"], str(out), quick=True)
    plan = whole.select(spec for spec in whole.runs if spec.seeds.split == 0)
    measuring = Measuring.from_plan(plan)
    run_all(plan.runs, Store(out), compiled=False, keep=plan.keep, measuring=measuring, made_for=plan.memberships)
    return STUDY.evidence(every_record(out), out)


def test_every_signal_is_read_in_every_quick_run(quick: Evidence) -> None:
    assert quick.is_quick
    runs = [record for experiment in ("groks", "cannot-grok") for record in quick.experiment(experiment).values()]
    assert len(runs) == 2
    for record in runs:
        for signal in SIGNALS:
            found = trace(record, signal)
            assert found is not None, signal.name
            assert all(map(isfinite, found.values)), signal.name
            looks_back = signal.measure in ("attention_updates", "update_spectrum")
            assert found.steps == list(range(100 if looks_back else 0, record.timeline.last + 1, 10)), signal.name


def test_the_final_keys_are_those_of_the_last_checkpoint(quick: Evidence) -> None:
    """There a loss with the final keys is the loss with this checkpoint's."""
    for record in quick.experiment("groks").values():
        for name in ("trig", "excluded", "hidden_restricted", "hidden_excluded"):
            assert record.checkpoints[f"{name}@final"][-1] == pytest.approx(record.checkpoints[name][-1], rel=1e-6)


def test_the_page_is_written_from_the_quick_runs(quick: Evidence, tmp_path: Path) -> None:
    claims = write_results(STUDY, quick, tmp_path)
    assert {claim["name"] for claim in claims} == {claim.name for claim in STUDY.claims}
    page = (tmp_path / "RESULTS.md").read_text()
    assert "Which signal comes first" in page
    assert json.loads((tmp_path / "provenance.json").read_text())["runs"] == 2
    for item in (*STUDY.tables, *STUDY.figures):
        assert any(path.stem == item.name for path in tmp_path.rglob("*")), item.name


def planted() -> Evidence:
    return world(
        one_layer=lambda seed: {
            "grok": 3000 + 100 * seed, "fsd": after(2000, 0.9, 0.1), "norm": 30.0 + seed,
            "trig@final": after(1000, 0.1, 4.6), "excluded@final": after(1500, 5.0, 0.1),
        },
        shuffled_one_layer=lambda seed: {"fsd": 0.1, "norm": 50.0},
    )  # fmt: skip


def test_the_table_has_a_row_for_each_signal_with_the_cost_beside_the_records(tmp_path: Path) -> None:
    save_costs(Costs({"log": 2.0, "trig": 9.0}, "a device", {}), tmp_path / FILE)
    found = Evidence(planted().records, folder=tmp_path)
    [signals, order] = [item.build(found) for item in STUDY.tables]
    assert isinstance(signals, Table)
    assert [row[0].ours for row in signals.rows] == [one.title for one in SIGNALS]
    assert signals.cell("FSD", "Leads, published threshold").ours == 1.0
    assert signals.cell("FSD", "Cost of an evaluation (training steps)").ours == 2.0
    assert signals.cell("Restricted loss of Nanda et al., final keys", "Tier").ours == "final model"
    assert (
        signals.cell("Restricted loss of Nanda et al., final keys", "Cost of an evaluation (training steps)").ours
        == 9.0
    )
    assert signals.cell("Commutator defect, over its first values", "Leads, matched threshold").ours is None
    assert signals.cell("Weight norm", "Concordance at 50%").ours == 1.0
    assert isinstance(order, Table)
    [row] = [[cell.ours for cell in row] for row in order.rows]
    assert row[1:9] == ["Nanda et al.", 24, 1000.0, 0.0, 1500.0, 1500.0, 4150.0, 4150.0]
    [families] = [item.build(found) for item in STUDY.supplements]
    assert isinstance(families, Table)
    assert {row[1].ours for row in families.rows} == {"one layer"}


def test_figures_show_what_the_table_says() -> None:
    found = planted()
    leads, coverage = [item.build(found) for item in STUDY.figures]
    assert isinstance(leads, Figure)
    assert isinstance(coverage, Figure)
    [panel] = leads.panels
    assert panel.title == "one layer, 97 classes"
    place = 1 + [one.name for one in SIGNALS].index("fsd")
    drawn = {series.label: dict(zip(map(round, series.x), series.y, strict=True)) for series in panel.series}
    assert drawn["published threshold"][place] == 2150.0
    [points] = coverage.panels
    shown = {
        series.label: dict(zip(series.texts, zip(series.x, series.y, strict=True), strict=True))
        for series in points.series
    }
    assert shown["published threshold"][str(place)] == (0.0, 1.0)
