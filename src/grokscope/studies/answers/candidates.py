"""Measures that may warn of grokking, and one run's values of one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isnan, nan, nextafter

from grokscope.runs.records import RunRecord
from grokscope.specs import ReadingSpec
from grokscope.timeline import first_step

__all__ = ["CANDIDATES", "LOGGED", "Candidate", "Trace", "trace_of"]

RIVAL = "Validation accuracy"


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
    """Whether it is read at the checkpoints, or at every look of the log."""


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
MEASURED = tuple(
    Candidate(f"{title}, checkpoints", column, rises, at_checkpoints=True)
    for title, column, rises in (
        (RIVAL, "validation_accuracy", True),
        ("FSD", "fsd", True),
        ("FSD_2", "fsd_2", True),
        ("FSD_3", "fsd_3", True),
        ("Share of rank-1 neurons", "rank_one_share", True),
        ("R² of each neuron's best mode", "r2_rank_1", True),
        ("Restricted loss of the paper", "paper_restricted", False),
        ("Restricted loss of Nanda et al.", "trig", False),
        ("Logit share of the modes", "logit_share", True),
        ("FSD of the logit map", "logit_map_fsd", True),
        ("FourierKAN R², closed form", "kan_r2", True),
        ("FSD in random orders of the answers (control)", "control_mean", True),
    )
)
CANDIDATES = LOGGED + MEASURED


@dataclass(frozen=True, eq=False)
class Trace:
    """One run's values of one measure, signed so that it warns by rising."""

    seed: int
    """Of its split: odd ones judge, even ones choose."""
    steps: list[int]
    """Looks at which it is known."""
    values: list[float]
    """What was seen there."""
    grokked: int | None
    """The first look, of those at which the measure is read, at which the run had grokked."""

    @cached_property
    def peak(self) -> float:
        """Its highest value."""
        return max(self.values)

    def until(self, step: int) -> "Trace | None":
        """Its looks up to a step; None without any."""
        kept = [(at, value) for at, value in zip(self.steps, self.values, strict=True) if at <= step]
        return replace(self, steps=[at for at, _ in kept], values=[value for _, value in kept]) if kept else None

    def crossing(self, threshold: float) -> int | None:
        """The first look beyond the threshold."""
        return first_step(self.steps, self.values, nextafter(threshold, inf)) if self.peak > threshold else None


def trace_of(record: RunRecord, candidate: Candidate) -> Trace | None:
    """The measure's values in a run; None where it was not measured, or at a few milestones only: it cannot warn."""
    columns: Mapping[str, Sequence[float | int]] = record.evaluations
    columns = _at_checkpoints(record) if candidate.at_checkpoints else columns
    sign = 1.0 if candidate.rises else -1.0
    rows = zip(columns.get("step", []), columns.get(candidate.column, []), strict=False)
    known = [(int(step), sign * value) for step, value in rows if not isnan(value)]
    if not known or (candidate.at_checkpoints and 2 * len(known) < len(columns["step"])):
        return None
    steps, values = ([row[i] for row in known] for i in (0, 1))
    grokked = record.timeline.grokked
    if candidate.at_checkpoints and grokked is not None:
        looks = [int(step) for step in columns["step"]]
        grokked = first_step(looks, columns["validation_accuracy"], ReadingSpec().grokked)
    return Trace(record.spec.seeds.split, [int(step) for step in steps], values, grokked)


def _at_checkpoints(record: RunRecord) -> Mapping[str, Sequence[float | int]]:
    """What was measured at the checkpoints, with the log's validation accuracy there."""
    seen = dict(zip(record.evaluations["step"], record.evaluations["validation_accuracy"], strict=True))
    accuracy = [seen.get(step, nan) for step in record.checkpoints.get("step", [])]
    return record.checkpoints | {"validation_accuracy": accuracy}
