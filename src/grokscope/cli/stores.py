"""`grokscope status`, `cancel` and `pull`: folders of runs as a whole, wherever they lie."""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import tyro

from grokscope.cli.arguments import JsonFlag, Place
from grokscope.errors import InputError
from grokscope.runs import (
    Run,
    is_remote,
    open_runs,
    open_store,
    pull,
    remembered,
)
from grokscope.runs.locks import owner_of
from grokscope.runs.runs import SUMMARIZED

__all__ = ["cancel", "pull_runs", "status"]


def status(out: Place, as_json: JsonFlag = False) -> None:
    """Say how far the sweeps of a folder are: finished, begun and waiting runs, and who is at work.

    Example: grokscope status runs/decays

    Args:
        out: A folder of runs, or a remote address.
        as_json: Print facts for programs instead of people.
    """
    with open_store(out, only=("format", *SUMMARIZED)) as store:
        rows = [Run(folder).facts() for folder in store] if is_remote(out) else open_runs(out).facts()
        planned = {spec.content_hash for plan in remembered(store) for spec in plan.runs}
        begun = {row["run"].rpartition("-")[2] for row in rows}
        outcomes = Counter(str(row["outcome"]) for row in rows if row["outcome"] != "unfinished")
        writers = {owner for row in rows if (owner := owner_of(store.path / row["run"] / "lock")) is not None}
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
    told = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(outcomes.items()))
    ended = f"{facts['finished']} finished{f' ({told})' if told else ''}"
    print(f"{facts['planned']} runs: {ended}, {facts['begun']} begun, {facts['waiting']} waiting")
    if facts["stopped_early"]:
        print(f"{facts['stopped_early']} ended early after grokking: leads computed from them are biased")
    if writers:
        print(f"written by {', '.join(sorted(writers))}")
    if facts["cancelled"]:
        print(f"cancelled; continue with `grokscope resume {out}`")


def cancel(out: Place) -> None:
    """Ask every worker of a folder, wherever it runs, to store everything and stop.

    Example: grokscope cancel runs/decays

    Args:
        out: A folder of runs, or a remote address.
    """
    with open_store(out) as store:
        if not remembered(store) and next(iter(store), None) is None:
            raise InputError(f"there are no runs in {out}")
        store.cancel()
    print(f"asked every worker to stop; continue with `grokscope resume {out}`")


def pull_runs(source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ADDRESS")], out: Path) -> None:
    """Copy the committed runs of a remote store into a folder, each file checked.

    Example: grokscope pull s3://bucket/decays --out runs/decays

    Args:
        source: A remote address, such as s3://bucket/sweep.
        out: The folder for the runs.
    """
    if not is_remote(source):
        raise InputError(f"{source} is no remote address such as s3://bucket/sweep")
    out.mkdir(parents=True, exist_ok=True)
    print(f"copied {pull(source, out)} runs to {out}")
