"""Columns of numbers."""

import math

import pytest

from grokscope.errors import InputError
from grokscope.stats import cluster_means, kaplan_meier, known, mean_known


def test_columns_must_pair() -> None:
    with pytest.raises(InputError, match="equally long"):
        cluster_means([1, 2], ["a"])
    with pytest.raises(InputError, match="equally long"):
        kaplan_meier([1, 2], [True])


def test_a_mean_is_over_what_is_known() -> None:
    assert known([1, math.nan, math.inf]) == [1.0, math.inf]
    assert mean_known([1, math.nan, 4]) == 2.5
    assert math.isnan(mean_known([math.nan]))
