"""§5.3: formation, liberation, and what rank, norm and gap do."""

from collections.abc import Mapping
from itertools import pairwise
from math import isnan, nan

from grokscope.runs.records import RunRecord
from grokscope.stats import known
from grokscope.studies import Claim, Contradiction, Estimand, Rule, rule
from grokscope.studies.reduction import mean, median
from grokscope.studies.rule import Condition
from grokscope.studies.synchronization import readings
from grokscope.studies.synchronization.designs import ONE_97, as_flag, known_step, step_or_inf
from grokscope.studies.synchronization.readings import CADENCE
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.timeline import rank_one_step

__all__ = ["CLAIMS", "CONTRADICTIONS", "RUN", "RUNS"]

TASK = "add_mod97"
RUN, RUNS = readings.one_run(f"{TASK}_s42"), readings.all_seeds(TASK)
NORMS = {int(step): float(str(REPORTED["tab:rank"].get(step, "norm"))) for step in REPORTED["tab:rank"].rows}


def _column(record: RunRecord, name: str, first: int = CADENCE) -> dict[int, float]:
    """A column by step, from the paper's first checkpoint on."""
    rows = zip(record.evaluations["step"], record.evaluations.get(name, []), strict=False)
    return {int(step): value for step, value in rows if step >= first}


def _change(record: RunRecord, start: int, end: int) -> float:
    """Relative change of the norm between two evaluations."""
    return record.at(end, "norm") / record.at(start, "norm") - 1 if start < end else nan


def read_phases(record: RunRecord, fork: int) -> Mapping[str, float]:
    """When Phase 1 ends, and what rank, norm, accuracy and gap are before, in and after Phase 2.

    Phase 2 runs from the first median rank 1 (or the rank after grokking, where 1 is never reached) to grokking. A
    number of a phase that a run does not have is NaN, and shows nothing.
    """
    norms, ranks = _column(record, "norm"), _column(record, "rank")
    if not known(norms.values()) or not known(ranks.values()):
        return {}
    found = record.timeline
    start, end = found.phase_2 or (None, None)
    train, validation = (_column(record, f"{name}_accuracy") for name in ("train", "validation"))
    gaps = {step: train[step] - value for step, value in validation.items()}
    in_phase_2 = [step for step in gaps if start is not None and end is not None and start <= step < end]
    least = min(known(norms.values()))
    place = next(step for step, norm in norms.items() if norm == least)
    falling = [rank for step, rank in ranks.items() if start is not None and step <= start]
    is_falling = all(after <= before for before, after in pairwise(falling)) and min(falling, default=nan) <= 1
    grok = found.grokked
    before = nan if grok is None else gaps.get(grok - CADENCE, nan)
    ranks_by_step = [int(step) for step in record.evaluations["step"]]
    rank_one = rank_one_step(ranks_by_step, record.evaluations["rank"])
    return {
        "rank at 500": record.at(500, "rank"),
        "falls to 1": as_flag(start is not None and is_falling),
        "rank 1": step_or_inf(rank_one),
        "norm in Phase 1": nan if start is None else _change(record, CADENCE, start),
        "norm in Phase 2": nan if start is None or end is None else _change(record, start, end),
        "length": nan if start is None or end is None else float(end - start),
        "validation in Phase 1": max(known(v for s, v in validation.items() if start is None or s < start), default=nan)
        if start is not None
        else nan,
        "validation in Phase 2": max((validation[step] for step in in_phase_2), default=nan),
        "memorised": step_or_inf(found.memorized),
        "largest gap": max(known(gaps.values()), default=nan),
        "least gap in Phase 2": min((gaps[step] for step in in_phase_2), default=nan),
        "largest gap in Phase 2": max((gaps[step] for step in in_phase_2), default=nan),
        "fall of the gap": nan if grok is None or isnan(before) or before <= 0 else 1 - gaps[grok] / before,
        "least norm after": known_step(None if grok is None else place - grok),
        "norms off by": max(abs(record.at(step, "norm") / norm - 1) for step, norm in NORMS.items()),
        "validation at the fork": record.at(fork, "validation_accuracy"),
    }


def _claim(
    name: str,
    statement: str,
    where: str,
    reported: str,
    column: str,
    format_as: str,
    shown: Condition,
    shown_in: str = "fig-two-phase",
) -> Claim:
    """A claim about one run of addition mod 97, and one number of it: the median over all seeds is its effect."""
    columns = (column, "largest gap in Phase 2") if column == "least gap in Phase 2" else (column,)
    middle = mean(column) if column == "falls to 1" else median(column)
    parts = {column: mean(column), f"{column} of all": middle}
    parts |= {other: mean(other) for other in columns[1:]}
    text = f"{{{column}:{format_as}}}"
    estimand = Estimand(
        column,
        ONE_97,
        read_phases,
        parts,
        text,
        (f"{column} of all", ".0%" if column == "falls to 1" else format_as),
        cadence=CADENCE,
        options={"fork": 1000},
    )
    return Claim(name, statement, where, reported, estimand, Rule(shown), shown_in)


