"""The bake-off's table: who groks soonest, who fails, who falls apart afterwards, and who wins, in one sentence."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan, nan

from grokscope.errors import InputError
from grokscope.runs.records import RunRecord
from grokscope.specs import ReadingSpec
from grokscope.stats import Estimate, holm, kaplan_meier, logrank, share
from grokscope.studies.bakeoff.configurations import (
    ARMS,
    CHOSEN,
    FIRST_TUNING_SEED,
    TUNING_TASK,
    arm_of,
    task_order,
    tuning_runs,
)
from grokscope.studies.bakeoff.notes import what_logs_show
from grokscope.timeline import first_step
from grokscope.view.table import Cell, Column, Row, Table, estimated, text

__all__ = ["ArmResult", "TaskResult", "bakeoff_results", "bakeoff_table", "tuned", "verdict"]

FELL = 0.9  # validation accuracy below which a run that has grokked counts as collapsed
SIGNIFICANT = 0.05
BASELINE = "fixed"
COLUMNS = (
    Column("Task"),
    Column("Arm"),
    Column("n"),
    Column("Grokked", digits=2),
    Column("Median steps to grok"),
    Column("Seconds to grok", digits=2),
    Column("Never memorised"),
    Column("Not finite"),
    Column("Collapsed after grokking"),
    Column("p against the best fixed λ", digits=4),
)


@dataclass(frozen=True)
class ArmResult:
    """What became of one arm's runs on one task; also one point of the figure."""

    task: str
    """What was learnt."""
    arm: str
    """How."""
    grokked: Estimate
    """Share of the runs that grokked within the budget, with its Clopper–Pearson interval."""
    steps: Estimate
    """Median steps to grok by Kaplan–Meier, with its interval; infinite where half of the runs did not."""
    seconds: Estimate | None
    """The same in seconds of one run in a full stack; None where no speed was measured."""
    unlearnt: int
    """Runs that never memorised their training set."""
    failed: int
    """Runs whose loss stopped being a number."""
    collapsed: int
    """Runs that grokked, and fell below 0.9 or stopped being numbers while they were watched."""
    p_value: float
    """Log-rank against the task's best fixed λ, adjusted by Holm for all other arms of the task; NaN for that one."""


@dataclass(frozen=True)
class TaskResult:
    """One task's arms."""

    task: str
    """What was learnt."""
    arms: tuple[ArmResult, ...]
    """In the order of the arms; those without a run are left out."""
    best_fixed: str | None
    """The fixed λ with the shortest median, chosen with hindsight: the hardest baseline there is."""

    def arm(self, name: str) -> ArmResult | None:
        """One arm's result, if it was run."""
        return next((arm for arm in self.arms if arm.arm == name), None)

    @property
    def winner(self) -> ArmResult:
        """The arm that is first by `rank`."""
        return min(self.arms, key=rank)


@dataclass(frozen=True)
class _Time:
    """When a run grokked, or how long it was watched in vain."""

    steps: int
    """The step, or the budget."""
    came: bool
    """Whether it did."""


def rank(arm: ArmResult) -> tuple[float, float, int]:
    """Shorter medians come first; among equals the larger share that grokked, then fewer collapses."""
    return (arm.steps.value, -arm.grokked.value, arm.collapsed)


def bakeoff_results(
    records: Iterable[RunRecord], seconds_per_step: Mapping[str, float] | None = None
) -> list[TaskResult]:
    """Every task's arms; records of no arm are left out. Speeds are seconds of one run's step, by arm."""
    by_task: dict[str, dict[str, list[RunRecord]]] = {}
    for record in records:
        name = arm_of(record.spec)
        if name is not None:
            by_task.setdefault(record.spec.task, {}).setdefault(name, []).append(record)
    return [_task_result(task, by_task[task], seconds_per_step or {}) for task in sorted(by_task, key=task_order)]


def _task_result(task: str, arms: Mapping[str, list[RunRecord]], speeds: Mapping[str, float]) -> TaskResult:
    times = {name: [_time(record) for record in arms[name]] for name in ARMS if name in arms}
    found = {name: _arm_result(task, name, arms[name], times[name], speeds.get(name)) for name in times}
    fixed = [arm for name, arm in found.items() if name.startswith(BASELINE)]
    best = min(fixed, key=rank).arm if fixed else None
    others = [name for name in found if best is not None and name != best]
    raw = [_p_value(times[name], times[best or ""]) for name in others]
    adjusted = dict(zip(others, holm(raw).tolist(), strict=True))
    results = (_with_p(arm, adjusted.get(name, nan)) for name, arm in found.items())
    return TaskResult(task, tuple(results), best)


