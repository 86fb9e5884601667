import numpy as np
from planted_ends import planted_cases, planted_log

from grokscope.forecast.benchmark.alarms import alarm_steps, needed_lead, score_alarms
from grokscope.forecast.cases import cell_medians, usable_cases
from grokscope.specs import RunSpec

CASES = planted_cases(cells=2, seeds=10, never=1)


def test_an_alarm_needs_three_evaluations_in_a_row():
    curve = dict(zip(range(100, 700, 100), [1.0, 1.0, 0.0, 1.0, 1.0, 1.0], strict=True))
    assert alarm_steps([curve], 0.5).tolist() == [600]
    assert alarm_steps([{100: 1.0, 200: 1.0}], 0.5).tolist() == [np.inf]


def test_the_threshold_keeps_false_alarms_at_their_share():
    rng = np.random.default_rng(0)
    negative = np.array([case.grokked is None for case in CASES])
    curves = [{step: float(rng.random()) for step in range(100, min(case.end, 6000), 100)} for case in CASES]
    for level in (0.01, 0.1, 0.5):
        found = score_alarms(CASES, curves, cell_medians(CASES), level, negative)
        assert found is not None
        assert found.false <= level
        early = found.leads[~np.isnan(found.leads)]
        assert (early > 0).all()
        assert len(found.covered) == (~negative).sum()


def test_alarms_after_the_positives_have_ended_are_not_false():
    negative = np.array([case.grokked is None for case in CASES])
    ends = [case.end for case in CASES if case.grokked is not None]
    curves = [{s: float(s > max(ends)) if n else 1.0 for s in range(100, 7000, 100)}
              for n in negative]  # fmt: skip
    found = score_alarms(CASES, curves, cell_medians(CASES), 0.01, negative)
    assert found is not None
    assert (found.false, found.threshold <= 1) == (0.0, True)


def test_the_lead_that_is_needed_is_shorter_where_grokking_is_quick():
    assert [needed_lead(median) for median in (400.0, 2499.0, 2500.0, np.inf)] == [100, 624.75, 1000, 1000]


def test_exposure_is_matched_as_counted_by_hand():
    """Runs grok at 500 and 1,000. One of two negatives raises at 700: by then half of those had ended: 1/4."""
    ends = {0: 500, 1: 1000}
    cases = []
    for seed in range(4):
        one = planted_log(ends.get(seed))
        cases += usable_cases([(RunSpec().with_seed(seed), one)])
    grid = range(100, 3000, 100)
    curves = [{step: 1.0 for step in grid if step < end} for end in ends.values()]
    curves += [{step: float(step >= 500) for step in grid}, dict.fromkeys(grid, 0.0)]
    medians, negative = {cases[0].cell: 1000.0}, np.array([False, False, True, True])
    strict = score_alarms(cases, curves, medians, 0.24, negative)
    found = score_alarms(cases, curves, medians, 0.25, negative)
    assert strict is not None
    assert found is not None
    assert (strict.false, strict.covered.tolist()) == (0, [0, 0])
    # Alarms come at step 300, 200 and 700 steps ahead; a quarter of the median is needed.
    assert (found.false, found.covered.tolist(), found.leads.tolist()) == (0.25, [0, 1], [200, 700])
