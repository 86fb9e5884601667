"""§5.3: formation, liberation, and what rank, norm and gap do."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import isnan, nan
from typing import Any

from grokscope.runs.records import RunRecord
from grokscope.specs import ReadingSpec
from grokscope.stats import estimate_mean, known, mean_known, median_time
from grokscope.studies import Claim, Measured, Quantity, Records, Rule, rule
from grokscope.studies.synchronization import readings
from grokscope.studies.synchronization.readings import CADENCE
from grokscope.timeline import rank_one_step
from grokscope.view.numbers import format_estimate, format_number, format_percent, format_step

__all__ = ["CLAIMS", "RUN", "RUNS"]

Function = Callable[..., Measured]
TASK = "add_mod97"
RUN, RUNS = readings.one_run(f"{TASK}_s42"), readings.all_seeds(TASK)


def _rank_one(record: RunRecord) -> int | None:
    return rank_one_step([int(step) for step in record.evaluations["step"]], record.evaluations["rank"])


def _at_steps(record: RunRecord, column: str, every: int = CADENCE) -> dict[int, float]:
    """A column at the checkpoints of the paper, from the first after step 0 on."""
    rows = zip(record.evaluations["step"], record.evaluations.get(column, []), strict=False)
    return {int(step): value for step, value in rows if step > 0 and step % every == 0}


def _steps_in_phase_2(record: RunRecord, every: int = 1) -> list[int]:
    """The evaluations in Phase 2, which ends before the grokked one, so many steps apart."""
    start, end = record.timeline.phase_2 or (0, 0)
    return [int(step) for step in record.evaluations["step"] if start <= step < end and step % every == 0]


def _change(record: RunRecord, start: int, end: int) -> float:
    """Relative change of the norm between two evaluations."""
    return record.at(end, "norm") / record.at(start, "norm") - 1 if start < end else nan


def _without(runs: int) -> str:
    return f" ({runs} have no such phase)" if runs else ""


def _mean(values: Sequence[float], digits: int, format_value: Callable[[float, int], str]) -> Measured:
    """The mean of a number that each run with the phase has."""
    found = known(values)
    if not found:
        return Measured(
            {},
            "undefined",
            len(values),
            "This run has no such phase." if len(values) == 1 else "No run has such a phase.",
        )
    mean = estimate_mean(found)
    is_single = len(found) == 1
    shown = format_value(mean.value, digits) if is_single else format_estimate(mean, digits, format_value)
    shown += _without(len(values) - len(found))
    return Measured.of(mean.value if is_single else mean, shown, len(found), f"{len(found)} of {len(values)} have it.")


def _norm_in_phase_1(records: Records, start: int) -> Measured:
    """Relative change of the norm from a step to the start of Phase 2."""
    ends = [(record, record.timeline.phase_2) for record in records.values()]
    return _mean([nan if end is None else _change(record, start, end[0]) for record, end in ends], 1, format_percent)


def _norm_in_phase_2(records: Records) -> Measured:
    """Relative change of the norm from the start of Phase 2 to grokking."""
    ends = [(record, record.timeline.phase_2) for record in records.values()]
    return _mean([nan if end is None else _change(record, *end) for record, end in ends], 1, format_percent)


def _phase_2_length(records: Records) -> Measured:
    """Steps from the first median rank 1 to grokking."""
    ends = [(_rank_one(record), record.timeline.grokked) for record in records.values()]
    lengths = [nan if start is None or end is None or start >= end else float(end - start) for start, end in ends]
    return _mean(lengths, 0, format_number)


def _rank_collapse(records: Records) -> Measured:
    """How many runs reach rank 1 before grokking, and in how many of them no rank rises until then."""
    paths = [_at_steps(record, "rank") for record in records.values()]
    falls = [
        all(after <= before for before, after in pairwise(rank for step, rank in path.items() if step <= phase[0]))
        for record, path in zip(records.values(), paths, strict=True)
        if (phase := record.timeline.phase_2) and min(known(record.evaluations["rank"]), default=nan) <= 1
    ]
    middle = [
        median_time(path[step] for path in paths if not isnan(path.get(step, nan))) for step in list(paths[0])[:8]
    ]
    return Measured(
        {"falling monotonically to 1": sum(falls), "reaching 1 before grokking": len(falls)},
        " → ".join(map(format_number, middle)) or "undefined",
        len(paths),
        note=f"{sum(falls)} of {len(paths)} fall monotonically, {len(falls)} reach 1 before grokking.",
    )


def _validation_in_phase_2(records: Records, at_most: float) -> Measured:
    """The highest validation accuracy of each run in Phase 2, which ends before the grokked evaluation."""
    columns = [[one.at(step, "validation_accuracy") for step in _steps_in_phase_2(one)] for one in records.values()]
    peaks = [max(found) for column in columns if (found := known(column))]
    if not peaks:
        return Measured({}, "undefined", len(records), "There is no Phase 2.")
    kept = sum(peak <= at_most for peak in peaks)
    return Measured(
        {"value": max(peaks), "runs that stay below": kept, "mean peak": mean_known(peaks)},
        text=format_number(max(peaks), 2) + _without(len(records) - len(peaks)),
        n=len(peaks),
        note=f"{kept} of {len(peaks)} stay below.",
    )


def _memorized(records: Records, by: int) -> Measured:
    """How many runs memorise by a step, and at all."""
    steps = [record.timeline.memorized for record in records.values()]
    in_time, ever = sum(step is not None and step <= by for step in steps), sum(step is not None for step in steps)
    return Measured(
        {"in time": in_time, "at all": ever},
        text=format_step(steps[0]) if len(steps) == 1 else f"{in_time} of {len(steps)} by step {by:,}",
        n=len(steps),
        note=f"{ever} of {len(steps)} memorise.",
    )


def _gap(record: RunRecord, step: int) -> float:
    return record.at(step, "train_accuracy") - record.at(step, "validation_accuracy")


def _gap_peak(records: Records, every: int) -> Measured:
    """The largest gap at the paper's checkpoints, and at every evaluation; means over runs."""
    values = [
        mean_known(
            max(known(_gap(record, step) for step in _at_steps(record, "norm", one)), default=nan)
            for record in records.values()
        )
        for one in (every, 1)
    ]
    return Measured.of(
        values[0],
        text=f"{format_number(values[0], 3)}, at every evaluation {format_number(values[1], 3)}",
        n=len(records),
    )


