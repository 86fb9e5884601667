"""Forks on a page: branches, and the law with its chart."""

from dataclasses import replace

import pytest
from fork_records import demo
from page_runs import synthetic_records

from grokscope.law import fit_censored, fork_families, forked_run, law_of
from grokscope.specs import Fork
from grokscope.view.page import ShownRun
from grokscope.view.page.laws import forks_of


def test_the_laws_constant_is_of_maximum_likelihood() -> None:
    records = synthetic_records(25, tasks=("add_mod97",))
    found = forks_of([ShownRun(str(i), record) for i, record in enumerate(records)])
    (law,) = found["laws"]
    value, low, high = law["constant"]
    fitted = fit_censored([forked_run(one.spec, one.timeline) for one in records if one.spec.fork])
    constant = fitted.parameters["constant"]
    assert (value, low, high) == (constant.value, constant.low, constant.high)
    assert low < value < high
    assert law["spread"] == fitted.spread
    assert (law["size"], law["seeds"], len(law["runs"])) == ("20 forks", 5, 20)
    assert all(branches["parent"] is not None for branches in found["branches"])


def test_three_branches_have_a_constant_and_no_exponent() -> None:
    (law,) = forks_of([ShownRun(str(i), record) for i, record in enumerate(demo())])["laws"]
    assert law["constant"] == [pytest.approx(3169, abs=1), None, None]
    assert law["size"] == "2 forks and 1 parent"
    assert (law["exponent"], law["aic_difference"]) == (None, None)
    (alone,) = forks_of([ShownRun(str(i), record) for i, record in enumerate(demo()[1:])])["laws"]
    assert (alone["constant"], alone["spread"]) == (None, None)
    assert "points are needed to test" in alone["reason"]


def test_the_chart_shows_every_branch_and_the_fitted_laws() -> None:
    records = synthetic_records(25, tasks=("add_mod97",))
    (law,) = forks_of([ShownRun(str(i), record) for i, record in enumerate(records)])["laws"]
    dots, mean, power = law["chart"]["series"]
    assert (dots["kind"], len(dots["x"])) == ("points", 20)
    fitted = law_of(fork_families(records)[0].runs)
    assert mean["y"] == pytest.approx([fitted.constant.predict(at) for at in mean["x"]])
    assert power["y"] == pytest.approx([fitted.power.predict(at) for at in power["x"]])


def test_branches_of_an_earlier_run_of_their_parent_are_counted() -> None:
    parent = next(record for record in synthetic_records(10) if not record.spec.fork)
    fork = Fork(parent.spec.content_hash, 1000)
    branch = replace(parent, spec=replace(parent.spec, fork=fork))

    def grown(scale: float) -> dict[str, list[float]]:
        return {**parent.evaluations, "norm": [scale * value for value in parent.evaluations["norm"]]}

    other = replace(branch, spec=branch.spec.with_seed(7), evaluations=grown(1.1))
    scaled = replace(branch, spec=replace(branch.spec, fork=replace(fork, scale=2.0)), evaluations=grown(2.0))
    shown = [ShownRun(str(place), record) for place, record in enumerate((parent, branch, other, scaled))]
    (family,) = forks_of(shown)["branches"]
    assert (family["runs"], family["retrained"]) == ([1, 2, 3], 1)
    (alone,) = forks_of(shown[1:])["branches"]
    assert alone["retrained"] == 0


def test_a_scaled_fork_is_a_branch_and_not_in_the_law() -> None:
    record = next(record for record in synthetic_records(10) if record.spec.fork)
    scaled = replace(record, spec=replace(record.spec, fork=replace(record.spec.fork, scale=2.0)))
    found = forks_of([ShownRun("scaled", scaled)])
    assert found["laws"] == []
    assert found["branches"][0]["runs"] == [0]