def _arm_result(
    task: str, name: str, records: Sequence[RunRecord], times: Sequence[_Time], speed: float | None
) -> ArmResult:
    median = kaplan_meier([time.steps for time in times], [time.came for time in times]).median
    seconds = None
    if speed is not None:
        seconds = Estimate(median.value * speed, median.low * speed, median.high * speed, median.items)
    return ArmResult(
        task,
        name,
        share(sum(time.came for time in times), len(times)),
        median,
        seconds,
        sum(record.outcome.memorized is None for record in records),
        sum(record.outcome.outcome == "diverged" for record in records),
        sum(_has_collapsed(record) for record in records),
        nan,
    )


def _with_p(arm: ArmResult, p_value: float) -> ArmResult:
    return ArmResult(**{**vars(arm), "p_value": p_value})


def _time(record: RunRecord) -> _Time:
    """A run that failed will never grok: it counts as watched to the end of its budget, not until it failed."""
    grokked = record.outcome.grokked
    return _Time(record.spec.training.steps, False) if grokked is None else _Time(grokked, True)


def _has_collapsed(record: RunRecord) -> bool:
    steps, validation = [int(step) for step in record.evaluations["step"]], record.evaluations["validation_accuracy"]
    grokked = first_step(steps, validation, ReadingSpec().grokked)
    if grokked is None:
        return False
    later = [value for step, value in zip(steps, validation, strict=True) if step > grokked]
    has_failed = record.outcome.outcome == "diverged"  # which ends a log before its collapse is seen
    return has_failed or any(value < FELL or isnan(value) for value in later)


def _p_value(own: Sequence[_Time], other: Sequence[_Time]) -> float:
    both = [*own, *other]
    groups = ["own"] * len(own) + ["other"] * len(other)
    return logrank([time.steps for time in both], [time.came for time in both], groups).p_value


def verdict(task: TaskResult) -> str:
    """Who won a task, and where the closed loop is if it did not."""
    best, loop = task.winner, task.arm("closed loop")
    if best.steps.value == inf:
        return f"{task.task}: nobody wins, for in no arm did half of the runs grok within the budget."
    wins = "comes first" if best.p_value >= SIGNIFICANT else "wins"  # NaN of a fixed λ is no reservation
    sentence = f"{task.task}: {best.arm} {wins} with a median of {_steps(best)} steps{_against(task)}"
    sentence += _reservation(task)
    if loop is None:
        return f"{sentence}; the closed loop was not run."
    if loop.arm == best.arm:
        return f"{sentence}."
    if loop.steps.value == inf:
        return f"{sentence}; the closed loop does not win: fewer than half of its runs grok."
    return f"{sentence}; the closed loop does not win, with {_steps(loop)}."


def _against(task: TaskResult) -> str:
    """How the winner stands to the best fixed λ."""
    best, fixed = task.winner, task.arm(task.best_fixed or "")
    if fixed is None:
        return ""
    if fixed.arm == best.arm:
        return ", so no rule beats a fixed λ"
    certainty = _certainty(best.p_value)
    if fixed.steps.value == inf:
        return f", where with no fixed λ half of the runs grok, {certainty}"
    return f" against {_steps(fixed)} of {fixed.arm}, {certainty}"


def _reservation(task: TaskResult) -> str:
    """A median does not see the runs of a winner that never grok; then who is first among those that always do."""
    best = task.winner
    if best.grokked.value == 1:
        return ""
    count = round(best.grokked.value * best.grokked.items)
    sentence = f", though only {count} of its {best.grokked.items} runs grok"
    always = [arm for arm in task.arms if arm.grokked.value == 1]
    if not always:
        return f"{sentence} (in no arm did all of them)"
    first = min(always, key=rank)
    return f"{sentence} (of the arms in which all did, {first.arm} is first with {_steps(first)})"


def _steps(arm: ArmResult) -> str:
    return f"{arm.steps.value:,.0f}"


def _certainty(p_value: float) -> str:
    clear = "a difference" if p_value < SIGNIFICANT else "no clear difference"
    return f"{clear} (p = {p_value:.2g})"


