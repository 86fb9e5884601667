"""Figure 7 draws the norms of the runs; the claims of the threshold mechanism can hold and can fail."""

from dataclasses import replace
from math import nan

import numpy as np
import pytest
from built import figure, labelled
from judged import CLAIMS, finding, is_decisive
from lifelike import lifelike
from paper_runs import evidence as followed
from planted import EMPTY

from grokscope.studies import Evidence, Verdict, judge


def test_norms_at_grokking_are_those_of_the_runs() -> None:
    found = lifelike(7, ("crossprime",))
    made, runs = figure("fig-threshold", found), found.experiment("crossprime")
    stars = labelled(made.panels[1], "grokked, seed 42")
    for decay, norm in zip(stars.x, stars.y, strict=True):
        record = runs[f"add_mod97_d42_x{decay:g}"]
        assert norm == record.at(record.timeline.grokked or 0, "norm")
    means = next(one for one in made.panels[1].series if one.source == "seeds")
    ours = next(one for one in made.panels[1].series if one.label.endswith(", ours"))
    assert ours.y[0] == pytest.approx(np.mean(means.y))
    assert f"τ = {ours.y[0]:.1f}, CV = " in made.title
    assert f"τ = {ours.y[0]:.1f} [" in judge(CLAIMS["threshold-norm"], found).value


def test_the_rate_is_that_of_an_exponential() -> None:
    rates = labelled(figure("fig-threshold", followed(True)).panels[2], "rate, seed 42")
    assert rates.y == pytest.approx([0.2 * decay for decay in rates.x], rel=1e-6)


def test_without_runs_the_paper_is_shown_alone() -> None:
    made = figure("fig-threshold", EMPTY)
    assert not any(panel.has_runs for panel in made.panels)
    assert made.title.endswith("no runs")
    assert made.notes[-1].startswith("Not trained, so left empty: add_mod97_d42_x1")


@pytest.mark.parametrize("name", ["threshold-norm", "threshold-variation", "decay-rate"])
def test_claims_hold_where_runs_follow_the_paper_and_fail_where_they_contradict_it(name: str) -> None:
    assert is_decisive(name)


def test_an_exponential_without_the_learning_rate_is_a_contradiction_whatever_the_runs() -> None:
    for follows in (True, False):
        assert finding("decay-form", follows).verdict is Verdict.INCONSISTENT
        assert finding("decay-form", follows).value == finding("decay-rate", follows).value
    assert judge(CLAIMS["decay-form"], EMPTY).value == "not measured"


def test_three_values_of_the_decay_are_needed() -> None:
    runs = followed(True).records["crossprime"]
    two = {name: record for name, record in runs.items() if name.endswith(("_x1", "_x2"))}
    unmeasured = {
        name: replace(record, evaluations=record.evaluations | {"norm": [nan] * len(record.evaluations["step"])})
        for name, record in runs.items()
    }
    for found in (two, unmeasured):
        for name in ("threshold-norm", "threshold-variation", "decay-rate"):
            assert judge(CLAIMS[name], Evidence({"crossprime": found})).verdict is Verdict.TOO_FEW
