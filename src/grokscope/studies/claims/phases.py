"""§5.3: formation, liberation, and what the gap and the norm do."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import isnan, nan

from grokscope.runs.records import RunRecord
from grokscope.stats import bootstrap
from grokscope.studies.claims.chosen import known, mean, middle, of_one, on_checkpoints
from grokscope.studies.claims.claim import Claim, Finding, Verdict, graded, inconsistent, near, number, percent, spoken
from grokscope.studies.evidence import Evidence
from grokscope.timeline import first_step_below

__all__ = ["CLAIMS"]

RUN = "add_mod97_s42"
SEED = 0
ONE_RUN = (
    "within 20 % of the printed number: reproduced; of the same sign: partly; else not; beside it, all seeds' mean"
)


def _like(
    printed: float | int,
    of: Callable[[RunRecord], float],
    digits: int = 2,
    shown: Callable[[float, int], str] = number,
) -> Callable[[Sequence[RunRecord]], Finding]:
    """A score: a number of each run, compared with the printed one."""

    def score(records: Sequence[RunRecord]) -> Finding:
        values = known(map(of, records))
        if not values:
            return Finding("undefined", Verdict.NOT, "The phase it is read in does not exist.", len(records))
        found = bootstrap(values, seed=SEED, resamples=10_000)
        value = spoken(found, digits, shown) if len(values) > 1 else shown(found.value, digits)
        value += _without(len(records) - len(values))
        verdict = graded(near(found.value, printed), found.value * printed > 0)
        return Finding(
            value, verdict, f"Printed is {shown(printed, digits)}.", len(values), found if len(values) > 1 else None
        )

    return score


def _without(runs: int) -> str:
    """In how many runs there is no phase to read in, if in any."""
    return f" ({runs} have no such phase)" if runs else ""


def _change(record: RunRecord, start: int | None, end: int | None) -> float:
    """Relative change of the norm between two looks."""
    if start is None or end is None or start >= end:
        return nan
    return record.at(end, "norm") / record.at(start, "norm") - 1


def _liberated(record: RunRecord) -> int | None:
    """The start of Phase 2; None where it does not come before grokking, for then there is none."""
    start, end = record.timeline.liberated, record.timeline.grokked
    return None if start is None or end is None or start >= end else start


def _rank_one(record: RunRecord) -> int | None:
    """The first look with median rank 1."""
    return first_step_below([int(step) for step in record.evaluations["step"]], record.evaluations.get("rank", []), 1.0)


def _in_phase_1(record: RunRecord) -> float:
    return _change(record, 500, _liberated(record))


def _in_phase_2(record: RunRecord) -> float:
    return _change(record, _liberated(record), record.timeline.grokked)


def _phase_2(record: RunRecord, column: str) -> list[float]:
    """A logged column at the looks of Phase 2, which ends before the grok look."""
    start, end = record.timeline.liberated, record.timeline.grokked
    if start is None or end is None:
        return []
    rows = zip(record.evaluations["step"], record.evaluations[column], strict=True)
    return known(value for step, value in rows if start <= step < end)


def _phase_2_length(record: RunRecord) -> float:
    start, end = _rank_one(record), record.timeline.grokked
    return nan if start is None or end is None or start >= end else float(end - start)


def _collapse(records: Sequence[RunRecord]) -> Finding:
    full, part = [], []
    for record in records:
        events = record.timeline
        early = events.liberated is not None and events.grokked is not None and events.liberated < events.grokked
        ranks = [rank for step, rank in on_checkpoints(record, "rank").items() if step <= (events.liberated or 0)]
        part.append(early and min(known(record.evaluations["rank"]), default=nan) <= 1)
        full.append(part[-1] and all(after <= before for before, after in pairwise(ranks)))
    paths = [on_checkpoints(record, "rank") for record in records]
    path = [middle(path[step] for path in paths if not isnan(path.get(step, nan))) for step in list(paths[0])[:8]]
    value = " → ".join(map(number, path))
    verdict = graded(sum(full) > len(full) / 2, sum(part) > len(part) / 2)
    why = f"{sum(full)} of {len(full)} fall monotonically, {sum(part)} reach 1 before grokking."
    return Finding(value or "undefined", verdict, why, len(records))


def _validation(records: Sequence[RunRecord]) -> Finding:
    peaks = [max(found) for record in records if (found := _phase_2(record, "validation_accuracy"))]
    if not peaks:
        return Finding("undefined", Verdict.NOT, "There is no Phase 2.", len(records))
    kept = sum(peak <= 0.36 for peak in peaks)
    verdict = graded(kept == len(peaks), kept > len(peaks) / 2 or mean(peaks) <= 0.5)
    value = number(max(peaks), 2) + _without(len(records) - len(peaks))
    return Finding(value, verdict, f"{kept} of {len(peaks)} stay below.", len(peaks))


def _gap(record: RunRecord, step: int) -> float:
    return record.at(step, "train_accuracy") - record.at(step, "validation_accuracy")


def _peak_gap(records: Sequence[RunRecord]) -> Finding:
    def highest(record: RunRecord, steps: Iterable[float | int]) -> float:
        return max(known(_gap(record, int(step)) for step in steps), default=nan)

    peaks = [highest(record, on_checkpoints(record, "norm")) for record in records]
    finer = [highest(record, record.evaluations["step"]) for record in records]
    value = f"{number(mean(peaks), 3)}, at every look {number(mean(finer), 3)}"
    return Finding(value, Verdict.NOT, "", len(peaks))


def _gap_in_phase_2(records: Sequence[RunRecord]) -> Finding:
    found: list[list[float]] = []
    for record in records:
        start, end = record.timeline.liberated, record.timeline.grokked
        inside = [step for step in on_checkpoints(record, "norm") if start and end and start <= step < end]
        found += [gaps] if (gaps := known(_gap(record, step) for step in inside)) else []
    every = [gap for gaps in found for gap in gaps]
    value = f"{number(min(every), 2)} to {number(max(every), 2)}" if every else "no checkpoint in Phase 2"
    missing = len(records) - len(found)
    value += f" ({missing} have no checkpoint there)" if every and missing else ""
    return Finding(value, Verdict.NOT, "", len(found) or len(records))


def _gap_collapse(records: Sequence[RunRecord]) -> Finding:
    drops = []
    for record in records:
        accuracy = on_checkpoints(record, "validation_accuracy")
        grok = next((step for step, value in accuracy.items() if value >= 0.95), None)
        if grok is not None and grok - 500 in accuracy:
            drops.append(1 - _gap(record, grok) / max(_gap(record, grok - 500), 1e-9))
    if not drops:
        return Finding("undefined", Verdict.NOT, "No checkpoint before a grokked one.", len(records))
    kept = sum(drop >= 0.9 for drop in drops)
    verdict = graded(kept > len(drops) / 2, mean(drops) >= 0.5)
    return Finding(percent(-mean(drops), 1), verdict, f"{kept} of {len(drops)} lose nine tenths.", len(drops))


def _memorized(records: Sequence[RunRecord]) -> Finding:
    steps = [record.timeline.memorized for record in records]
    kept = sum(step is not None and step <= 1000 for step in steps)
    ever = sum(step is not None for step in steps)
    value = number(steps[0]) if len(steps) == 1 else f"{kept} of {len(steps)} by step 1,000"
    return Finding(value, graded(kept == len(steps), ever > len(steps) / 2), f"{ever} memorise at all.", len(steps))


def _norm_minimum(records: Sequence[RunRecord]) -> Finding:
    full, part, places = [], [], []
    for record in records:
        grok, norms = record.timeline.grokked, record.evaluations["norm"]
        if grok is None or not known(norms):
            continue
        least = min(known(norms))
        places.append(int(record.evaluations["step"][norms.index(least)]))
        full.append(abs(places[-1] - grok) <= 500)
        part.append(record.timeline.norm_at_grok <= 1.05 * least)
    if not places:
        return Finding("undefined", Verdict.NOT, "No run grokked with a norm.", len(records))
    value = f"least at step {number(places[0])}" if len(places) == 1 else f"{sum(full)} of {len(full)} within 500 steps"
    verdict = graded(sum(full) > len(full) / 2, sum(part) > len(part) / 2)
    return Finding(value, verdict, f"{sum(part)} of {len(part)} are within 5 % of their least norm.", len(places))


def _formation(records: Sequence[RunRecord]) -> Finding:
    crossing = middle(record.timeline.sync.step for record in records)
    value = f"FSD at {number(crossing)}, rank 1 at {number(middle(map(_rank_one, records)))}"
    return Finding(value, Verdict.NOT, "", len(records))


def _of(score: Callable[[Sequence[RunRecord]], Finding]) -> Callable[[Evidence], Finding]:
    return lambda evidence: of_one(evidence, RUN, score)


def _odd(score: Callable[[Sequence[RunRecord]], Finding], why: str) -> Callable[[Evidence], Finding]:
    return lambda evidence: inconsistent(of_one(evidence, RUN, score), why)


CLAIMS = (
    Claim(
        "rank-collapse",
        "The median Fourier rank falls monotonically from 6 to 1 in Phase 1.",
        "§5.3, Table 5, Figure 2",
        "6, 4, 3, 2, 1",
        f"In {RUN} rank 1 comes before grokking and no rank rises from one 500-step checkpoint to the next until then: "
        "reproduced; rank 1 before grokking alone: partly; else not; beside it, the majority of all seeds.",
        "tab-rank",
        _of(_collapse),
    ),
    Claim(
        "norm-phase-1",
        "The weight norm falls by 62.7 % in Phase 1.",
        "§5.3",
        "−62.7 % (76.72 to 28.60)",
        f"Change of the norm of {RUN} from step 500 to the start of Phase 2, {ONE_RUN}.",
        "tab-rank",
        _of(_like(-0.627, _in_phase_1, 1, percent)),
    ),
    Claim(
        "norm-phase-2",
        "The weight norm falls by a further 19.8 % in Phase 2.",
        "§5.3",
        "−19.8 % (28.60 to 22.94)",
        f"Change of the norm of {RUN} from the start of Phase 2 to grokking, {ONE_RUN}.",
        "tab-rank",
        _of(_like(-0.198, _in_phase_2, 1, percent)),
    ),
    Claim(
        "phase-2-length",
        "Phase 2 lasts 1,500 steps.",
        "§5.3, Figure 2",
        "1,500",
        f"Steps of {RUN} from the first median rank 1 to grokking, {ONE_RUN}.",
        "tab-rank",
        _of(_like(1500, _phase_2_length, 0)),
    ),
    Claim(
        "validation-in-phase-2",
        "Validation accuracy does not exceed 35 % in Phase 2.",
        "§5.3, §8",
        "at most 0.352",
        f"Largest validation accuracy of {RUN} at any look of Phase 2: at most 0.36: reproduced; at most 0.5: partly; "
        "else not; over more runs all of them, or half of them.",
        "tab-rank",
        _of(_validation),
    ),
    Claim(
        "memorised-by-1000",
        "Train accuracy reaches 100 % by step 1,000.",
        "§5.3, Figure 4",
        "step 1,000",
        f"First look of {RUN} with train accuracy ≥ 0.99: at most 1,000: reproduced; later: partly; never: not.",
        "fig-memorisation",
        _of(_memorized),
    ),
    Claim(
        "gap-peak",
        "The generalisation gap peaks at 0.894.",
        "§5.3, Figure 4",
        "0.894 at step 1,000",
        f"Always inconsistent; our value is the largest gap of {RUN} at 500-step checkpoints.",
        "fig-memorisation",
        _odd(_peak_gap, "Train accuracy 1 with validation 0.053 at step 2,500 is a gap of 0.947, above the peak."),
    ),
    Claim(
        "gap-in-phase-2",
        "The gap holds at 0.52 to 0.72 throughout Phase 2.",
        "§5.3, Figure 4",
        "0.52 to 0.72",
        f"Always inconsistent; our value is the range of the gap of {RUN} at the 500-step checkpoints of Phase 2.",
        "fig-memorisation",
        _odd(_gap_in_phase_2, "Table 5 has validation accuracy 0.053 in Phase 2, which is a gap of 0.947."),
    ),
    Claim(
        "gap-collapse",
        "The gap falls by 99.4 % in the one checkpoint interval of grokking.",
        "§5.3, §8, Figure 4",
        "−99.4 %",
        f"Relative fall of the gap of {RUN} from the last 500-step checkpoint before grokking to the grokked one: at "
        "least 90 %: reproduced; at least 50 %: partly; else not; beside it, the majority and the mean of all seeds.",
        "fig-memorisation",
        _of(_gap_collapse),
    ),
    Claim(
        "norm-minimum",
        "The weight norm reaches its minimum at grokking.",
        "§5.3, Table 5",
        "22.94 at step 4,000",
        f"The look of {RUN} with the least norm of the whole run is within 500 steps of the grok look: reproduced; the "
        "norm at grokking is within 5 % of the least: partly; else not; beside it, the majority of all seeds.",
        "tab-rank",
        _of(_norm_minimum),
    ),
    Claim(
        "circuit-complete",
        "The circuit is computation-complete at step 1,000, and Phase 1 ends at step 2,500.",
        "§5.3, §8",
        "1,000 and 2,500",
        f"Always inconsistent; our values are the steps of {RUN} with first FSD ≥ 0.80 and first median rank 1.",
        "tab-rank",
        _odd(_formation, "A circuit that still forms until step 2,500 is not complete at step 1,000."),
    ),
)
