"""`grokscope list`: the runs of a folder, ten thousand of them within a second; so nothing here may load torch."""

import json
from collections import Counter
from math import isfinite
from typing import Any

from grokscope.cli.columns import align
from grokscope.cli.damage import describe_damage
from grokscope.cli.nearby import describe_absence
from grokscope.cli.options import Folder, JsonFlag
from grokscope.errors import InputError, shown
from grokscope.runs import Runs, open_runs
from grokscope.runs.logs import Columns, columns_from
from grokscope.runs.records import DAMAGED, RunRecord
from grokscope.runs.settings import differing
from grokscope.specs import ReadingSpec, RunSpec
from grokscope.timeline import judged_row
from grokscope.view.decay import decay_path, describe_release
from grokscope.view.outcomes import BEFORE, memorized_before

__all__ = ["list_runs"]

SHOWN = ("task", "weight_decay", "fork")  # settings with a column of their own
REACHED = {
    "memorized": ("train_accuracy", ReadingSpec().memorized),
    "grokked": ("validation_accuracy", ReadingSpec().grokked),
}
UNSTABLE = {"not_stable": "no", "censored": "open"}
FIRST = ("kind", "loss")  # of those, the ones that say most
MOST_VARIED = 4  # other settings that are shown
MOST_COMPARED = 1000  # runs whose settings are compared
MOST_FOLLOWED = 200  # unfinished runs whose logs are read


def list_runs(folder: Folder, as_json: JsonFlag = False) -> None:
    """List the runs of a folder with their outcomes.

    Columns: the run, named by its task and seed; its weight decay λ and whatever else the runs differ in; its outcome;
    the steps at which it memorised and grokked; stable, the step of grokking of a run whose validation accuracy was at
    least .95 at every evaluation of the next 2,000 steps (no: it fell below, also if it recovered; open: it was not
    seen for long enough); the forecast of a run that is not finished (how probably it groks by its last step, and the
    median step; ?: unlike the runs fitted to); when and why strong decay was let go, if it was
    to be; and the step at which it was forked. Forks follow their parent. A run that is damaged is listed as such, with
    the reason below the table.

    Examples:
        grokscope list runs/first
    """
    runs = open_runs(folder)
    if as_json:
        print(json.dumps(runs.table()))
        return
    rows = runs.facts(complete=False)
    if not rows:
        print(describe_absence(folder))
        return
    whole = [row for row in rows if row["problem"] is None]
    varied = _add_varied(whole)
    _follow_unfinished(runs, [row for row in whole if row["outcome"] == "unfinished"])
    _add_stability(runs, [row for row in whole if row["grokked"] is not None and row["stability"] is None])
    rows.sort(key=_place)
    _add_releases(whole)
    columns = {"run": "run", "λ": "weight_decay", **dict(zip(varied, varied, strict=True))}
    columns |= {"outcome": "outcome", "memorised": "memorized", "grokked": "grokked", "stable": "stable"}
    if any(row.get("forecast") for row in rows):
        columns["forecast"] = "forecast"
    if any(row.get("released") for row in rows):
        columns["let go"] = "released"
    if any(row["fork_step"] is not None for row in rows):
        columns["forked at"] = "fork_step"
    cells = [[_cell(row, name) for name in columns.values()] for row in rows]
    print(align(list(columns), cells, left=frozenset({"run", "outcome", *FIRST})))
    counts = Counter(_cell(row, "outcome") for row in rows)
    outcomes = "; ".join(f"{count:,} {word}" for word, count in counts.most_common())
    print(f"\n{len(rows):,} {'run' if len(rows) == 1 else 'runs'}: {outcomes}")
    if damage := describe_damage({row["run"]: row["problem"] for row in rows if row["problem"] is not None}, folder):
        print(f"\n{damage}")


