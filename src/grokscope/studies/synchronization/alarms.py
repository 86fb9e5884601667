"""Measures that may warn of grokking: one run's values of one, thresholds, and the alarms they raise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isnan, nan, nextafter

from grokscope.runs.records import RunRecord
from grokscope.specs import ReadingSpec
from grokscope.timeline import Lead, first_step, lead

__all__ = ["CANDIDATES", "LOGGED", "Candidate", "Reading", "Trace", "matched_threshold", "trace"]


@dataclass(frozen=True)
class Candidate:
    """A measure that may warn."""

    title: str
    """What a row calls it."""
    column: str
    """Its column in the records."""
    rises: bool = True
    """Whether it warns by rising above a threshold, or by falling below."""
    at_checkpoints: bool = False
    """Whether it is read at the checkpoints, or at every evaluation."""


RIVAL = "Validation accuracy"
LOGGED = (
    Candidate(RIVAL, "validation_accuracy"),
    Candidate("FSD", "fsd"),
    Candidate("Median Fourier rank", "rank", rises=False),
    Candidate("Answer share", "answer_share"),
    Candidate("Weight norm", "norm", rises=False),
    Candidate("Train accuracy", "train_accuracy"),
    Candidate("Train loss", "train_loss", rises=False),
    Candidate("Validation loss", "validation_loss", rises=False),
)
MEASURED = (
    Candidate(RIVAL, "validation_accuracy"),
    Candidate("FSD", "fsd"),
    Candidate("FSD_2", "fsd_2"),
    Candidate("FSD_3", "fsd_3"),
    Candidate("Share of rank-1 neurons", "rank_one_share"),
    Candidate("R² of each neuron's best mode", "r2_rank_1"),
    Candidate("Restricted loss of the paper", "paper_restricted", rises=False),
    Candidate("Restricted loss of Nanda et al.", "trig", rises=False),
    Candidate("Logit share of the modes", "logit_share"),
    Candidate("FSD of the logit map", "logit_map_fsd"),
    Candidate("FourierKAN R², closed form", "kan_r2"),
    Candidate("FSD in random orders of the answers (control)", "control_mean"),
)
CANDIDATES = LOGGED + tuple(replace(one, title=f"{one.title}, checkpoints", at_checkpoints=True) for one in MEASURED)


@dataclass(frozen=True, eq=False)
class Trace:
    """One run's values of one measure, signed so that it warns by rising."""

    seed: int
    """Of its split: thresholds are chosen on even ones and judged on odd ones."""
    steps: list[int]
    """Evaluations at which it is known."""
    values: list[float]
    """Its value there."""
    grokked: int | None
    """The first evaluation, of those at which the measure is read, at which the run had grokked."""

    @cached_property
    def peak(self) -> float:
        """Its highest value."""
        return max(self.values)

    def until(self, step: int | None) -> "Trace | None":
        """Its evaluations up to a step, or all; None without any."""
        kept = [(at, value) for at, value in zip(self.steps, self.values, strict=True) if step is None or at <= step]
        return replace(self, steps=[at for at, _ in kept], values=[value for _, value in kept]) if kept else None

    def crossing(self, threshold: float) -> int | None:
        """The first evaluation beyond the threshold."""
        return first_step(self.steps, self.values, nextafter(threshold, inf)) if self.peak > threshold else None


def trace(record: RunRecord, candidate: Candidate) -> Trace | None:
    """The measure's values in a run; None where it was not measured, or at a few milestones only: it cannot warn."""
    columns: Mapping[str, Sequence[float | int]] = record.evaluations
    if candidate.at_checkpoints:
        steps = [int(step) for step in record.checkpoints.get("step", [])]
        accuracy = dict(zip(columns["step"], columns["validation_accuracy"], strict=True))
        columns = record.checkpoints | {"validation_accuracy": [accuracy.get(step, nan) for step in steps]}
    sign = 1.0 if candidate.rises else -1.0
    rows = zip(columns.get("step", []), columns.get(candidate.column, []), strict=False)
    known = [(int(step), sign * value) for step, value in rows if not isnan(value)]
    if not known or (candidate.at_checkpoints and 2 * len(known) < len(columns["step"])):
        return None
    grokked = record.timeline.grokked
    if candidate.at_checkpoints and grokked is not None:
        grokked = first_step(steps, columns["validation_accuracy"], ReadingSpec().grokked)
    return Trace(record.spec.seeds.split, [step for step, _ in known], [value for _, value in known], grokked)


def matched_threshold(peaks: Sequence[float], rate: float) -> float:
    """The most lenient threshold that at most this share of the runs ever exceeds, from their highest values.

    Of n runs ⌊rate · n⌋ may cross, so it is the highest value of the first that may not. NaN without runs.

    >>> matched_threshold([0.1, 0.9, 0.4, 0.2], rate=0.25)
    0.4
    """
    if not peaks:
        return nan
    allowed = int(rate * len(peaks) + 1e-9)  # 0.1 · 30 is 3, whatever its last bit
    return sorted(peaks, reverse=True)[min(allowed, len(peaks) - 1)]


@dataclass(frozen=True, eq=False)
class Reading:
    """One measure in all runs, and the threshold for one rate of false alarms."""

    candidate: Candidate
    """The measure."""
    rate: float
    """Share of false alarms allowed."""
    chosen_on: list[Trace]
    """Runs that did not grok, by which the threshold is chosen."""
    judged_on: list[Trace]
    """Runs that did not grok, of which false alarms are counted."""
    grokked: dict[str, Trace]
    """Runs that grokked, by content hash."""
    until: int | None
    """The last step at which runs that did not grok are evaluated; None for their whole length."""

    @cached_property
    def threshold(self) -> float:
        """Beyond it is an alarm; NaN where no run is known that did not grok."""
        return matched_threshold([run.peak for run in self.chosen_on], self.rate)

    @cached_property
    def crossings(self) -> dict[str, int | None]:
        """First alarm of each grokked run; None where there was none."""
        return {name: run.crossing(self.threshold) for name, run in self.grokked.items()}

    @property
    def leads(self) -> list[Lead]:
        """How each alarm stands to grokking."""
        return [lead(run.grokked, self.crossings[name], run.steps[-1]) for name, run in self.grokked.items()]

    def earlier(self, rival: "Reading") -> list[int]:
        """1 for each grokked run in which this alarm comes first, −1 where the rival's does, 0 for neither."""
        if self is rival or not self.chosen_on or not rival.chosen_on:
            return []
        shared = [name for name in self.crossings if name in rival.crossings]
        own, other = (
            [inf if (step := found.crossings[name]) is None else step for name in shared] for found in (self, rival)
        )
        return [int(first < second) - int(first > second) for first, second in zip(own, other, strict=True)]
