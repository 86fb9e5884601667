"""`grokscope status` and `cancel`: how far a folder of runs is, and how its workers are stopped."""

import json
from collections import Counter

from grokscope.cli.options import JsonFlag, Place
from grokscope.errors import InputError, plural
from grokscope.runs import Run, is_remote, kept_plans, open_runs, open_store
from grokscope.runs.locks import lock_owner
from grokscope.runs.runs import SUMMARIZED

__all__ = ["cancel", "status"]


def status(folder: Place, as_json: JsonFlag = False) -> None:
    """Print how many runs of a folder are finished, in progress and pending.

    The processes that train them are named.

    Examples:
        grokscope status runs/decays
    """
    with open_store(folder, only=("format", *SUMMARIZED)) as store:
        rows = [Run(one).facts(False) for one in store] if is_remote(folder) else open_runs(folder).facts(False)
        planned = {spec.content_hash for plan in kept_plans(store) for spec in plan.runs}
        begun = {row["run"].rpartition("-")[2] for row in rows}
        outcomes = Counter(str(row["outcome"]) for row in rows if row["outcome"] != "unfinished")
        writers = {owner for row in rows if (owner := lock_owner(store.path / row["run"] / "lock")) is not None}
        facts = {
            "planned": len(planned | begun),
            "finished": sum(outcomes.values()),
            "begun": len(rows) - sum(outcomes.values()),
            "waiting": len(planned - begun),
            "outcomes": dict(sorted(outcomes.items())),
            "stopped_early": sum(row["stopped_early"] for row in rows),
            "writers": sorted(writers),
            "cancelled": store.is_cancelled,
        }
    if as_json:
        print(json.dumps(facts))
        return
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(outcomes.items()))
    ended = f"{facts['finished']} finished{f' ({counts})' if counts else ''}"
    print(f"{plural(facts['planned'], 'run')}: {ended}, {facts['begun']} in progress, {facts['waiting']} pending")
    if facts["stopped_early"]:
        print(f"{facts['stopped_early']} ended early after grokking: leads computed from them are biased")
    if writers:
        print(f"written by {', '.join(sorted(writers))}")
    if facts["cancelled"]:
        print(f"cancelled; continue with `grokscope resume {folder}`")


def cancel(folder: Place) -> None:
    """Stop every worker of a folder, wherever it runs.

    Each worker saves its state before it stops.

    Examples:
        grokscope cancel runs/decays
    """
    with open_store(folder) as store:
        if not kept_plans(store) and next(iter(store), None) is None:
            raise InputError(f"there are no runs in {folder}")
        store.cancel()
    print(f"every worker will stop within seconds; continue with `grokscope resume {folder}`")
