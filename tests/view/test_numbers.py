from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope.stats import Estimate
from grokscope.view.numbers import format_estimate, format_number, format_percent, format_range, format_step


@given(st.floats(-1e9, 1e9), st.integers(0, 6), st.booleans())
def test_a_formatted_number_is_that_number_rounded(value: float, digits: int, signed: bool) -> None:
    text = format_number(value, digits, signed=signed).replace(",", "").replace("−", "-")
    assert float(text) == pytest.approx(round(value, digits), abs=1.01 * 10**-digits / 2 + 1e-6)
    assert text.startswith("+") <= (signed and value > 0)


@pytest.mark.parametrize("format_value", [format_number, format_percent])
def test_what_is_no_number_is_a_word(format_value: object) -> None:
    assert [format_value(value) for value in (None, inf, nan)] == ["never", "never", "undefined"]  # type: ignore[operator]
    assert format_step(None) == "never"


def test_an_open_interval_none_and_a_range() -> None:
    assert format_estimate(Estimate(0.5, 0.2, inf, 3), 1) == "0.5 [0.2, never]"
    assert format_estimate(Estimate(0.5, nan, nan, 3), 1) == "0.5"
    assert format_range([7]) == "7"
