"""Where the runs of a watched group are heading: their forecasts, kept from one reading of the folder to the next."""

from collections.abc import Callable, Sequence
from math import nan
from statistics import fmean, median

from grokscope.cli.frames import Ahead
from grokscope.forecast import Fan, forecast_fans, run_prefix
from grokscope.runs.following import FollowedRun

__all__ = ["MOST_FORECAST", "Forecasts"]

MOST_FORECAST = 200  # runs of one group: they stand for the others
Curve = Callable[[Sequence[Sequence[tuple[int, float]]], int], tuple[float, ...]]


class Forecasts:
    """The forecasts of runs that train; those of a run that grew are continued."""

    def __init__(self, curve: Curve) -> None:
        self.curve = curve
        """What makes one curve of many runs, as for their accuracies."""
        self.fans: dict[str, tuple[int, Fan]] = {}

    def of_group(self, runs: Sequence[FollowedRun]) -> Ahead | None:
        """Where the runs of a group that have not ended are heading; None if all have, or were never evaluated."""
        open_runs = [run for run in runs if not run.is_finished and run.rows]
        fans = self._continued(open_runs[:: -(-len(open_runs) // MOST_FORECAST)] if open_runs else [])
        if not fans:
            return None
        ahead = [fan for fan in fans if fan.now.grokked is None]
        advice = [fan.advice for fan in fans if fan.advice.stops]
        series = [[(one.step, one.probability) for one in fan.forecasts] for fan in ahead]
        low, middle, high = (_median([fan.at_level(level)[-1] for fan in ahead]) for level in (0.1, 0.5, 0.9))
        return Ahead(
            runs=len(ahead),
            probability=fmean(fan.now.probability for fan in ahead) if ahead else nan,
            history=self.curve(series, max(fan.last for fan in fans)),
            low=low,
            middle=middle,
            high=high,
            outside=sum(not fan.now.is_inside for fan in ahead),
            stops=len(advice),
            saves=sum(one.saves for one in advice),
        )

    def _continued(self, runs: Sequence[FollowedRun]) -> list[Fan]:
        """The fans of runs; of those that have new evaluations what is new is forecast, all together."""
        changed = [run for run in runs if self.fans.get(run.name, (0,))[0] != len(run.rows)]
        known = [self._grown_from(run) for run in changed]
        prefixes = [run_prefix(run.spec, run.record.evaluations) for run in changed]
        lasts = [max(run.spec.training.steps, run.step) for run in changed]
        for run, fan in zip(changed, forecast_fans(prefixes, lasts, known), strict=True):
            self.fans[run.name] = (len(run.rows), fan)
        return [self.fans[run.name][1] for run in runs]

    def _grown_from(self, run: FollowedRun) -> Fan | None:
        """The run's former fan; None if it was rewound since, so that what followed is another run's."""
        rows, fan = self.fans.get(run.name, (0, None))
        return fan if rows < len(run.rows) else None


def _median(steps: Sequence[float]) -> float:
    return median(steps) if steps else nan
