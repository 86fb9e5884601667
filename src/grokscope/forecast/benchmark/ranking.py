"""Which run groks sooner, and which at all: concordance and AUROC within cells and across them."""

from collections.abc import Sequence

import numpy as np

from grokscope.forecast.cases import Case
from grokscope.forecast.forecast import Forecast
from grokscope.shapes import Float

__all__ = ["auroc", "concordance", "urgency"]


def urgency(forecast: Forecast) -> tuple[float, float]:
    """What runs are ranked by: fewer steps left until half of the probability is more urgent, then the probability.

    >>> urgency(Forecast(0, 0.4, 1000, {0.5: 700.0}, tier=1))
    (-700.0, 0.4)
    """
    return -forecast.median, forecast.probability


def concordance(cases: Sequence[Case], keys: Sequence[tuple[float, float]]) -> tuple[float, int]:
    """Pairs of runs ranked as they grokked (ties count half), and all pairs whose order is known.

    Of two runs the first to grok is known if it did so before the other grokked or ended.

    >>> from grokscope.forecast.cases import usable_cases
    >>> from grokscope.specs import RunSpec
    >>> def log(grok):
    ...     accuracy = [float(step >= grok) for step in (0, 100, 200, 300)]
    ...     return {"step": [0, 100, 200, 300], "train_accuracy": [1.0] * 4, "validation_accuracy": accuracy}
    >>> cases = usable_cases([(RunSpec().with_seed(grok), log(grok)) for grok in (100, 200, 900)])
    >>> concordance(cases, [(-100.0, 0.0), (-200.0, 0.0), (-150.0, 0.0)])
    (2.0, 3)
    """
    ends = np.array([case.end for case in cases], dtype=float)
    came = np.array([case.grokked is not None for case in cases])
    ranks = np.array([sorted(set(keys)).index(key) for key in keys]) if keys else np.zeros(0)
    sooner = (ends[:, None] < ends) | ((ends[:, None] == ends) & ~came)
    known = came[:, None] & sooner & ~np.eye(len(cases), dtype=bool)
    right = (ranks[:, None] > ranks) + 0.5 * (ranks[:, None] == ranks)
    return float((right * known).sum()), int(known.sum())


def auroc(scores: Float[np.ndarray, " runs"], positive: np.ndarray) -> float:
    """The probability that a positive run has the higher score; NaN where all runs are of one kind.

    >>> auroc(np.array([0.9, 0.2, 0.5]), np.array([True, False, True]))
    1.0
    """
    above, below = scores[positive], scores[~positive]
    if not len(above) or not len(below):
        return float("nan")
    return float(np.mean((above[:, None] > below) + 0.5 * (above[:, None] == below)))
