"""Runs whose labels have no structure never grok, and a forecaster that has seen none of them comes to say so."""

from pathlib import Path

import numpy as np

from grokscope.forecast.benchmark import fit_baseline
from grokscope.forecast.cases import usable_cases
from grokscope.studies.sources import every_record

STORED = Path(__file__).parents[2] / "results" / "synchronization"


def test_the_probability_of_grokking_falls_towards_nothing() -> None:
    cases = usable_cases([(record.spec, record.evaluations) for record in every_record(STORED)])
    shuffled = [case for case in cases if case.cannot_grok]
    forecaster = fit_baseline("hazard-5", [case for case in cases if not case.cannot_grok][::3])
    means = []
    for step in (1000, 6000, 14_000):
        found = forecaster.predict([case.run.until(step) for case in shuffled], 2000)
        means.append(float(np.mean([one.probability for one in found])))
    assert len(shuffled) >= 16
    assert means == sorted(means, reverse=True)
    assert means[-1] < 0.1
