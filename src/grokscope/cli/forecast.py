"""`grokscope forecast`: where runs are heading, and which of them could be stopped."""

import json
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Annotated

import tyro

from grokscope.cli.columns import align
from grokscope.cli.damage import describe_damage
from grokscope.cli.nearby import describe_absence
from grokscope.cli.options import Flag, Folder, JsonFlag, reject
from grokscope.errors import plural
from grokscope.runs import open_runs

if TYPE_CHECKING:
    from grokscope.forecast import Forecast
    from grokscope.forecast.advice import Advice

__all__ = ["forecast"]

Chosen = Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")]


@dataclass(frozen=True)
class _Row:
    """One run with its forecast."""

    name: str
    ahead: "Forecast"
    advice: "Advice"


def forecast(
    folder: Folder,
    horizon: Chosen = None,
    at: Chosen = None,
    unfinished: Annotated[Flag, tyro.conf.arg(help_behavior_hint="")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Say where runs are heading: whether each will grok, and when.

    Each run is forecast from what was evaluated so far, by a survival model that was fitted to other runs; of a run
    unlike those it says so (?). Columns: the last evaluation that is used; the probability that the run groks by its
    last step; the steps by which that is 10 %, 50 % and 90 % likely; and advice. Nothing is stopped by this command.

    Args:
        horizon: Steps ahead that the probability is for; to the run's last step if not given.
        at: Forecast as of this step, as if nothing later were known.
        unfinished: Leave out runs that have ended.

    Examples:
        grokscope forecast runs/first
        grokscope forecast runs/first --at 1000 --horizon 5000
    """
    reject(
        {
            f"--horizon must be at least 1, got {horizon}": horizon is not None and horizon < 1,
            f"--at must be at least 0, got {at}": at is not None and at < 0,
        }
    )
    runs = open_runs(folder)
    if not runs:
        print(describe_absence(folder))
        return
    rows, damaged = _forecasts(folder, horizon, at, unfinished)
    if as_json:
        print(json.dumps([{"run": row.name, **row.ahead.to_dict(), "advice": vars(row.advice)} for row in rows]))
        return
    if not rows:
        print("no run has an evaluation to forecast from")
    else:
        head = ["run", "at step", "groks", "10 % by", "50 % by", "90 % by", "advice"]
        print(align(head, [_cells(row) for row in rows], left=frozenset({"run", "advice"})))
        stopped = [row for row in rows if row.advice.stops]
        saved = sum(row.advice.saves for row in stopped)
        print(f"\n{plural(len(rows), 'run')}; stopping {len(stopped)} of them now would save {plural(saved, 'step')}")
        for basis in dict.fromkeys(row.ahead.basis for row in rows if row.ahead.grokked is None):
            print(f"basis: {basis}")
        for reason in dict.fromkeys(reason for row in rows for reason in row.ahead.outside):
            print(f"(?) {reason}")
    if damage := describe_damage(damaged, folder):
        print(f"\n{damage}")


def _forecasts(
    folder: Folder, horizon: int | None, at: int | None, unfinished: bool
) -> tuple[list[_Row], dict[str, str]]:
    from grokscope.forecast import Prefix, forecast_runs, forecast_to, run_prefix
    from grokscope.forecast.advice import stopping_advice

    whole, damaged = open_runs(folder).survey()
    members: list[tuple[str, int, Prefix]] = []
    for run in whole:
        record = run.record
        steps = record.evaluations.get("step", [])
        if (unfinished and record.outcome.is_finished) or not steps or (at is not None and steps[0] > at):
            continue
        seen = run_prefix(record.spec, record.evaluations, at)
        has_ended = record.outcome.is_finished and at is None
        members.append((run.name, seen.step if has_ended else record.spec.training.steps, seen))
    prefixes = [seen for _, _, seen in members]
    to_end = forecast_to(prefixes, [max(budget - seen.step, 1) for _, budget, seen in members])
    shown = to_end if horizon is None else forecast_runs(prefixes, horizon)
    rows = [
        _Row(name, one, stopping_advice(end, budget))
        for (name, budget, _), one, end in zip(members, shown, to_end, strict=True)
    ]
    return sorted(rows, key=lambda row: row.name), damaged


def _cells(row: _Row) -> list[str]:
    one = row.ahead
    if one.grokked is not None:
        return [row.name, f"{one.step:,}", "yes", "–", f"{one.grokked:,}", "–", row.advice.sentence]
    by = [_step(one.step + one.quantiles[level]) for level in (0.1, 0.5, 0.9)]
    mark = "" if one.is_inside else " ?"
    return [row.name, f"{one.step:,}", f"{100 * one.probability:.0f} %{mark}", *by, row.advice.sentence]


def _step(step: float) -> str:
    return f"{round(step, -2):,.0f}" if isfinite(step) else "never"
