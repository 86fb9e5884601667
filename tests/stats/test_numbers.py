"""Columns of numbers."""

import pytest

from grokscope.errors import InputError
from grokscope.stats import cluster_means, kaplan_meier


def test_columns_must_pair() -> None:
    with pytest.raises(InputError, match="equally long"):
        cluster_means([1, 2], ["a"])
    with pytest.raises(InputError, match="equally long"):
        kaplan_meier([1, 2], [True])
