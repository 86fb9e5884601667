"""Which measure warns of grokking if all may raise false alarms equally often."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, nan

from grokscope.runs.records import RunRecord
from grokscope.specs import Architecture, Initialization, RunSpec
from grokscope.stats import sign_test
from grokscope.studies.answers.candidates import CANDIDATES, LOGGED, Candidate, Trace, trace_of
from grokscope.studies.answers.reading import adjusted, arm_of, counted, said
from grokscope.studies.synchronization.experiments import STUDIES
from grokscope.studies.evidence import Evidence
from grokscope.studies.tables.reading import pooled_leads, precursor_share
from grokscope.timeline import Lead, lead
from grokscope.view.table import Cell, Column, Row, Table, text

__all__ = ["ans_false_alarms", "false_alarms_sentence", "matched_threshold"]

TASK = "add_mod97"
RATES = (0.05, 0.0, 0.10)  # share of the runs that do not grok in which a measure may cross; the first is the answer's
ENOUGH = 10  # runs that did not grok, in each half, for thresholds to be judged on seeds they were not chosen on
MODEL = (Architecture(), Initialization())
ABSENT = "not measured"
NO_NEGATIVES = "no runs that did not grok"


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
    """Runs that did not grok, of which false alarms are told."""
    grokked: dict[str, Trace]
    """Runs that grokked, by content hash."""
    until: int | None = None
    """The last step at which runs that did not grok are looked at; None for their whole length."""

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
        """How each stands to grokking."""
        return [lead(run.grokked, self.crossings[name], run.steps[-1]) for name, run in self.grokked.items()]

    def while_others_grok(self) -> "Reading":
        """The same with runs that did not grok looked at no longer than until the last of the others had grokked."""
        until = max((run.grokked for run in self.grokked.values() if run.grokked is not None), default=None)
        if until is None:
            return self
        chosen, judged = (
            [cut for run in runs if (cut := run.until(until))] for runs in (self.chosen_on, self.judged_on)
        )
        same = self.judged_on is self.chosen_on
        return replace(self, chosen_on=chosen, judged_on=chosen if same else judged, until=until)


def matched_threshold(peaks: Sequence[float], rate: float) -> float:
    """The most lenient threshold beyond which at most this share of the runs ever comes, from their highest values.

    Of n runs ⌊rate · n⌋ may cross, so it is the highest value of the first that may not. NaN without runs.

    >>> matched_threshold([0.1, 0.9, 0.4, 0.2], rate=0.25)
    0.4
    """
    if not peaks:
        return nan
    allowed = int(rate * len(peaks) + 1e-9)  # 0.1 · 30 is 3, whatever its last bit
    return sorted(peaks, reverse=True)[min(allowed, len(peaks) - 1)]


def ans_false_alarms(evidence: Evidence) -> Table:
    """Leads of every measure at thresholds that raise equally many false alarms, and of validation accuracy itself."""
    negatives = dict(_negatives(evidence))
    runs = list(negatives.values())
    grokked = [record for record in evidence.task(TASK).values() if record.timeline.grokked is not None]
    rows: list[Row] = []
    read = [_read(candidate, runs, grokked) for candidate in CANDIDATES]
    for rate in RATES:
        rows += _rows([replace(reading, rate=rate) for reading in read])
    rows += _rows([reading.while_others_grok() for reading in read])
    columns = (
        *map(Column, ("Measure, false alarms allowed", "Alarm")),
        Column("Threshold", digits=5),
        Column("Chosen on (runs)"),
        Column("False alarms", digits=2),
        Column("Judged on"),
        Column("Warned before grokking", digits=2),
        Column("Median lead (steps)", signed=True),
        Column("Earlier than validation accuracy", digits=2),
        Column("Sign-test p", digits=4),
        Column("p by Holm", digits=4),
    )
    title = "Which measure warns of grokking when all may raise equally many false alarms?"
    notes = (*_notes(), *_composition(negatives))
    return Table("ans-false-alarms", "ans:false-alarms", title, columns, tuple(rows), notes)


def _negatives(evidence: Evidence) -> Iterator[tuple[tuple[str, str, str], RunRecord]]:
    """Comparable runs that did not grok, each once, by study, arm and content hash; the study negatives first."""
    seen: set[str] = set()
    for study in ("negatives", *(name for name in STUDIES if name != "negatives")):
        for name, record in evidence.study(study).items():
            if not _comparable(record.spec) or record.timeline.grokked is not None:
                continue
            key = record.spec.content_hash
            if key not in seen:
                seen.add(key)
                yield (study, arm_of(name), key), record


def _comparable(spec: RunSpec) -> bool:
    """The same task and model from step 0 on, with a λ that nothing seen in the run has changed."""
    is_whole = spec.fork is None and spec.trigger is None and not spec.training.weight_decay_schedule
    return spec.task == TASK and is_whole and (spec.architecture, spec.initialization) == MODEL


def _read(candidate: Candidate, negatives: list[RunRecord], grokked: list[RunRecord]) -> Reading:
    found = [trace for record in negatives if (trace := trace_of(record, candidate))]
    even, odd = ([trace for trace in found if trace.seed % 2 == rest] for rest in (0, 1))
    is_split = min(len(even), len(odd)) >= ENOUGH
    positive = {record.spec.content_hash: trace for record in grokked if (trace := trace_of(record, candidate))}
    return Reading(candidate, RATES[0], even if is_split else found, odd if is_split else found, positive)


def _rows(readings: Sequence[Reading]) -> list[Row]:
    """The rows of one rate, each compared with validation accuracy at the same looks."""
    rivals = {r.candidate.at_checkpoints: r for r in readings if r.candidate.column == "validation_accuracy"}
    signs = [_earlier(reading, rivals[reading.candidate.at_checkpoints]) for reading in readings]
    tests = adjusted([sign_test(found).p_value if found else None for found in signs])
    return [
        (*_cells(reading), counted(sign > 0 for sign in found), *test)
        for reading, found, test in zip(readings, signs, tests, strict=True)
    ]


def _earlier(reading: Reading, rival: Reading) -> list[int]:
    """1 for each grokked run in which the measure's alarm comes first, −1 where the rival's does, 0 for neither."""
    if reading is rival or not reading.chosen_on or not rival.chosen_on:
        return []
    both = [
        (_or_never(step), _or_never(rival.crossings[name]))
        for name, step in reading.crossings.items()
        if name in rival.crossings
    ]
    return [int(own < other) - int(own > other) for own, other in both]


def _or_never(step: int | None) -> float:
    return inf if step is None else float(step)


def _cells(reading: Reading) -> Row:
    title = f"{reading.candidate.title}, at most {reading.rate:.0%}"
    title += "" if reading.until is None else f" by step {reading.until:,}"
    if not reading.chosen_on and not reading.grokked:
        return (text(title), text(ABSENT), *(Cell(),) * 6)
    if not reading.chosen_on:
        return (text(title), text(NO_NEGATIVES), *(Cell(),) * 6)
    rises, threshold = reading.candidate.rises, reading.threshold
    alarms = counted(run.crossing(threshold) is not None for run in reading.judged_on)
    return (
        text(title),
        text("above" if rises else "below"),
        Cell(threshold if rises else -threshold),
        Cell(len(reading.chosen_on)),
        alarms,
        text("the same runs" if reading.judged_on is reading.chosen_on else "other seeds"),
        precursor_share(reading.leads),
        pooled_leads(reading.leads),
    )


def _notes() -> tuple[str, ...]:
    return (
        f"A false alarm is a run of {TASK} that did not grok by its budget and at any look lies beyond the threshold. "
        "Of n runs at most ⌊rate · n⌋ may: the threshold is the most lenient that this allows, so with few runs the "
        "rates above 0% allow no alarm either.",
        "Thresholds are chosen on even seeds and judged on odd ones, of which the false alarms are told; with fewer "
        f"than {ENOUGH} runs in a half, they are chosen and judged on the same runs, and the false alarms are then no "
        "test. Arms share their seeds, so these runs are fewer independent ones than n.",
        f"Leads are those of the grokked runs of {TASK} in the study base, at the same looks as the measure: every 100 "
        "steps, or the checkpoints every 500. Warned before grokking is the share with an alarm at an earlier look; "
        "an alarm that never came makes the median Kaplan–Meier's.",
        "Validation accuracy is the trivial rival: the smallest rise that is no false alarm. Earlier than it is the "
        "share of grokked runs in which the measure's alarm comes at an earlier look than its, ties not counted, with "
        "an exact two-sided sign test; Holm's rule is over the measures of one rate.",
        "Runs that did not grok go on to their budget, several times as long as the others need to grok, so they have "
        f"more looks at which to raise an alarm. The last rows, at most {RATES[0]:.0%} by a step, look at them no "
        "longer than until the last of the others had grokked.",
        "Runs that did not grok differ from those that did in λ, labels or data too: a measure that only tells these "
        "apart, as the norm tells λ, warns here of the arm and not of grokking.",
        "Intervals are 95 %: Clopper–Pearson for shares, percentile bootstrap for medians.",
        "Not counted: forks, which begin in another run's middle; runs whose λ a signal has changed, for there the "
        "alarm makes the outcome; other models and initial weights, whose norms and spectra are of another scale.",
    )


def _composition(negatives: Iterable[tuple[str, str, str]]) -> tuple[str, ...]:
    """The note that says which runs are the ones that did not grok."""
    arms = Counter((study, arm) for study, arm, _ in negatives)
    said_arms = [f"{count} of {study}/{arm}" for (study, arm), count in arms.items()]
    return (f"Runs that did not grok, each once: {', '.join(said_arms) or 'none'}.",)


def false_alarms_sentence(table: Table) -> str:
    """FSD, validation accuracy, and the measure that warns earliest, at the first rate."""
    rows = [row for row in table.rows[: len(CANDIDATES)] if row[7].ours is not None]
    if not rows:
        return "Which measure warns of grokking is not known: there are no grokked runs, or none that did not grok."
    wanted = [row for row in rows if row[0].ours in (_title(LOGGED[0]), _title(LOGGED[1]))]
    numbered = [row for row in rows if isinstance(row[7].ours, float | int)]
    best = max(numbered, key=lambda row: float(row[7].ours or 0), default=None)
    parts = [_warning(table, row) for row in [*wanted, *([] if best is None or best in wanted else [best])]]
    chosen, judged = (said(table, rows[0], column) for column in ("Chosen on (runs)", "Judged on"))
    basis = f"thresholds chosen on {chosen} runs that did not grok and judged on {judged}"
    late = [row for row in table.rows[-len(CANDIDATES) :] if _is_cut(row) and row[7].ours is not None]
    also = (
        f" If those runs are watched only as long as others take to grok, by {_warnings(table, late)}." if late else ""
    )
    return f"With equally many false alarms allowed ({basis}), grokking is warned of by {'; by '.join(parts)}.{also}"


def _is_cut(row: Row) -> bool:
    """Whether it is FSD's row, or validation accuracy's, in which runs that did not grok are watched less long."""
    return any(str(row[0].ours).startswith(f"{_title(one)} by step ") for one in LOGGED[:2])


def _warnings(table: Table, rows: Sequence[Row]) -> str:
    return "; by ".join(_warning(table, row) for row in rows)


def _title(candidate: Candidate) -> str:
    return f"{candidate.title}, at most {RATES[0]:.0%}"


def _warning(table: Table, row: Row) -> str:
    share, steps = said(table, row, "Warned before grokking"), said(table, row, "Median lead (steps)")
    return f"{row[0].ours}, in {share} of the grokked runs (median lead in steps: {steps})"
