"""`grokscope reproduce` and `grokscope claims`: the paper run again, and judged."""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.table import Table

from grokscope.cli.arguments import JsonFlag
from grokscope.cli.progress import run_with_progress
from grokscope.cli.train import INTERRUPTED, Device, device_named, write_plan
from grokscope.errors import InputError, shown
from grokscope.files import named
from grokscope.jobs.costs import cost_of
from grokscope.jobs.executors import cores
from grokscope.runs import Store, run_name
from grokscope.runs.doctor import damaged_runs, set_aside
from grokscope.runs.records import RunRecord, save_records, unpacked
from grokscope.specs import Plan
from grokscope.studies.synchronization.experiments import Precision
from grokscope.studies.claims import CLAIMS
from grokscope.studies.evidence import evidence_of
from grokscope.studies.items import studies_of
from grokscope.studies.synchronization.models import save_models
from grokscope.studies.reproduction import records_in, reproduction_plan
from grokscope.studies.results import provenance_of, write_json, write_results
from grokscope.studies.sources import PACKED, Scope, records_at, scope_of
from grokscope.version import __version__

__all__ = ["claims", "remake", "reproduce"]

Damaged = Literal["stop", "rerun", "skip"]
RUNS, RECORDS = "runs", "reproduction.records.gz"


def reproduce(
    items: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="ITEM")] = ("all",),
    out: Path = Path("reproduction"),
    n_seeds: int | None = None,
    quick: bool = False,
    without: tuple[str, ...] = (),
    device: Device = "auto",
    precision: Literal["auto", "float32", "tf32", "bf16"] = "auto",
    deterministic: bool = False,
    damaged: Damaged = "stop",
    dry_run: bool = False,
    plan_only: Path | None = None,
) -> None:
    """Run the paper again: train what its tables and figures need, draw them, and judge every claim.

    It can be stopped at any moment and goes on with the same command; finished runs are used again.

    Example: grokscope reproduce tab-wd fig-wd --n-seeds 4 --dry-run

    Args:
        items: Tables (tab-wd), figures (fig-wd), answers (ans-law), studies (fork), or all.
        out: The folder for runs and results.
        n_seeds: Widen every configuration to this many seeds; the paper's own if not given.
        quick: A reduced version for a machine of two cores; most claims then have too few runs.
        without: Items or studies to leave out.
        device: Where to train; auto takes CUDA if there is one.
        precision: auto is float32 on a CPU and tf32 on CUDA.
        deterministic: Refuse any operation whose result may differ between two runs on one accelerator.
        damaged: What to do with a damaged run: stop and name it, rerun it (the old one is kept), or skip it.
        dry_run: Say how many runs, steps, minutes and megabytes it takes, and stop.
        plan_only: Write the plan to this file, to be run by `python -m grokscope.jobs.worker --spec FILE`.
    """
    started = time.monotonic()
    if n_seeds is not None and not 1 <= n_seeds <= 10_000:
        raise InputError(f"--n-seeds must lie in 1 to 10,000, got {n_seeds}")
    if quick and n_seeds is not None:
        raise InputError("--quick has its own seeds; leave out --n-seeds")
    place = device_named(device, elsewhere=dry_run or plan_only is not None)
    arithmetic: Precision = ("tf32" if place == "cuda" else "float32") if precision == "auto" else precision
    names = studies_of(items, without)
    scope = Scope(n_seeds=n_seeds, precision=arithmetic, quick=quick)
    plan = reproduction_plan(names, str(out / RUNS), device=place, deterministic=deterministic, **scope)
    if dry_run:
        print(_estimated(plan))
        return
    if plan_only is not None:
        write_plan(plan, plan_only)
        return
    _belongs(out, {"precision": arithmetic, "quick": quick})
    store = Store(out / RUNS)
    skipped = _without_damaged(store, damaged)
    plan = replace(plan, runs=tuple(spec for spec in plan.runs if run_name(spec) not in skipped))
    print(_estimated(plan), file=sys.stderr)
    if not run_with_progress(plan):
        print("stopped; everything is stored: the same command goes on from here")
        sys.exit(INTERRUPTED)
    trained = time.monotonic() - started
    # Runs of another precision may lie there too, if a plan was run elsewhere; they are another reproduction's.
    found = [record for record in records_in(store) if record.spec.precision == arithmetic]
    records = [record for record in found if run_name(record.spec) not in skipped]
    save_records(out / RECORDS, records)
    save_models(out / "checkpoints", records, store)
    # From what anybody can read, so that everything follows from the file.
    rows = _made(out, unpacked(out / RECORDS), {"asked_for": [*items], "left_out": [*without]})
    _show(rows)
    whole = time.monotonic() - started
    print(f"{len(plan.runs):,} runs in {trained:,.0f} s; with tables, figures and claims {whole:,.0f} s")
    print(f"results: {out / 'RESULTS.md'}")