CLAIMS = (
    _claim(
        "rank-at-500",
        "The median Fourier rank of the neurons is about 6 at step 500: 4 to 8.",
        "§5.3, Table 5",
        "6",
        "rank at 500",
        ".0f",
        rule.between(4, 8, "rank at 500"),
        "tab-rank",
    ),
    _claim(
        "rank-collapse",
        "The median Fourier rank falls monotonically to 1 before grokking.",
        "§5.3, Table 5, Figure 2",
        "6, 4, 3, 2, 1",
        "falls to 1",
        ".0f",
        rule.equals(1, "falls to 1"),
        "tab-rank",
    ),
    _claim(
        "phase-1-ends",
        "The median Fourier rank is 1 by step 2,500, which ends Phase 1.",
        "§5.3, Table 5",
        "2,500",
        "rank 1",
        ",.0f",
        rule.at_most(2500, "rank 1"),
        "tab-rank",
    ),
    _claim(
        "table-5-norms",
        "The weight norms of Table 5 are those of such a run, within 15 % at each of nine steps.",
        "§5.3, Table 5",
        "76.72 at step 500 to 22.94 at 4,000",
        "norms off by",
        ".0%",
        rule.at_most(0.15, "norms off by"),
        "tab-rank",
    ),
    _claim(
        "norm-phase-1",
        "The weight norm falls by 62.7 % in Phase 1, within a fifth of that.",
        "§5.3",
        "−62.7 % (76.72 to 28.60)",
        "norm in Phase 1",
        ".0%",
        rule.within(0.2, of=-0.627, part="norm in Phase 1"),
    ),
    _claim(
        "norm-phase-2",
        "The weight norm falls by a further 19.8 % in Phase 2, within a quarter of that.",
        "§5.3",
        "−19.8 % (28.60 to 22.94)",
        "norm in Phase 2",
        ".0%",
        rule.within(0.25, of=-0.198, part="norm in Phase 2"),
    ),
    _claim(
        "phase-2-length",
        "Phase 2, from rank 1 to grokking, lasts 1,500 steps, give or take 500.",
        "§5.3, Figure 2",
        "1,500",
        "length",
        ",.0f",
        rule.between(1000, 2000, "length"),
    ),
    _claim(
        "validation-in-phase-1",
        "Validation accuracy stays at or below 20 % in Phase 1 (0 to 17 % reported).",
        "§5.3",
        "0 to 17 %",
        "validation in Phase 1",
        ".0%",
        rule.at_most(0.20, "validation in Phase 1"),
    ),
    _claim(
        "validation-in-phase-2",
        "Validation accuracy does not exceed 36 % in Phase 2 (35.2 % reported).",
        "§5.3, §8",
        "at most 0.352",
        "validation in Phase 2",
        ".0%",
        rule.at_most(0.36, "validation in Phase 2"),
    ),
    _claim(
        "validation-at-the-fork",
        "Validation accuracy is about 10.6 % at step 1,000, where the branches are made: 5 to 16 %.",
        "§5.3, Table 4",
        "10.6 %",
        "validation at the fork",
        ".1%",
        rule.between(0.05, 0.16, "validation at the fork"),
        "tab-rank",
    ),
    _claim(
        "memorised-by-1000",
        "Train accuracy reaches 99 % by step 1,000 (100 % reported).",
        "§5.3, Figure 4",
        "step 1,000",
        "memorised",
        ",.0f",
        rule.at_most(1000, "memorised"),
        "fig-memorisation",
    ),
    _claim(
        "gap-peak",
        "The gap between train and validation accuracy peaks at 0.894, within 0.05.",
        "§5.3, Figure 4",
        "0.894 at step 1,000",
        "largest gap",
        ".3f",
        rule.between(0.844, 0.944, "largest gap"),
        "fig-memorisation",
    ),
    _claim(
        "gap-in-phase-2",
        "The gap holds at 0.52 to 0.72, within 0.05, throughout Phase 2.",
        "§5.3, Figure 4",
        "0.52 to 0.72",
        "least gap in Phase 2",
        ".2f",
        rule.all_of(rule.at_least(0.47, "least gap in Phase 2"), rule.at_most(0.77, "largest gap in Phase 2")),
        "fig-memorisation",
    ),
    _claim(
        "gap-collapse",
        "The gap falls by 90 % and more in the one checkpoint interval of grokking (99.4 % reported).",
        "§5.3, §8, Figure 4",
        "−99.4 %",
        "fall of the gap",
        ".1%",
        rule.at_least(0.9, "fall of the gap"),
        "fig-memorisation",
    ),
    _claim(
        "norm-minimum",
        "The weight norm reaches its minimum at grokking, give or take one evaluation of 500 steps.",
        "§5.3, Table 5",
        "22.94 at step 4,000",
        "least norm after",
        "+,.0f",
        rule.between(-500, 500, "least norm after"),
    ),
)
CONTRADICTIONS = (
    Contradiction(
        "gap",
        "§5.3, Table 5, Figure 4",
        "Train accuracy 1 with validation accuracy 0.053 at step 2,500 is a gap of 0.947, above the stated peak of "
        "0.894 and outside the 0.52 to 0.72 stated for Phase 2.",
        ("gap-peak", "gap-in-phase-2"),
    ),
    Contradiction(
        "circuit-complete",
        "§5.3, §8",
        "The circuit is computation-complete at step 1,000, and forms until step 2,500, where Phase 1 ends.",
        ("fsd-at-1000", "phase-1-ends"),
    ),
)