def _gap_in_phase_2(records: Records, every: int) -> Measured:
    """The range of the gap at the paper's checkpoints in Phase 2."""
    found = [known(_gap(one, step) for step in _steps_in_phase_2(one, every)) for one in records.values()]
    gaps, missing = [gap for one in found for gap in one], found.count([])
    if not gaps:
        return Measured({}, "no checkpoint in Phase 2", len(records))
    return Measured(
        {"least": min(gaps), "greatest": max(gaps)},
        text=f"{format_number(min(gaps), 2)} to {format_number(max(gaps), 2)}"
        + f" ({missing} have no checkpoint there)" * bool(missing),
        n=len(found) - missing,
    )


def _gap_collapse(records: Records, every: int, at_least: float) -> Measured:
    """Relative fall of the gap from the last checkpoint before grokking to the grokked one; the mean over runs."""
    falls = []
    for record in records.values():
        accuracy = _at_steps(record, "validation_accuracy", every)
        grok = next((step for step, value in accuracy.items() if value >= ReadingSpec().grokked), None)
        if grok is not None and grok - every in accuracy:
            falls.append(1 - _gap(record, grok) / max(_gap(record, grok - every), 1e-9))
    if not falls:
        return Measured({}, "undefined", len(records), "No checkpoint before a grokked one.")
    kept, mean = sum(fall >= at_least for fall in falls), mean_known(falls)
    return Measured.of(
        mean,
        format_percent(-mean, 1),
        len(falls),
        note=f"The gap falls by at least {100 * at_least:g} % in {kept} of {len(falls)} runs.",
        **{"falling by 90 %": kept},
    )


def _norm_minimum(records: Records, steps: int, tolerance: float) -> Measured:
    """How far the least norm of a run is from grokking, in steps and in norm."""
    places, near, low = [], 0, 0
    for record in records.values():
        grok, norms = record.timeline.grokked, record.evaluations["norm"]
        if grok is not None and known(norms):
            least = min(known(norms))
            places.append(int(record.evaluations["step"][norms.index(least)]))
            near += abs(places[-1] - grok) <= steps
            low += record.timeline.norm_at_grok <= (1 + tolerance) * least
    if not places:
        return Measured({}, "undefined", len(records), "No run grokked with a norm.")
    n = len(places)
    return Measured(
        {"near in steps": near, "near in norm": low},
        text=f"least at step {places[0]:,}" if n == 1 else f"{near} of {n} within {steps} steps",
        n=n,
        note=f"{low} of {n} are within {100 * tolerance:g} % of their least norm.",
    )


def _formation(records: Records) -> Measured:
    """The median steps of the FSD crossing and of the first median rank 1."""
    crossing = median_time(record.timeline.sync.step for record in records.values())
    rank_one = median_time(map(_rank_one, records.values()))
    shown = [f"{name} at {format_number(step)}" for name, step in (("FSD", crossing), ("rank 1", rank_one))]
    return Measured(
        {"FSD": crossing, "rank 1": rank_one}, ", ".join(shown).replace("at never", "never reached"), len(records)
    )


def _claim(
    texts: tuple[str, str, str, str],
    name: str,
    function: Function,
    rule: Rule,
    shown_in: str = "tab-rank",
    **options: Any,
) -> Claim:
    """A claim about one run, and about all seeds of its task; the table has the paper's cadence, figures have all."""
    own = Quantity(name, RUN, function, CADENCE if shown_in == "tab-rank" else None, options)
    return Claim(*texts, own, rule, shown_in, replace(own, runs=RUNS))


