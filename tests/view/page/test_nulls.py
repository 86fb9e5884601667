"""Null bands of FSD."""

from dataclasses import replace

import numpy as np
import pytest
from page_runs import synthetic_records

from grokscope.measures.fsd_null import NULL_DRAWS
from grokscope.measures.surrogates import untrained_null
from grokscope.runs import RunOutcome, RunRecord
from grokscope.specs import Architecture, RunSpec
from grokscope.view.page import ShownRun
from grokscope.view.page.nulls import null_bands


def test_untrained_networks_are_computed_for_the_runs_in_detail_alone() -> None:
    small = Architecture(layers=1, width=8, heads=1, mlp_width=64)
    specs = [RunSpec("add_mod7", architecture=small), RunSpec("add_mod11", architecture=small)]
    runs = [ShownRun(spec.task, RunRecord(spec, RunOutcome(), {}, {})) for spec in specs]
    assert null_bands(runs) == {}
    bands = null_bands(runs, [1])
    assert bands.keys() == {"1"}
    null = untrained_null(specs[1], draws=NULL_DRAWS)
    assert bands["1"]["high"] == pytest.approx(float(null.quantile(0.95)), abs=1e-6)
    assert bands["1"]["of"] == f"{NULL_DRAWS} untrained networks of this task and model"
    assert (
        null_bands([replace(runs[1], record=replace(runs[1].record, spec=replace(specs[1], model="mine")))], [0]) == {}
    )


def test_the_null_band_is_made_of_untrained_networks_where_there_are_enough() -> None:
    records = synthetic_records(20, evaluations=5, tasks=("S5",))
    bands = null_bands([ShownRun(str(i), record) for i, record in enumerate(records)])
    starts = [record.evaluations["fsd"][0] for record in records]
    assert bands["0"]["high"] == pytest.approx(np.quantile(starts, 0.95))
    assert bands["0"]["of"].startswith(f"{len(records)} untrained networks")
