"""The exact null of FSD is the quantile of drawn noise; series are empty where there are no runs."""

import pytest
import torch
from planted import EMPTY

from grokscope.measures.nulls import gaussian_null
from grokscope.studies.synchronization.readings import all_seeds, one_run
from grokscope.studies.synchronization.series import (
    curve,
    independent_level,
    independent_line,
    line,
    quartiles,
    seeds_line,
    untrained,
    untrained_band,
)
from grokscope.tasks import named_task


@pytest.mark.parametrize(("task", "neurons"), [("S5", 32), ("add_mod97", 48)])
def test_the_exact_null_is_the_quantile_of_drawn_noise(task: str, neurons: int) -> None:
    dimensions = torch.as_tensor(named_task(task).basis().modes.dimensions, dtype=torch.float64)
    drawn = gaussian_null(dimensions, neurons, resamples=1000).values
    level = independent_level(task, neurons)
    assert float((drawn > level + 1e-9).double().mean()) <= 0.05 + 0.02
    assert float((drawn >= level - 1e-9).double().mean()) >= 0.05 - 0.02


def test_series_without_runs_are_empty() -> None:
    run, runs = one_run("add_mod97_s42"), all_seeds("add_mod97")
    found = [
        line(EMPTY, curve(run, "fsd"), 1000, "one", "fsd"),
        seeds_line(EMPTY, quartiles(runs, "fsd"), 1000, "all", "fsd"),
        untrained_band(EMPTY, untrained(runs, "fsd"), 1000),
        *independent_line(EMPTY, run),
    ]
    assert [len(one) for one in found] == [0, 0, 0]
