import pytest
from planted_ends import planted_cases

from grokscope.errors import InputError
from grokscope.forecast import SIGNALS
from grokscope.forecast.benchmark import BASELINES, fit_baseline

CASES = planted_cases()


def test_a_baseline_reads_no_more_than_its_tier():
    for baseline in BASELINES.values():
        assert {*baseline.signals} <= {*SIGNALS}
        assert max((SIGNALS[name][0] for name in baseline.signals), default=0) <= baseline.tier


def test_the_clock_is_where_the_runs_grokked():
    clock = fit_baseline("clock", CASES)
    assert 2.4 < clock.median < 3.4  # planted at 3,000/λ times 0.8 to 1.15, with η = 0.001
    assert clock.deviation < 0.3


def test_rejects_a_baseline_that_does_not_exist():
    with pytest.raises(InputError, match="did you mean 'clock'"):
        fit_baseline("clok", CASES)
    with pytest.raises(InputError, match="needs runs that grokked"):
        fit_baseline("clock", [case for case in CASES if case.grokked is None])
