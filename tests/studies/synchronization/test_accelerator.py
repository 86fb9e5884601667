"""Figure 8 counts who grokked, and compares triggers with fixed decay at their own seeds; its claims can fail."""

from dataclasses import replace
from functools import cache
from math import isnan

import numpy as np
import pytest
from built import figure, labelled
from lifelike import lifelike
from paper_runs import evidence as followed

from grokscope.runs.records import RunRecord
from grokscope.studies import Evidence


@cache
def wide() -> dict[str, RunRecord]:
    return dict(lifelike(7, ("accelerator",)).experiment("accelerator"))


def triggered(record: RunRecord, fired: int | None) -> RunRecord:
    return replace(record, outcome=replace(record.outcome, trigger={"fired_at": fired}))


def test_bars_count_who_grokked() -> None:
    panel = figure("fig-accelerator", followed(True)).panels[0]
    assert labelled(panel, "at FSD ≥ 0.80").texts == ("3/3", "3/3", "3/3")
    assert labelled(panel, "at memorisation").texts == ("3/3", "3/3", "0/3")
    assert labelled(panel, "at memorisation").y[:2] == (2000, 2400)
    assert isnan(labelled(panel, "at memorisation").y[2])
    band = next(one for one in panel.series if one.source == "paper")
    assert (band.low[0], band.high[0]) == pytest.approx((4000 * 0.57, 4000 * 0.64))


def test_triggers_are_compared_with_fixed_decay_at_their_own_seeds() -> None:
    kept = {name: record for name, record in wide().items() if name.endswith(("_s42", "_s0", "_s1", "_s2"))}
    others = {name: record for name, record in wide().items() if name.startswith("fixed")}
    assert len(others) > 4
    made = figure("fig-accelerator", Evidence({"accelerator": kept | others}))
    fixed = next(one for one in made.panels[1].series if one.label.startswith("fixed"))
    mine = [wide()[f"fixed_s{seed}"].timeline.grokked for seed in (42, 0, 1, 2)]
    assert fixed.label == "fixed λ = 1 (4/4 grokked)"
    assert fixed.y[0] == np.median([step for step in mine if step is not None])
    steps = [
        [wide()[f"{name}_s{seed}"].timeline.grokked or 0 for seed in (42, 0, 1, 2)] for name in ("fsd_x3", "fixed")
    ]
    saved = 100 * (1 - sum(steps[0]) / sum(steps[1]))
    assert any(f"fsd_x3 {saved:.0f} % (4)" in note for note in made.notes)


def test_a_title_names_no_more_seeds_than_the_triggers_have() -> None:
    few = {name: record for name, record in wide().items() if name.endswith(("_s42", "_s0", "_s1"))}
    fixed = {name: record for name, record in wide().items() if name.startswith("fixed")}
    assert len(fixed) > 3
    made = figure("fig-accelerator", Evidence({"accelerator": few | fixed}))
    assert made.title.endswith("45 runs, 3 seeds per trigger")
    assert len(made.panels) == 1
    one_more = next(name for name in wide() if name.startswith("fsd_x3") and name not in few)
    made = figure("fig-accelerator", Evidence({"accelerator": few | fixed | {one_more: wide()[one_more]}}))
    assert "3 to 4 per trigger" in made.panels[1].title
