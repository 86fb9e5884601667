import numpy as np
import pytest
from planted_ends import planted_cases, planted_log

from grokscope.forecast.benchmark.alarms import alarm_questions, alarm_step, alarms_of, find_threshold, needed_lead
from grokscope.forecast.benchmark.thresholds import fit_thresholds, other_thresholds
from grokscope.forecast.cases import Case, cell_medians, usable_cases
from grokscope.forecast.hazard import fit_hazard
from grokscope.specs import RunSpec

CASES = planted_cases(cells=2, seeds=10, never=1)


def at(cases, curves, threshold):
    return alarms_of(cases, curves, dict.fromkeys(cases, threshold), cell_medians(cases))


def test_an_alarm_needs_three_questions_in_a_row():
    curve = dict(zip(range(100, 700, 100), [1.0, 1.0, 0.0, 1.0, 1.0, 1.0], strict=True))
    assert alarm_step(curve, 0.5) == 600
    assert alarm_step({100: 1.0, 200: 1.0}, 0.5) == np.inf


def test_the_threshold_keeps_false_alarms_at_their_share_and_no_lower_one_does():
    rng = np.random.default_rng(0)
    curves = {case: {step: float(rng.random()) for step in alarm_questions(case)} for case in CASES}
    for level in (0.01, 0.1, 0.5):
        threshold = find_threshold(CASES, curves, level)
        assert threshold is not None
        found = at(CASES, curves, threshold)
        assert np.mean(found.false) <= level
        assert (found.leads[~np.isnan(found.leads)] > 0).all()
        assert len(found.covered) == sum(case.grokked is not None for case in CASES)
        negatives = [value for case in CASES if case.grokked is None for value in curves[case].values()]
        lower = max(value for value in negatives if value < threshold - 1e-6)
        assert np.mean(at(CASES, curves, lower).false) > level


def test_alarms_after_the_positives_have_ended_are_not_false():
    last = max(case.end for case in CASES if case.grokked is not None)
    curves = {
        case: {step: float(step > last) if case.grokked is None else 1.0 for step in range(100, 7000, 100)}
        for case in CASES
    }
    threshold = find_threshold(CASES, curves, 0.01)
    assert threshold is not None
    assert threshold <= 1
    assert np.mean(at(CASES, curves, threshold).false) == 0


def test_the_lead_that_is_needed_is_shorter_where_grokking_is_quick():
    assert [needed_lead(median) for median in (400.0, 2499.0, 2500.0, np.inf)] == [100, 624.75, 1000, 1000]


def test_exposure_is_matched_as_counted_by_hand():
    """Runs grok at 500 and 1,000. One of two negatives raises at 700: by then half of those had ended: 1/4."""
    ends = {0: 500, 1: 1000}
    cases: list[Case] = []
    for seed in range(4):
        cases += usable_cases([(RunSpec().with_seed(seed), planted_log(ends.get(seed)))])
    grid = range(100, 3000, 100)
    curves = {cases[seed]: {step: 1.0 for step in grid if step < end} for seed, end in ends.items()}
    curves |= {cases[2]: {step: float(step >= 500) for step in grid}, cases[3]: dict.fromkeys(grid, 0.0)}
    medians = {cases[0].cell: 1000.0}
    strict, loose = (find_threshold(cases, curves, level) for level in (0.24, 0.25))
    assert strict is not None
    assert loose is not None
    none, found = (alarms_of(cases, curves, dict.fromkeys(cases, one), medians) for one in (strict, loose))
    assert (none.false.tolist(), none.covered.tolist()) == ([0, 0], [0, 0])
    # Alarms come at step 300, 200 and 700 steps ahead; a quarter of the median is needed.
    assert (found.false.tolist(), found.covered.tolist(), found.leads.tolist()) == ([0.5, 0], [0, 1], [200, 700])


def test_the_steps_of_alarms_depend_on_no_other_run_and_on_no_length():
    steps = [alarm_questions(case) for case in CASES]
    longest = max(steps, key=len)
    assert all(one == longest[: len(one)] for one in steps)
    assert longest[:3] == [100, 200, 300]


def test_no_threshold_is_found_on_the_runs_that_it_is_for():
    """Whatever the runs of a fold do, their own threshold stays; those of the others move."""
    rng = np.random.default_rng(1)
    cases = planted_cases(cells=3, never=3)
    curves = {case: {step: float(rng.random()) for step in alarm_questions(case)} for case in cases}
    before = other_thresholds(cases, curves, lambda case: case.cell)
    cell = next(case.cell for case in cases if case.grokked is None)
    altered = {case: dict.fromkeys(curve, 0.999) if case.cell == cell else curve for case, curve in curves.items()}
    after = other_thresholds(cases, altered, lambda case: case.cell)
    assert all(before[case] == after[case] for case in cases if case.cell == cell)
    assert all(before[case] != after[case] for case in cases if case.cell != cell)


@pytest.mark.parametrize("cases", [planted_cases(never=0), [case for case in CASES if case.cell == CASES[0].cell]])
def test_where_nothing_separates_no_threshold_is_found(cases):
    assert fit_thresholds(lambda others: fit_hazard(others, 5), cases) == {}


def test_thresholds_are_of_parameters_fitted_to_other_cells():
    fitted_to = []

    def fit(cases):
        fitted_to.append({case.cell for case in cases})
        return fit_hazard(cases, 5, every=400)

    cases = planted_cases()
    found = fit_thresholds(fit, cases)
    assert [*found] == [0.01, 0.05, 0.1]
    assert found[0.01] >= found[0.05] >= found[0.1]
    cells = {case.cell for case in cases}
    left_out = [cells - one for one in fitted_to]
    assert all(left_out)
    assert sorted(cell for one in left_out for cell in one) == sorted(cells), "each cell is left out once"