def bakeoff_table(
    records: Iterable[RunRecord], seconds_per_step: Mapping[str, float] | None = None, place: str = ""
) -> Table:
    """One row for each task and arm; `place` says where the speeds were measured."""
    known = list(records)
    results = bakeoff_results(known, seconds_per_step)
    rows = tuple(_row(arm) for task in results for arm in task.arms)
    notes = (
        *(verdict(task) for task in results),
        "A run that did not grok, or failed, counts as later than its budget. Medians and intervals (95 %) by "
        "Kaplan–Meier, shares by Clopper–Pearson, p by log-rank against the fixed λ with the shortest median on that "
        "task, adjusted by Holm for the task's other arms. The log-rank test sees little where curves cross: where one "
        "arm groks early or never, and another late and always.",
        "Collapsed: validation accuracy below 0.9, or not a number, while a grokked run was watched (1,000 steps, or "
        "to the end of its budget).",
        *what_logs_show(known),
        _settings_note(),
        _time_note(seconds_per_step, place),
        *_left_out(known, results),
    )
    return Table("tab-bakeoff", "tab:bakeoff", "The fair bake-off", COLUMNS, rows, notes)


def _settings_note() -> str:
    how = f"each chosen from four on {TUNING_TASK} with other seeds"
    said = "; ".join(f"{family}: {setting}" for family, setting in CHOSEN.items())
    return f"Settings, {how}: {said}. Of fixed λ all four are shown, and the best is taken with hindsight."


def _row(arm: ArmResult) -> Row:
    steps = _came(arm.steps)
    seconds = Cell() if arm.seconds is None else _came(arm.seconds)
    counts = (Cell(arm.unlearnt), Cell(arm.failed), Cell(arm.collapsed))
    p_value = Cell("baseline") if isnan(arm.p_value) else Cell(arm.p_value)
    grokked = Cell(arm.grokked.value, interval=(arm.grokked.low, arm.grokked.high))
    return (text(arm.task), text(arm.arm), Cell(arm.grokked.items), grokked, steps, seconds, *counts, p_value)


def _came(estimate: Estimate) -> Cell:
    cell = estimated(estimate)
    return Cell("never" if estimate.value == inf else cell.ours, interval=cell.interval)


def _time_note(speeds: Mapping[str, float] | None, place: str) -> str:
    if not speeds:
        return "No speed was measured, so times are in optimiser steps alone."
    where = f" on {place}" if place else ""
    return f"Seconds: steps times the measured time of one run's step in a full stack{where}; looks are not counted."


def _left_out(records: Sequence[RunRecord], results: Sequence[TaskResult]) -> tuple[str, ...]:
    count = sum(arm_of(record.spec) is None for record in records)
    others = (f"Runs of no arm, left out: {count}.",) if count else ()
    is_uneven = any({arm.arm for arm in task.arms} != {*ARMS} for task in results) or any(
        len({arm.grokked.items for arm in task.arms}) > 1 for task in results
    )
    return (*others, "Arms have different numbers of runs: some are missing.") if is_uneven else others


def tuned(records: Iterable[RunRecord]) -> tuple[dict[str, str], Table]:
    """Every family's setting by the rule set beforehand, and what each setting did on the tuning seeds.

    Fewest runs that failed to grok or collapsed come first; among equals, the shortest median time to grok.
    """
    by_hash = {record.spec.content_hash: record for record in records}
    n_seeds = max((record.spec.seeds.data_order + 1 - FIRST_TUNING_SEED for record in by_hash.values()), default=0)
    results: dict[str, dict[str, ArmResult]] = {}
    for precision in sorted({record.spec.precision for record in by_hash.values()}):
        for (family, setting), runs in tuning_runs(n_seeds, precision).items():
            own = [by_hash[run.content_hash] for run in runs if run.content_hash in by_hash]
            if own:
                name, times = f"{family}, {setting}", [_time(record) for record in own]
                results.setdefault(family, {})[setting] = _arm_result(TUNING_TASK, name, own, times, None)
    if not results:
        raise InputError(
            "there is no finished tuning run; run the plan of `grokscope reproduce bakeoff-tuning --plan-only FILE`"
        )
    chosen = {family: min(arms, key=lambda setting: _tuning_rank(arms[setting])) for family, arms in results.items()}
    arms = [arm for settings in results.values() for arm in settings.values()]
    is_uneven = len({arm.grokked.items for arm in arms}) > 1
    uneven = ("Settings have different numbers of runs: some are missing.",) if is_uneven else ()
    said = "; ".join(f"{family}: {setting}" for family, setting in chosen.items())
    notes = (f"Chosen: {said}; fewest failures and collapses first, then the shortest median.", *uneven)
    rows = tuple(_row(arm)[:-1] for arm in arms)  # there is no baseline
    return chosen, Table("tab-tuning", "tab:tuning", "Tuning of the bake-off", COLUMNS[:-1], rows, notes)


def _tuning_rank(arm: ArmResult) -> tuple[float, float]:
    missed = arm.grokked.items - round(arm.grokked.value * arm.grokked.items)
    return ((missed + arm.collapsed) / arm.grokked.items, arm.steps.value)
