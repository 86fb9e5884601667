"""Laws are fitted to runs that follow them, and scored on others."""

from dataclasses import replace

import numpy as np
import pytest
from planted_ends import planted_log

from grokscope.forecast.benchmark import LAWS, score_laws
from grokscope.forecast.cases import usable_cases
from grokscope.specs import RunSpec


def lawful(times):
    """Three runs for each λ that grok when `times` says, give or take 100 steps, with ‖W‖ = 100·exp(−λt/1000)."""
    runs = []
    for decay in (0.6, 1.0, 1.5, 2.0, 3.0):
        base = RunSpec()
        spec = replace(base, training=replace(base.training, weight_decay=decay, steps=8000))
        for seed in range(3):
            grok = round(times(decay), -2) + 100 * (seed - 1)
            runs.append((spec.with_seed(seed), planted_log(int(grok), 5 * decay, seed)))
    return usable_cases(runs)


@pytest.mark.parametrize("name", ["inverse", "clock", "first-passage", "threshold-norm", "log-linear"])
def test_a_law_predicts_runs_that_follow_it(name):
    found = {one.name: one for one in score_laws(lawful(lambda decay: 3600 / decay), lambda case: case.cell)}
    limit = 0.2 if name == "log-linear" else 0.09  # the ridge draws its exponent to 0
    assert found[name].error.value < limit
    assert found[name].over_floor.value < found["median"].over_floor.value / 2
    assert found[name].runs == 15


def test_a_law_that_does_not_hold_is_seen_to_fail():
    found = {one.name: one for one in score_laws(lawful(lambda decay: 1000 * decay), lambda case: case.cell)}
    assert found["inverse"].error.value > 0.4
    assert found["log-linear"].error.value < found["inverse"].error.value


def test_a_law_never_sees_the_fold_that_it_is_scored_on():
    cases = lawful(lambda decay: 3600 / decay)
    slow = [replace(case, family="other") for case in cases if case.run.value("weight_decay") == 3.0]
    fast = [case for case in cases if case.run.value("weight_decay") != 3.0]
    found = {one.name: one for one in score_laws([*fast, *slow], lambda case: case.family)}
    apart = LAWS["median"].fit(fast)(slow[0])
    errors = [min(abs(apart - case.end) / case.end, 1) for case in slow]
    errors += [min(abs(LAWS["median"].fit(slow)(fast[0]) - case.end) / case.end, 1) for case in fast]
    assert np.isclose(found["median"].error.value, np.mean(errors))
