import numpy as np
from planted_ends import planted_cases

from grokscope.forecast import Forecast
from grokscope.forecast.benchmark.ranking import auroc, concordance, urgency
from grokscope.forecast.cases import usable_cases
from grokscope.specs import RunSpec

CASES = planted_cases(cells=1, seeds=6, never=1)


def test_concordance_agrees_with_a_loop_over_pairs():
    rng = np.random.default_rng(0)
    keys = [(float(rng.integers(0, 4)), 0.0) for _ in CASES]
    right = known = 0.0
    for first, a in zip(CASES, keys, strict=True):
        for second, b in zip(CASES, keys, strict=True):
            if first is second or first.grokked is None:
                continue
            if first.end < second.end or (first.end == second.end and second.grokked is None):
                known += 1
                right += 1.0 if a > b else 0.5 if a == b else 0.0
    assert concordance(CASES, keys) == (right, known)


def test_auroc_is_that_of_scikit_learn():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(1)
    scores, positive = rng.integers(0, 5, 60).astype(float), rng.random(60) < 0.4
    assert np.isclose(auroc(scores, positive), roc_auc_score(positive, scores))
    assert np.isnan(auroc(scores, np.ones(60, bool)))


def test_never_is_less_urgent_than_late_and_probability_decides_between_nevers():
    late, never, less = (Forecast(0, p, 10, {0.5: left}, 0) for p, left in ((0.1, 1e6), (0.4, np.inf), (0.2, np.inf)))
    assert urgency(late) > urgency(never) > urgency(less)


def test_concordance_with_ties_and_censoring_is_that_counted_by_hand():
    """A and B grok at 200, C at 500; D was seen until 500 and E until 300. Known: A, B before C, D, E; C before D."""

    def log(grok, last):
        steps = list(range(0, last + 1, 100))
        came = [float(grok is not None and step >= grok) for step in steps]
        return {"step": steps, "train_accuracy": [1.0] * len(steps), "validation_accuracy": came}

    ends = [(200, 900), (200, 900), (500, 900), (None, 500), (None, 300)]
    cases = usable_cases([(RunSpec().with_seed(seed), log(*one)) for seed, one in enumerate(ends)])
    keys = [(-one, 0.0) for one in (1.0, 2.0, 2.0, 1.0, 9.0)]
    # A–C right, A–D tied, A–E right; B–C tied, B–D wrong, B–E right; C–D wrong
    assert concordance(cases, keys) == (4.0, 7)
