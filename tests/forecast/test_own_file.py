from pathlib import Path

import numpy as np
import pytest

from grokscope.errors import InputError
from grokscope.forecast import Prefix
from grokscope.forecast.own_file import read_own_forecaster

RUNS = [Prefix(np.array([0, 100]), {})]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(text)
    return path


def test_pairs_and_forecasts_are_read(tmp_path: Path) -> None:
    found = read_own_forecaster(written(tmp_path, "TIER = 1\ndef predict(r, h): return [(0.25, {0.5: 10})]"))
    [one] = found.predict(RUNS, 300)
    assert (found.tier, one.tier, one.probability, one.median, one.step) == (1, 1, 0.25, 10, 100)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "needs a function predict"),
        ("import gone_module", "could not be run: ModuleNotFoundError"),
        ("TIER = 9\ndef predict(r, h): return []", "whole number from 0 to 5, got 9"),
        ("def predict(r, h): return []", "must answer for 1 runs, got 0"),
        ("def predict(r, h): return [0.5]", "must give .* for each run, got 0.5"),
        ("def predict(r, h): return [(2, {})]", "a probability must lie in"),
        ("def predict(r, h): 1 / 0", "failed: ZeroDivisionError"),
    ],
)
def test_rejects_what_is_no_forecaster(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        read_own_forecaster(written(tmp_path, text)).predict(RUNS, 300)
    with pytest.raises(InputError, match="there is no file"):
        read_own_forecaster(tmp_path / "gone.py")
