"""Runs whose labels have no structure never grok, and a forecaster that has seen none of them comes to say so."""

from pathlib import Path

import numpy as np

from grokscope.forecast.benchmark import fit_baseline
from grokscope.forecast.refitting import packed_cases

FILES = sorted((Path(__file__).parents[2] / "results" / "synchronization").glob("*.records.gz"))


def test_the_probability_of_grokking_falls_towards_nothing() -> None:
    known = [case for case in packed_cases(FILES[0]) if not case.cannot_grok]
    shuffled = [case for file in FILES for case in packed_cases(file) if case.cannot_grok]
    forecaster = fit_baseline("hazard-5", known)
    means = []
    for step in (1000, 6000, 14_000):
        found = forecaster.predict([case.run.until(step) for case in shuffled], 2000)
        means.append(float(np.mean([one.probability for one in found])))
    assert len(shuffled) >= 16
    assert means == sorted(means, reverse=True)
    assert means[-1] < 0.1
