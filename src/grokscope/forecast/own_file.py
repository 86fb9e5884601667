"""A forecaster in somebody's own file: a function `predict(prefixes, horizon)`.

It returns for each run a `Forecast`, or a probability with a mapping from levels to steps left. The file may say its
`TIER`, the highest index into `TIERS` that it reads; 5 if it does not. Its `ALARMS` say at which probability an alarm
is raised, for each share of false alarms that is scored: `{0.01: 0.9, 0.05: 0.8, 0.1: 0.6}`.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from grokscope.errors import InputError, require, shown
from grokscope.files import named, read_given
from grokscope.forecast.forecast import TIERS, Forecast
from grokscope.forecast.prefix import Prefix

__all__ = ["OwnForecaster", "own_forecaster", "read_own_forecaster"]


@dataclass(frozen=True)
class OwnForecaster:
    """What a file's function says."""

    name: str
    """The file's name."""
    tier: int
    """What it says that it reads."""
    function: Callable[[Sequence[Prefix], int], Sequence[Any]]
    """Its `predict`."""
    alarms: Mapping[float, float] = field(default_factory=dict)
    """Its `ALARMS`; empty if it has none."""

    def predict(self, prefixes: Sequence[Prefix], horizon: int) -> list[Forecast]:
        """Its forecasts; what it raises, and answers of another form, are one sentence."""
        steps = [run.step for run in prefixes]  # before they are in somebody else's hands
        try:
            found = list(self.function([*prefixes], horizon))
        except InputError:
            raise
        except (Exception, SystemExit) as error:  # somebody else's code
            raise InputError(f"predict of {self.name} failed: {type(error).__name__}: {error}") from error
        require(len(found) == len(steps), f"predict of {self.name} must answer for {len(steps)} runs", len(found))
        return [self._forecast(one, step, horizon) for one, step in zip(found, steps, strict=True)]

    def _forecast(self, one: Any, step: int, horizon: int) -> Forecast:
        """What was answered, as plain numbers: neither the step nor the horizon is the forecaster's to choose."""
        try:
            probability, quantiles = (one.probability, one.quantiles) if isinstance(one, Forecast) else one
            levels = {float(level): float(left) for level, left in dict(quantiles).items()}
            return Forecast(step, float(probability), horizon, levels, self.tier)
        except Exception as error:  # somebody else's numbers
            rule = f"predict of {self.name} must give (probability, {{level: steps left}}) for each run"
            raise InputError(f"{rule}, got {shown(one)}: {error}") from None


def read_own_forecaster(path: Path) -> OwnForecaster:
    """The forecaster in a file; the file is run.

    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> with TemporaryDirectory() as folder:
    ...     text = "def predict(runs, horizon): return [(0.5, {0.5: 99}) for _ in runs]"
    ...     _ = Path(folder, "mine.py").write_text(text)
    ...     read_own_forecaster(Path(folder, "mine.py")).predict([Prefix(np.array([0]), {})], 10)[0].median
    99.0
    """
    require(path.is_file(), f"there is no file {named(path)}")
    return own_forecaster(read_given(path, f"the forecaster {named(path)}").decode(errors="replace"), path)


def own_forecaster(source: str, path: Path) -> OwnForecaster:
    """The forecaster that a text defines, run as if it were this file.

    >>> own_forecaster("TIER = 1; predict = lambda runs, horizon: []", Path("mine.py")).tier
    1
    """
    require(path.suffix == ".py", f"{named(path)} must be a file of Python code, FILE.py")
    module = ModuleType(f"own_forecaster_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where dataclasses look for it
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:  # somebody else's code
        raise InputError(f"{named(path)} could not be run: {type(error).__name__}: {error}") from error
    function, tier = getattr(module, "predict", None), getattr(module, "TIER", len(TIERS) - 1)
    if not callable(function):
        raise InputError(f"{named(path)} needs a function predict(prefixes, horizon)")
    is_tier = isinstance(tier, int) and 0 <= tier < len(TIERS)
    require(is_tier, f"TIER of {named(path)} must be a whole number from 0 to {len(TIERS) - 1}", tier)
    return OwnForecaster(path.name, tier, function, _alarms(getattr(module, "ALARMS", {}), path))


def _alarms(given: Any, path: Path) -> dict[float, float]:
    try:
        found = {float(level): float(threshold) for level, threshold in dict(given).items()}
    except (TypeError, ValueError):
        found = {-1.0: 0.0}
    is_known = all(0 < level < 1 and threshold >= 0 for level, threshold in found.items())
    require(is_known, f"ALARMS of {named(path)} must be {{share of false alarms: probability}}", given)
    return found
