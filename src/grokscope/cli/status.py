"""`grokscope status` and `cancel`: how far a folder of runs is, and how its workers are stopped."""

import json
import os
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from grokscope.cli.damage import describe_damage
from grokscope.cli.options import JsonFlag, Place
from grokscope.errors import InputError, for_shell, plural
from grokscope.runs import Run, Store, is_remote, kept_plans, open_runs, open_store
from grokscope.runs.index import Facts
from grokscope.runs.locks import lock_owner
from grokscope.runs.run_folder import MADE_FOR
from grokscope.runs.runs import SUMMARIZED
from grokscope.specs import RunSpec

__all__ = ["cancel", "status"]

BEFORE_ITS_TURN = {"format", "spec.json", MADE_FOR, "lock"}  # what a run's folder is made with


def status(folder: Place, as_json: JsonFlag = False) -> None:
    """Print how many runs of a folder are finished, begun and pending.

    The processes that train them are named, and so are runs and plans that are damaged.

    Examples:
        grokscope status runs/decays
    """
    with open_store(folder, only=("format", *SUMMARIZED)) as store:
        rows, damaged = _rows_of(folder, store)
        damaged_plans: list[str] = []
        planned = {spec.content_hash for plan in kept_plans(store, damaged_plans.append) for spec in plan.runs}
        begun = {name.rpartition("-")[2] for name in (*(row["run"] for row in rows), *damaged)}
        unended = [row for row in rows if not _has_ended(row)]
        began = [row for row in unended if is_remote(folder) or _has_begun(store.path / row["run"])]
        outcomes = Counter(str(row["outcome"]) for row in rows if _has_ended(row))
        writers = {owner for row in rows if (owner := lock_owner(store.path / row["run"] / "lock")) is not None}
        facts = {
            "planned": len(planned | begun),
            "damaged": damaged,
            "damaged_plans": damaged_plans,
            "finished": sum(outcomes.values()),
            "begun": len(began),
            "waiting": len(planned - begun) + len(unended) - len(began),
            "outcomes": dict(sorted(outcomes.items())),
            "stopped_early": sum(row["stopped_early"] for row in rows),
            "writers": sorted(writers),
            "cancelled": store.is_cancelled,
        }
    if as_json:
        print(json.dumps(facts))
        return
    counts = "; ".join(f"{count:,} {words}" for words, count in sorted(outcomes.items()))
    ended = f"{facts['finished']:,} finished{f' ({counts})' if counts else ''}"
    broken = f", {len(damaged)} damaged" if damaged else ""
    going = f"{facts['begun']:,} begun, {facts['waiting']:,} pending"
    print(f"{plural(facts['planned'], 'run')}: {ended}, {going}{broken}")
    if facts["stopped_early"]:
        print(f"{facts['stopped_early']} ended early after grokking (--stop-after-grokking)")
    if writers:
        print(f"written by {', '.join(sorted(writers))}")
    if facts["cancelled"]:
        print(f"cancelled; continue with `grokscope resume {for_shell(folder)}`")
    if damage := describe_damage(damaged, folder, damaged_plans):
        print(damage)


def _has_ended(row: Facts) -> bool:
    return row["outcome"] != "unfinished"


def _has_begun(folder: Path) -> bool:
    """Whether a run's folder holds more than what it is made with before its turn comes."""
    return not {entry.name for entry in os.scandir(folder)} <= BEFORE_ITS_TURN


def _rows_of(folder: str, store: Store) -> tuple[list[Facts], dict[str, str]]:
    """A row of each run that is not damaged, and the names of the others with what is wrong."""
    if is_remote(folder):
        folders, damaged = store.survey()
        return [Run(one).facts(False) for one in folders], damaged
    rows = open_runs(folder).facts(complete=False)
    damaged = {row["run"]: row["problem"] for row in rows if row["problem"] is not None}
    return [row for row in rows if row["run"] not in damaged], damaged


def cancel(folder: Place) -> None:
    """Stop every worker of a folder, wherever it runs.

    Each worker saves its state before it stops.

    Examples:
        grokscope cancel runs/decays
    """
    if not is_remote(folder):
        open_runs(folder)  # rejects a folder that is not there
    with open_store(folder) as store:
        planned = {spec for plan in kept_plans(store) for spec in plan.runs}
        if not planned and not store.names():
            raise InputError(f"there are no runs in {folder}")
        if _have_ended(store, planned):
            print(f"nothing is to be stopped: every run of {folder} is finished")
            return
        store.cancel()
    print(f"every worker will stop within seconds; continue with `grokscope resume {for_shell(folder)}`")


def _have_ended(store: Store, planned: Collection[RunSpec]) -> bool:
    """Whether every run that is planned or stored has ended; of a remote store the plans are asked alone."""
    try:
        stored = [] if is_remote(store.address) else list(store)
        return all(map(store.is_finished, planned)) and all(one.outcome.is_finished for one in stored)
    except InputError:  # what is damaged is not known to have ended
        return False
