"""What a log says of a run: its events, how it ended, and where it is heading. Nothing is trained again."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

import numpy as np

from grokscope.errors import InputError
from grokscope.forecast import Forecast, Prefix, doubts_of, forecast_runs
from grokscope.runs.foreign_logs import ForeignLog
from grokscope.runs.outcome import describe_ending, stable_columns
from grokscope.timeline import Outcome, Stability, first_step, judged_columns, outcome, stability
from grokscope.view.outcomes import describe_stability

__all__ = ["Judgment", "judge_log"]

LATER = "Later its validation accuracy fell below one half."
OPTIONS = {
    "λ": "--weight-decay",
    "η": "--learning-rate",
    "the number of classes": "--classes",
}  # that give what a forecast needs and logs often lack


@dataclass(frozen=True)
class Judgment:
    """One run, judged by its log."""

    name: str
    """What the file calls it."""
    first: int
    """The first step with a value."""
    last: int
    """The last one."""
    outcome: Outcome
    """How it stands at its last row."""
    memorized: int | None
    """The first step with a training accuracy ≥ 0.99; None also where that was not logged."""
    grokked: int | None
    """The first step with a validation accuracy ≥ 0.95."""
    stable: Stability
    """Whether it stayed so for 2,000 steps, with dips."""
    forecast: Forecast | None
    """Where it is heading; None of a run that has grokked or failed, and where a forecast would be a guess."""
    why_no_forecast: str
    """Why there is none of a run that has neither grokked nor failed; else empty."""
    notes: tuple[str, ...]
    """What was decided when the log was read, and what it lacks."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The judgment as a person reads it."""
        known = f"{self.name}, steps {self.first:,} to {self.last:,}."
        fallen = {Outcome.DIVERGED: "Its loss stopped being a finite number.", Outcome.UNSTABLE_AFTER: LATER}
        memorized = "It has not memorised its training data."
        if any(note.startswith("no training accuracy") for note in self.notes):
            memorized = ""
        elif self.memorized is not None:
            memorized = f"It memorised its training data at step {self.memorized:,}."
        grokked = "It has not grokked."
        if self.grokked is not None:
            grokked = f"It grokked at step {self.grokked:,}. {describe_stability(self.stable)}"
        forecast = f"No forecast: {self.why_no_forecast}." if self.why_no_forecast else ""
        if self.forecast is not None:
            forecast = f"Forecast: {self.forecast.sentence}. Basis: {self.forecast.basis}."
        notes = f"Read: {'; '.join(self.notes)}." if self.notes else ""
        parts = (known, memorized, grokked, fallen.get(self.outcome, ""), forecast, notes)
        return tuple(part for part in parts if part)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; what never comes is null."""
        ahead, facts = self.forecast, self.stable.to_dict()
        known = stable_columns(facts)
        return {
            "run": self.name,
            "first_step": self.first,
            "last_step": self.last,
            "outcome": describe_ending(self.outcome.name.lower(), self.memorized),
            "memorized": self.memorized,
            "grokked": self.grokked,
            "stable": {**facts, "step": known["stable"], "stable_from": known["stable_from"]},
            "forecast": None if ahead is None else ahead.to_dict(),
            "why_no_forecast": self.why_no_forecast or None,
            "notes": [*self.notes],
        }


def judge_log(log: ForeignLog, configuration: Mapping[str, float] | None = None, horizon: int = 10_000) -> Judgment:
    """The events of a run, its outcome and a forecast for the next `horizon` steps.

    `configuration` gives values of `forecast.CONFIGURATION` that the log does not have, such as the weight decay.

    >>> log = ForeignLog("mine", {"step": [0, 500, 2500], "validation_accuracy": [0.0, 0.97, 1.0]})
    >>> judge_log(log).grokked, judge_log(log).stable.status.name
    (500, 'STABLE')
    """
    columns = judged_columns(log.columns)
    steps = [int(step) for step in columns["step"]]
    if "validation_accuracy" not in columns:
        raise InputError(
            f"the log of {log.name} has no validation accuracy, by which grokking is defined; say which column is it "
            f"with --columns validation_accuracy=NAME; it has {', '.join(columns)}"
        )
    validation, train = columns["validation_accuracy"], columns.get("train_accuracy", [nan] * len(steps))
    notes = [*log.notes]
    if all(map(isnan, train)):
        notes.append("no training accuracy, so whether it memorised is not known")
    grokked = first_step(steps, validation, 0.95)
    ending = outcome(steps, _carried(train), [*validation], log.failed_at)
    run = Prefix(
        np.array(steps), {name: np.array(values, float) for name, values in columns.items() if name != "step"},
        _configuration(columns, configuration or {}),
    )  # fmt: skip
    ahead, why = None, ""
    if grokked is None and ending is not Outcome.DIVERGED:
        why = _why_no_forecast(run)
        [ahead] = [None] if why else forecast_runs([run], horizon)
    return Judgment(
        log.name, steps[0], steps[-1], ending, first_step(steps, train, 0.99), grokked,
        stability(steps, validation, failed_at=log.failed_at), ahead, why, tuple(notes),
    )  # fmt: skip


def _carried(train: list[float]) -> list[float]:
    """Training accuracies with the last one carried to the last row, where only others were logged.

    Where none was logged, the run counts as one that has learnt: that it has not is not known.
    """
    known = [value for value in train if not isnan(value)]
    return [*train[:-1], known[-1] if known else 1.0]


def _why_no_forecast(run: Prefix) -> str:
    """What is not known of a run and would be needed, or in what it differs from all runs that were fitted to."""
    missing, unlike = doubts_of(run)
    options = [OPTIONS[name] for name in missing if name in OPTIONS]
    named = " and ".join(filter(None, [", ".join(missing[:-1]), *missing[-1:]]))
    needed = f"it needs {named}, which the log does not have" if missing else ""
    listed = " and ".join(filter(None, [", ".join(options[:-1]), *options[-1:]]))
    given = f" (give {listed})" if options else ""
    return "; ".join(filter(None, [needed + given, *unlike]))


def _configuration(columns: Mapping[str, Any], given: Mapping[str, float]) -> dict[str, float]:
    """What is given, and λ and η as the log first has them."""
    found = {}
    for name in ("weight_decay", "learning_rate"):
        logged = [value for value in columns.get(name, ()) if not isnan(value)]
        if logged:
            found[name] = float(logged[0])
    return found | dict(given)