def _place(row: dict[str, Any]) -> tuple[Any, ...]:
    """Runs by task and seed, each before its forks, which stand in the order of their steps and λ."""
    return row["task"] or "", row["seed"] or 0, row["fork_step"] or -1, row["weight_decay"] or 0.0, row["run"]


def _add_varied(rows: list[dict[str, Any]]) -> list[str]:
    """Add to each row the settings without a column of their own in which the runs differ; their names."""
    if not 1 < len(rows) <= MOST_COMPARED:
        return []
    specs = [RunSpec.from_json(row["spec"]) for row in rows]
    columns = differing(specs)
    names = [name for name in columns if name not in SHOWN and not name.startswith(("seeds.", "fork."))]
    names = sorted(names, key=lambda name: name not in FIRST)[:MOST_VARIED]
    for name in names:
        for row, spec, value in zip(rows, specs, columns[name], strict=True):
            known = None if name in spec.architecture.meaningless else value
            row[name] = known if isinstance(known, int | float | str | None) else json.dumps(known)
    return names


def _follow_unfinished(runs: Runs, rows: list[dict[str, Any]]) -> None:
    """Whether an unfinished run is being trained, and what it has reached so far, which only its log says."""
    for row in rows if len(rows) <= MOST_FOLLOWED else ():
        run = runs[row["run"]]
        row["outcome"] = "training" if run.folder.is_held() else "unfinished"
        try:
            log = [judged_row(one) for one in run.folder.log()]
        except InputError as error:
            row |= {"outcome": DAMAGED, "problem": str(error)}
            continue
        for event, (column, threshold) in REACHED.items():
            steps = (one["step"] for one in log if (one.get(column) or 0.0) >= threshold)
            row[event] = min(steps, default=None)
        if row["grokked"] is None and len(log) > 1:  # nothing can be said of a run that has just begun
            row["forecast"] = _forecast(run.spec, columns_from(log))


def _forecast(spec: RunSpec, log: Columns) -> str:
    """Whether an unfinished run groks before its last step, and when, in a few words."""
    from grokscope.forecast import forecast_to, run_prefix

    seen = run_prefix(spec, log)
    [ahead] = forecast_to([seen], [max(spec.training.steps - seen.step, 1)])
    middle = f" about {round(ahead.step + ahead.median, -2):,.0f}" if isfinite(ahead.median) else ""
    return f"{100 * ahead.probability:.0f} %{'' if ahead.is_inside else ' ?'}{middle}"


def _add_stability(runs: Runs, rows: list[dict[str, Any]]) -> None:
    """Whether runs stayed grokked whose outcomes do not say so: unfinished ones, and those of earlier versions."""
    if not 0 < len(rows) <= MOST_FOLLOWED:
        return
    from grokscope.runs.outcome import stable_columns
    from grokscope.timeline import judged_columns, stability

    for row in rows:
        log = judged_columns(columns_from(runs[row["run"]].folder.log()))
        if not log:
            continue
        found = stability([int(step) for step in log["step"]], log["validation_accuracy"], failed_at=row["failed_at"])
        row |= stable_columns(found.to_dict())


def _add_releases(rows: list[dict[str, Any]]) -> None:
    """λ as it is at the end where a rule changed it, and when and why strong decay was let go."""
    changed = [row for row in rows if '"release":{' in row["spec"] or '"control":{' in row["spec"]]
    for row in changed:
        record = RunRecord.from_summary(row)
        row["released"] = describe_release(record.spec, record.outcome)
        if row["weight_decay"] is not None and (path := decay_path(record.spec, record.outcome)):
            row["weight_decay"] = " → ".join(f"{decay:g}" for decay in path)


def _cell(row: dict[str, Any], column: str) -> str:
    if column == "memorized" and memorized_before(row["memorized"], row["fork_step"]):
        return BEFORE
    if column == "stable" and row["stable"] is None:
        return UNSTABLE.get(row["stability"], "–")
    value = "–" if row.get(column) is None else row[column]
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    return str(value) if str(value).isprintable() else shown(str(value))
