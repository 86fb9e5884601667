"""The search over readings: a planted reading that gives the paper's tables is found, and noise is not."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from grokscope.measures.readings import Reading, all_readings
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies import Evidence
from grokscope.studies.synchronization.edition import READING_STEPS, sensitivity
from grokscope.studies.synchronization.multiverse import (
    CLAIMS,
    REPORTED_LEADS,
    REPORTED_RANKS,
    read_set_ups,
    universes,
)
from grokscope.studies.synchronization.specification_curve import FIGURES, OWN, SEARCH, SUPPLEMENTS
from grokscope.view.charts.figure import Figure
from grokscope.view.table import Table

PLANTED = Reading("residual1", "read", "answer", "weighted", "network90")
REPORTED = ((4000, 1500), (4000, 1000), (3000, 2500), (3000, 2500), (3000, 1000))  # grokking, crossing
SEEDS = (42, 123, 0, 1, 2)


def planted(spec: RunSpec, run: int, follows: bool) -> RunRecord:
    """A run that groks as one of the five in Table 2, with one reading that is the paper's, and all others flat."""
    grok, sync = REPORTED[run]
    steps = list(READING_STEPS)
    columns: dict[str, list[float]] = {"step": list(steps)}
    for one in all_readings():
        columns.setdefault(one.fsd_column, [0.1] * len(steps))
        columns.setdefault(one.rank_column, [25.0] * len(steps))
    if follows:
        columns[PLANTED.fsd_column] = [0.95 if step >= sync else 0.2 for step in steps]
        columns[PLANTED.rank_column] = [REPORTED_RANKS.get(step, 26.0 if step == 0 else 1.0) for step in steps]
    log = {"step": list(range(0, 10_001, 100))}
    log["validation_accuracy"] = [1.0 if step >= grok else 0.1 for step in log["step"]]
    log["train_accuracy"] = [1.0] * len(log["step"])
    return RunRecord(spec, RunOutcome("grokked"), log, columns)


@lru_cache(maxsize=2)
def records(follows: bool) -> dict[str, RunRecord]:
    runs = sensitivity(5, "tf32")
    wanted = {name: spec for name, spec in runs.items() if name.startswith(("default_s", "causal_s"))}
    return {
        name: planted(spec, SEEDS.index(int(name.rpartition("_s")[2])), follows and name.startswith("causal"))
        for name, spec in wanted.items()
    }


def test_a_planted_reading_is_at_distance_zero_and_all_claims_but_the_early_one_hold_there() -> None:
    [planted_one] = [
        one
        for set_up in read_set_ups(records(True))
        for one in universes(set_up)
        if one.reading == PLANTED and one.set_up == "causal"
    ]
    assert planted_one.distance == pytest.approx(0, abs=1e-12)
    assert planted_one.untrained > 2
    assert planted_one.effects["lead"] == np.mean(REPORTED_LEADS)
    # Table 2 itself has FSD ≥ .80 at step 1,000 in two of its five runs.
    assert planted_one.holds == {"precedes": True, "early": False, "rank one": True, "lead": True}


def test_the_planted_universe_is_the_closest_and_only_it_holds_them() -> None:
    found = SEARCH.compute({"readings": records(True)})
    assert found.number() == pytest.approx(0, abs=1e-12)
    assert PLANTED.name in found.text
    assert "causal attention" in found.text
    assert (found.number("universes"), found.number("readings"), found.number("set-ups")) == (1440, 720, 2)
    # Of three votes one leads, of four counts one falls to 1: the others of the place hold one claim each.
    assert found.number("lead") == pytest.approx(4 / 1440)
    assert found.number("rank one") == pytest.approx(3 / 1440)
    assert found.number("early") == 0
    for name in CLAIMS:
        part = found.parts[name]
        assert part.low <= part.value <= part.high


def test_noise_comes_nowhere_near() -> None:
    found = SEARCH.compute({"readings": records(False)})
    assert found.number() > 2
    assert found.number() == pytest.approx(found.number("untrained"))
    assert found.number("closer than untrained") == 0
    assert all(found.number(name) == 0 for name in CLAIMS)


def test_a_place_that_a_set_up_does_not_have_is_not_counted() -> None:
    fewer = {
        name: replace(one, checkpoints={c: v for c, v in one.checkpoints.items() if not c.startswith("post")})
        for name, one in records(True).items()
    }
    assert SEARCH.compute({"readings": fewer}).number("readings") == 720 * 8 / 10


def test_runs_without_readings_or_without_a_row_of_the_table_are_left_out() -> None:
    plain = {name: replace(one, checkpoints={}) for name, one in records(True).items()}
    assert read_set_ups(plain) == []
    assert SEARCH.compute({"readings": plain}).missing
    cut = {
        name: replace(one, checkpoints={c: v[:-1] for c, v in one.checkpoints.items()})
        for name, one in records(True).items()
    }
    assert read_set_ups(cut) == []


def test_a_run_that_never_grokked_has_no_lead() -> None:
    never = {
        name: replace(one, evaluations=one.evaluations | {"validation_accuracy": [0.1] * 101})
        for name, one in records(True).items()
    }
    found = SEARCH.compute({"readings": never})
    assert all(found.number(name) == 0 for name in CLAIMS)


def test_the_table_and_the_figure_show_it() -> None:
    evidence = Evidence({"readings": records(True)})
    table = SUPPLEMENTS[0].build(evidence)
    assert isinstance(table, Table)
    assert (table.rows[0][0].ours, table.rows[-1][0].ours) == (PLANTED.name, OWN)
    assert table.rows[0][6].ours == 3
    assert PLANTED.name in SUPPLEMENTS[0].sentence(table)
    figure = FIGURES[0].build(evidence)
    assert isinstance(figure, Figure)
    assert len(figure.panels) == 6
    assert figure.panels[1].y_ticks[0] == (0, "site: pre0")
    assert all(series.quantity for panel in figure.panels for series in panel.series if series.source == "seeds")


def test_without_runs_they_say_so() -> None:
    evidence = Evidence({"readings": {}})
    table = SUPPLEMENTS[0].build(evidence)
    assert "not known" in SUPPLEMENTS[0].sentence(table)
    assert not any(panel.has_runs for panel in FIGURES[0].build(evidence).panels)