CLAIMS = (
    _claim(
        (
            "rank-collapse",
            "The median Fourier rank falls monotonically from 6 to 1 in Phase 1.",
            "§5.3, Table 5, Figure 2",
            "6, 4, 3, 2, 1",
        ),
        "path of the median rank",
        _rank_collapse,
        Rule(
            rule.more_than(1 / 2, "falling monotonically to 1"),
            rule.more_than(1 / 2, "reaching 1 before grokking"),
        ),
    ),
    _claim(
        ("norm-phase-1", "The weight norm falls by 62.7 % in Phase 1.", "§5.3", "−62.7 % (76.72 to 28.60)"),
        "change of the norm in Phase 1, from step 500",
        _norm_in_phase_1,
        Rule(rule.within(0.2, of=-0.627), rule.below(0)),
        "fig-two-phase",
        start=500,
    ),
    _claim(
        (
            "norm-phase-2",
            "The weight norm falls by a further 19.8 % in Phase 2.",
            "§5.3",
            "−19.8 % (28.60 to 22.94)",
        ),
        "change of the norm in Phase 2",
        _norm_in_phase_2,
        Rule(rule.within(0.2, of=-0.198), rule.below(0)),
        "fig-two-phase",
    ),
    _claim(
        ("phase-2-length", "Phase 2 lasts 1,500 steps.", "§5.3, Figure 2", "1,500"),
        "steps from the first median rank 1 to grokking",
        _phase_2_length,
        Rule(rule.within(0.2, of=1500), rule.above(0)),
        "fig-two-phase",
    ),
    _claim(
        (
            "validation-in-phase-2",
            "Validation accuracy does not exceed 35 % in Phase 2.",
            "§5.3, §8",
            "at most 0.352",
        ),
        "largest validation accuracy in Phase 2, and runs that stay below 0.36",
        _validation_in_phase_2,
        Rule(
            rule.more_than(1, "runs that stay below", operator="="),
            rule.any_of(rule.more_than(1 / 2, "runs that stay below"), rule.at_most(0.5, "mean peak")),
        ),
        "fig-two-phase",
        at_most=0.36,
    ),
    _claim(
        ("memorised-by-1000", "Train accuracy reaches 100 % by step 1,000.", "§5.3, Figure 4", "step 1,000"),
        "runs with train accuracy ≥ 0.99 by step 1,000",
        _memorized,
        Rule(rule.more_than(1, "in time", operator="="), rule.more_than(1 / 2, "at all")),
        "fig-memorisation",
        by=1000,
    ),
    _claim(
        ("gap-peak", "The generalisation gap peaks at 0.894.", "§5.3, Figure 4", "0.894 at step 1,000"),
        "largest generalisation gap",
        _gap_peak,
        Rule(contradiction="Train accuracy 1 with validation 0.053 at step 2,500 is a gap of 0.947, above the peak."),
        "fig-memorisation",
        every=CADENCE,
    ),
    _claim(
        ("gap-in-phase-2", "The gap holds at 0.52 to 0.72 throughout Phase 2.", "§5.3, Figure 4", "0.52 to 0.72"),
        "range of the gap in Phase 2",
        _gap_in_phase_2,
        Rule(contradiction="Table 5 has validation accuracy 0.053 in Phase 2, which is a gap of 0.947."),
        "fig-memorisation",
        every=CADENCE,
    ),
    _claim(
        (
            "gap-collapse",
            "The gap falls by 99.4 % in the one checkpoint interval of grokking.",
            "§5.3, §8, Figure 4",
            "−99.4 %",
        ),
        "relative fall of the gap in the 500 steps up to grokking",
        _gap_collapse,
        Rule(rule.more_than(1 / 2, "falling by 90 %"), rule.at_least(0.5)),
        "fig-memorisation",
        every=CADENCE,
        at_least=0.9,
    ),
    _claim(
        ("norm-minimum", "The weight norm reaches its minimum at grokking.", "§5.3, Table 5", "22.94 at step 4,000"),
        "runs whose least norm is within 500 steps of grokking, or within 5 % of the norm there,",
        _norm_minimum,
        Rule(rule.more_than(1 / 2, "near in steps"), rule.more_than(1 / 2, "near in norm")),
        "fig-two-phase",
        steps=500,
        tolerance=0.05,
    ),
    _claim(
        (
            "circuit-complete",
            "The circuit is computation-complete at step 1,000, and Phase 1 ends at step 2,500.",
            "§5.3, §8",
            "1,000 and 2,500",
        ),
        "steps of the FSD crossing and of the first median rank 1",
        _formation,
        Rule(contradiction="A circuit that still forms until step 2,500 is not complete at step 1,000."),
        "fig-two-phase",
    ),
)
