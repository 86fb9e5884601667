"""Medians, shares, p-values and choices of planted runs, against scipy and against counts."""

from math import inf

import numpy as np
import pytest
import scipy.stats
from bakeoff_runs import FIXED, SEEDS, evidence, planted, record, specs_of, tuning

from grokscope.stats import Estimate
from grokscope.studies.bakeoff.configurations import FAMILIES
from grokscope.studies.bakeoff.quantities import CHOICE, compare, outcome


def test_medians_shares_and_p_values_are_those_of_scipy() -> None:
    rivals = {**FIXED, "closed loop": 500, "Grokfast": 1600, "orthogonal gradient": 3500}
    found = evidence(planted(rivals))
    compared = found.measure(compare("add_mod97"))
    assert compared.parts["best fixed"] == "fixed λ = 3"
    raw = {}
    for name, first in rivals.items():
        own = found.measure(outcome("add_mod97", name))
        steps = [8000] * SEEDS if first is None else [first + 100 * seed for seed in range(SEEDS)]
        data = scipy.stats.CensoredData.right_censored(steps, [first is None] * SEEDS)
        known = scipy.stats.CensoredData([1500 + 100 * seed for seed in range(SEEDS)])
        if name != "fixed λ = 3":
            raw[name] = scipy.stats.logrank(data, known).pvalue
        assert own.number("grokked") == (0.0 if first is None else 1.0)
        assert own.n == own.parts["runs"] == SEEDS
        assert own.number("steps") == (inf if first is None else sorted(steps)[SEEDS // 2 - 1])
    order = sorted(raw, key=raw.__getitem__)
    adjusted = np.maximum.accumulate([raw[name] * (len(raw) - place) for place, name in enumerate(order)])
    for name, expected in zip(order, adjusted, strict=True):
        assert compared.number(name) == pytest.approx(min(expected, 1.0), rel=1e-9)
    assert "fixed λ = 3" not in compared.parts


def test_a_failed_run_is_later_than_everything_and_not_merely_unwatched() -> None:
    fixed = {name: record(run, 1500) for name, run in specs_of("fixed λ = 3").items()}
    fast = {
        name: record(run, None, failed=200) if seed < 5 else record(run, 1000)
        for seed, (name, run) in enumerate(specs_of("Grokfast").items())
    }
    found = evidence(fixed | fast).measure(outcome("add_mod97", "Grokfast"))
    assert found.number("steps") == inf
    assert (found.parts["not finite"], found.number("grokked")) == (5, 3 / 8)


def test_failures_and_collapses_are_counted() -> None:
    (a, first), (b, second), (c, third), (d, fourth), (e, fifth), (f, sixth), *_ = specs_of("fixed λ = 5").items()
    runs = {
        a: record(first, None, learnt=False),
        b: record(second, 1000, collapse=0.89),
        c: record(third, 1000, collapse=0.9),
        d: record(fourth, 1000, collapse=0.2),
        e: record(fifth, None, failed=50, learnt=False),
        f: record(sixth, 1000, failed=1250),
    }
    found = evidence(runs).measure(outcome("add_mod97", "fixed λ = 5"))
    grokked = found.parts["grokked"]
    assert isinstance(grokked, Estimate)
    assert [found.parts[name] for name in ("never memorised", "not finite", "collapsed")] == [2, 2, 3]
    assert grokked.items == 6


def test_the_setting_with_fewest_failures_is_chosen_and_among_those_the_fastest() -> None:
    names = [*FAMILIES["closed loop"]]
    cases = [
        (([900, 800, 700, 600],), 3),
        (([900, 800, 700, None],), 2),
        (([900, 800, 700, 600], [1.0, 1.0, 0.5, 0.5]), 1),
    ]
    for planned, place in cases:
        chosen = evidence({}, tuning(*planned)).measure(CHOICE).parts
        assert chosen == {
            "FSD trigger": "λ = 10",
            "memorisation trigger": "λ = 10",
            "closed loop": names[place],
            "Grokfast": "λ = 5",
            "orthogonal gradient": "λ = 5",
        }


def test_nothing_is_chosen_from_nothing() -> None:
    assert evidence(planted(FIXED)).measure(CHOICE).missing
