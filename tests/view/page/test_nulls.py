"""Null bands of FSD."""

import numpy as np
import pytest
from page_runs import synthetic_records

from grokscope.view.page import ShownRun
from grokscope.view.page.nulls import null_bands


def test_the_null_band_of_independent_neurons_is_that_of_drawn_ones() -> None:
    from grokscope.measures.nulls import uniform_null

    record = next(record for record in synthetic_records(1))
    (band,) = null_bands([ShownRun("one", record)]).values()
    drawn = uniform_null(512, 48, 4000)
    assert [band["low"], band["high"]] == pytest.approx([float(end) for end in drawn.band], abs=1.5 / 512)


def test_the_null_band_is_made_of_untrained_networks_where_there_are_enough() -> None:
    records = synthetic_records(20, evaluations=5, tasks=("S5",))
    bands = null_bands([ShownRun(str(i), record) for i, record in enumerate(records)])
    starts = [record.evaluations["fsd"][0] for record in records]
    assert bands["0"]["high"] == pytest.approx(np.quantile(starts, 0.95))
    assert bands["0"]["of"].startswith(f"{len(records)} untrained networks")