def remake(
    results: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")] = Path("results"),
) -> None:
    """Make tables, figures, answers, claims and the page anew from the records in a folder, training nothing.

    Records of several machines are brought together by copying their `*.records.gz` into one folder.

    Example: grokscope remake results

    Args:
        results: A folder with one or more `*.records.gz`, as `grokscope reproduce` writes them.
    """
    if not any(results.glob(PACKED)):
        raise InputError(f"{named(results)} is no folder with {PACKED}, which is what `grokscope reproduce` writes")
    _show(_made(results, records_at(results), {}))


def claims(
    results: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")] = Path("results"),
    as_json: JsonFlag = False,
) -> None:
    """Print every claim of the paper with its verdict, from a folder of results; without one, the rules alone.

    Example: grokscope claims results --json

    Args:
        results: A folder that `grokscope reproduce` has written.
        as_json: Print statements, rules, values, intervals and verdicts for programs.
    """
    path = results / "claims.json"
    if path.exists():
        rows = _judged(path)
    elif results != Path("results"):
        raise InputError(f"{named(results)} has no claims.json; make it with `grokscope reproduce --out {results}`")
    else:
        said = ("name", "statement", "where", "printed", "rule", "table")
        rows = [{key: getattr(claim, key) for key in said} for claim in CLAIMS]
    if as_json:
        print(json.dumps(rows, ensure_ascii=False))
    else:
        _show(rows)


def _estimated(plan: Plan) -> str:
    """What a plan costs, before it is run."""
    cost, on_cores = cost_of(plan), plan.device == "cpu"
    minutes = cost.device_seconds / (cores() if on_cores else 1) / 60
    place = f"{cores()} cores" if on_cores else "an accelerator like the H200"
    return (
        f"{len(plan.runs):,} runs, {cost.steps:,} optimiser steps in all: about {max(minutes, 1):,.0f} minutes on "
        f"{place} by measured speeds, compiling and dear measures not counted, and {cost.bytes_stored / 1e6:,.0f} MB"
    )


def _belongs(out: Path, chosen: dict[str, Any]) -> None:
    """Refuse a folder of another version, precision or kind; mark a new one as ours."""
    path = out / "reproduction.json"
    ours = {"grokscope": __version__, **chosen}
    if path.exists():
        theirs = _read(path)
        for key, value in ours.items():
            if not isinstance(theirs, dict) or theirs.get(key) != value:
                had = theirs.get(key) if isinstance(theirs, dict) else theirs
                raise InputError(
                    f"{named(out)} was made with {key} {shown(had)}, and this is {key} {shown(value)}; "
                    "choose another folder with --out"
                )
        return
    # A plan that was written with --plan-only and run elsewhere leaves runs there, and nothing else.
    if out.exists() and (not out.is_dir() or any(one.name != RUNS for one in out.iterdir())):
        raise InputError(
            f"{named(out)} is there already and was not made by `grokscope reproduce`; choose another --out"
        )
    write_json(path, ours)


def _without_damaged(store: Store, wish: Damaged) -> set[str]:
    """The names of damaged runs to leave out; those to be trained again are set aside."""
    found = damaged_runs(store)
    if found and wish == "stop":
        name, why = next(iter(found.items()))
        more = f" (and {len(found) - 1} more runs)" if len(found) > 1 else ""
        raise InputError(f"{name} is damaged: {why}{more}; use --damaged rerun or --damaged skip")
    for name, why in found.items():
        print(f"{name} is damaged: {why}; {'it is trained again' if wish == 'rerun' else 'left out'}", file=sys.stderr)
    if wish == "rerun":
        set_aside(store, list(found))
        return set()
    return set(found)


def _made(out: Path, records: Sequence[RunRecord], told: dict[str, Any]) -> list[dict[str, Any]]:
    """All that follows from the records."""
    scope = scope_of(records)
    with Console(stderr=True).status("tables and figures") as status:
        done = partial(_tell, status)
        return write_results(evidence_of(records, **scope), out, provenance_of(records, scope, **told), done)


def _tell(status: Status, name: str) -> None:
    status.update(f"made {name}")


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{named(path)} cannot be read: {error}") from None


def _judged(path: Path) -> list[dict[str, Any]]:
    """The claims that `reproduce` has written."""
    rows, needed = _read(path), {"name", "printed", "value", "n", "verdict"}
    if not isinstance(rows, list) or not all(isinstance(row, dict) and needed <= row.keys() for row in rows):
        raise InputError(f"{named(path)} holds no claims as `grokscope reproduce` writes them")
    return rows


def _show(rows: Sequence[dict[str, Any]]) -> None:
    """The claims as a table, and how many have which verdict."""
    judged = bool(rows) and "verdict" in rows[0]
    table = Table(box=None, pad_edge=False)
    for column in ("claim", "paper", *(("ours", "n", "verdict") if judged else ("rule",))):
        table.add_column(column, justify="right" if column == "n" else "left", overflow="fold")
    for row in rows:
        last = (row["value"], str(row["n"]), row["verdict"]) if judged else (row["rule"],)
        table.add_row(*map(escape, (row["name"], row["printed"], *last)))
    Console(highlight=False).print(table)
    if judged:
        counts: dict[str, int] = {}
        for row in rows:
            counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
        print(f"{len(rows)} claims: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
