"""Thresholds are the most lenient that a rate allows; what is measured at milestones alone cannot warn."""

from dataclasses import replace
from math import nan

import numpy as np
import pytest
from planted import evidence

from grokscope.studies.synchronization.alarms import CANDIDATES, matched_threshold, trace


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.1, 0.3])
def test_a_matched_threshold_is_the_most_lenient(rate: float) -> None:
    generator = np.random.default_rng(3)
    for size in (1, 2, 10, 20, 30, 60):
        peaks = generator.integers(0, 15, size).astype(float)
        found = matched_threshold(peaks.tolist(), rate)
        assert (peaks > found).sum() <= rate * size + 1e-9
        lower = peaks[peaks < found]
        assert (peaks >= found).sum() > rate * size - 1e-9 or len(lower) == 0
        assert (peaks > np.nextafter(found, -np.inf)).sum() > rate * size + 1e-9


def test_what_is_measured_at_milestones_alone_is_no_rival() -> None:
    name = "add_mod97_s42"
    record = evidence("base", {name: {"grok": 3000, "sync": 2000, "fsd_2": 2000}}).records["base"][name]
    candidate = next(one for one in CANDIDATES if one.column == "fsd_2")
    assert trace(record, candidate) is not None
    values = record.checkpoints["fsd_2"]
    at_the_end = [*([nan] * (len(values) - 1)), values[-1]]
    assert trace(replace(record, checkpoints=record.checkpoints | {"fsd_2": at_the_end}), candidate) is None


def test_a_trace_is_cut_and_crosses_strictly_above_a_threshold() -> None:
    name = "add_mod97_s42"
    record = evidence("base", {name: {"grok": 3000, "sync": 2000}}).records["base"][name]
    found = trace(record, next(one for one in CANDIDATES if one.column == "fsd"))
    assert found is not None
    assert (found.peak, found.crossing(0.1), found.crossing(0.9)) == (0.9, 2000, None)
    cut = found.until(1900)
    assert cut is not None
    assert (cut.steps[-1], cut.crossing(0.1), found.until(-1)) == (1900, None, None)
