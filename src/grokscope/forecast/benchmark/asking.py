"""All questions to a forecaster, in the order of their steps.

Each run is asked about once at a step, and about no step after a later one. So even who remembered what it was shown
would know of no run what came later, when it answers.
"""

from collections.abc import Iterable, Mapping
from secrets import SystemRandom

from grokscope.errors import require
from grokscope.forecast.benchmark.causal import is_same, predict_at
from grokscope.forecast.cases import Case
from grokscope.forecast.forecast import Forecast, Forecaster
from grokscope.forecast.hazard import HazardForecaster

__all__ = ["HORIZON", "Answers", "Question", "ask", "due", "regular_step"]

HORIZON = 2000
"""Steps ahead of the probabilities that are scored; the same for all runs, since it is shown to the forecaster."""
ASKED_AGAIN = 30  # questions, each by itself
FINE, COARSE, CHANGE = 100, 200, 4000  # steps between questions, up to a step and beyond it

Question = tuple[Case, int]
Answers = Mapping[Question, Forecast]


def regular_step(step: float | int) -> int:
    """The last step, at or before this one, at which questions are asked: a multiple of 100, beyond 4,000 of 200.

    Packed curves keep an evaluation between these only beside an event. Who was asked there would know of the event.

    >>> [regular_step(step) for step in (20, 3999, 4350, 4400)]
    [100, 3900, 4200, 4400]
    """
    every = FINE if step <= CHANGE else COARSE
    return max(int(step) // every * every, FINE)


def due(case: Case, step: int) -> bool:
    """Whether a run has begun, and has neither grokked nor ended, by a step."""
    return int(case.run.steps[0]) <= step < case.end


def ask(forecaster: Forecaster, questions: Iterable[Question]) -> Answers:
    """The answers; those of one step come in one batch, and some questions are put again by themselves.

    >>> from grokscope.forecast.clock import ClockForecaster
    >>> ask(ClockForecaster(), [])
    {}
    """
    by_step: dict[int, dict[Case, None]] = {}
    for case, step in questions:
        by_step.setdefault(step, {})[case] = None
    found: dict[Question, Forecast] = {}
    for step in sorted(by_step):
        here = [*by_step[step]]
        if isinstance(forecaster, HazardForecaster):  # known to read nothing but the signals of a prefix
            answers = forecaster.predict_known(here, step, HORIZON)
        else:
            answers = predict_at(forecaster, here, step, HORIZON)
        found |= {(case, step): one for case, one in zip(here, answers, strict=True)}
    if not isinstance(forecaster, HazardForecaster):
        _ask_again(forecaster, found)
    _require_same_levels(forecaster.name, found.values())
    return found


def _ask_again(forecaster: Forecaster, found: Answers) -> None:
    """In any order: who remembers what it was shown since answers otherwise."""
    for case, step in SystemRandom().sample([*found], min(ASKED_AGAIN, len(found))):
        [now] = predict_at(forecaster, [case], step, HORIZON)
        rule = f"{forecaster.name} forecasts a run otherwise when it is asked again; it may remember nothing"
        require(is_same(now, found[case, step]), rule)


def _require_same_levels(name: str, found: Iterable[Forecast]) -> None:
    """Who gives an interval for some runs alone would choose the runs that it is scored on."""
    levels = sorted({tuple(sorted(one.quantiles)) for one in found})
    require(len(levels) < 2, f"{name} must give quantiles at the same levels for every run", levels)
