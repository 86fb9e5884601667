from math import inf

import pytest

from grokscope.errors import InputError
from grokscope.forecast import Forecast, Forecaster, load_forecaster


@pytest.mark.parametrize(
    ("probability", "quantiles", "words"),
    [
        (1.2, {}, r"\[0, 1\]"),
        (float("nan"), {}, r"\[0, 1\]"),
        (0.5, {1.0: 3.0}, r"\(0, 1\)"),
        (0.5, {0.5: -1.0}, "at least 0"),
        (0.5, {0.5: float("nan")}, "at least 0"),
        (0.5, {0.1: 3.0, 0.9: 2.0}, "must not fall"),
    ],
)
def test_rejects_what_is_no_forecast(probability, quantiles, words):
    with pytest.raises(InputError, match=words):
        Forecast(100, probability, 1000, quantiles, tier=1)


def test_the_sentence_says_never_and_why_not():
    never = Forecast(100, 0.001, 1000, {0.1: 500.0, 0.5: 900.0, 0.9: inf}, tier=1, outside=("λ = 9",))
    assert "below 1 %" in never.sentence
    assert "600 to never" in never.sentence
    assert never.sentence.endswith("λ = 9")
    assert not never.is_inside
    assert Forecast(100, 1.0, 1000, {}, 5, grokked=50).sentence == "grokked at step 50"
    assert "half of such runs by step 1,000 (80 %: 600 to never)" in never.sentence
    assert "half" not in Forecast(100, 0.0, 1000, {0.5: inf}, 5).sentence


def test_what_is_loaded_is_a_forecaster():
    assert isinstance(load_forecaster(), Forecaster)
