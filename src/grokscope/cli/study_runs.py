"""A study trained, remade from records, drawn, and its claims printed."""

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Columns

from grokscope.cli.options import ExecutorOptions, HardwareOptions, Precision
from grokscope.cli.plans import device_here, estimate, write_plan
from grokscope.cli.progress import INTERRUPTED, run_with_progress
from grokscope.errors import InputError, did_you_mean, shown
from grokscope.files import named
from grokscope.runs import Store, run_name
from grokscope.runs.doctor import damaged_runs, set_aside
from grokscope.runs.packing import save_records, unpack_records
from grokscope.runs.records import RunRecord, merge_records
from grokscope.studies import Study
from grokscope.studies.claim import claim_rows
from grokscope.studies.results import write_json, write_results
from grokscope.studies.sources import PACKED, read_records, stored_records
from grokscope.version import __version__
from grokscope.view.charts.figure import Figure
from grokscope.view.charts.files import write_figure
from grokscope.view.render import read_aloud
from grokscope.view.table import Table

__all__ = ["draw", "print_claims", "remake", "train_study"]

RUNS, MARK = "runs", "reproduction.json"


def train_study(
    study: Study,
    out: Path,
    *,
    only: Sequence[str],
    without: Sequence[str],
    n_seeds: int | None,
    quick: bool,
    precision: Precision | None,
    damaged: Literal["stop", "rerun", "skip"],
    hardware: HardwareOptions,
    executor: ExecutorOptions,
    dry_run: bool,
    plan_only: Path | None,
    as_json: bool,
) -> None:
    """Train what is missing of a study, and write its results; or print what that costs, or write its plan."""
    started = time.monotonic()
    elsewhere = dry_run or plan_only is not None or executor.executor != "local"
    place = device_here(hardware.device, elsewhere=elsewhere)
    arithmetic: Precision = precision or ("tf32" if place == "cuda" else "float32")
    plan = study.plan(
        study.experiments_for(only or ("all",), without),
        str(out / RUNS),
        n_seeds=n_seeds,
        quick=quick,
        precision=arithmetic,
        device=place,
        deterministic=hardware.deterministic,
    )
    if dry_run:
        print(estimate(plan))
        return
    if plan_only is not None:
        write_plan(plan, plan_only)
        return
    _mark_folder(out, {"grokscope": __version__, "study": study.name, "precision": arithmetic, "quick": quick})
    store = Store(out / RUNS)
    skipped = _set_damaged_aside(store, damaged)
    plan = plan.select(spec for spec in plan.runs if run_name(spec) not in skipped)
    print(estimate(plan), file=sys.stderr)
    if not run_with_progress(plan, executor=executor):
        print("stopped; everything is stored: continue with the same command")
        sys.exit(INTERRUPTED)
    trained = time.monotonic() - started
    # Runs of another precision may be stored there too, if a plan was run elsewhere; they are no part of this one.
    precisions = {spec.precision for spec in plan.runs}
    found = [record for record in stored_records(store) if record.spec.precision in precisions]
    records = [record for record in found if run_name(record.spec) not in skipped]
    path = out / f"{study.name}.records.gz"
    save_records(path, records)
    if study.save_models is not None:
        study.save_models(out / "checkpoints", records, store)
    # From the file that anybody can read, so that everything follows from it.
    selection = {"asked_for": [*only] or ["all"], "left_out": [*without]}
    _write(study, unpack_records(path), out, selection, as_json)
    whole = time.monotonic() - started
    times = f"{len(plan.runs):,} runs in {trained:,.0f} s; with tables, figures and claims {whole:,.0f} s"
    print(f"{times}\nresults: {out}", file=sys.stderr if as_json else sys.stdout)


def remake(study: Study, sources: Sequence[Path], out: Path, as_json: bool) -> None:
    """Write everything that follows from the records in these places, training nothing."""
    for place in sources:
        if not place.is_file() and not any(place.glob(PACKED)):
            raise InputError(f"{named(place)} is no folder with {PACKED}, which is what `grokscope reproduce` writes")
    _write(study, _read_records(sources), out, {}, as_json)


def draw(study: Study, name: str, sources: Sequence[Path], out: Path) -> None:
    """Draw a figure of a study, or all of them, from runs or records."""
    from grokscope.view.charts.style import require_matplotlib

    figures = {item.name: item for item in study.figures}
    if name not in (*figures, "all"):
        raise InputError(f"{study.name} has no figure {shown(name)}{did_you_mean(name, (*figures, 'all'))}")
    if not sources:
        raise InputError("--figure needs --from, where the runs or records are")
    require_matplotlib()
    with Console(stderr=True).status("reading the records"):
        evidence = study.evidence(_read_records(sources), sources[0])
    for one in figures if name == "all" else (name,):
        drawn = figures[one].build(evidence)
        assert isinstance(drawn, Figure)
        paths = write_figure(drawn, out)
        print("\n  ".join([drawn.title, *drawn.notes, f"wrote {', '.join(map(str, paths))}"]))


def print_claims(study: Study, sources: Sequence[Path], as_json: bool) -> None:
    """Print the claims of a study with their verdicts in a folder of results; without one, with their rules."""
    if not study.claims:
        raise InputError(f"{study.name} has no claims")
    if len(sources) > 1:
        raise InputError(f"--claims reads one folder of results, got {len(sources)}")
    rows = _read_claims(sources[0]) if sources else claim_rows(study.claims)
    if as_json:
        print(json.dumps(list(rows), ensure_ascii=False))
    else:
        _print_rows(rows)


def _read_records(sources: Sequence[Path]) -> list[RunRecord]:
    """The records of several places; one that is in more than one of them counts once."""
    return merge_records(record for place in sources for record in read_records(place))


def _write(study: Study, records: Sequence[RunRecord], out: Path, selection: dict[str, Any], as_json: bool) -> None:
    """Write the results of a study, and print its claims or its table."""
    evidence = study.evidence(records, out)
    with Console(stderr=True).status("tables and figures") as status:
        claims = write_results(study, evidence, out, lambda name: status.update(f"wrote {name}"), **selection)
    for name in evidence.unplaced:
        print(f"{name} was made for no experiment of {study.name}, and is left out", file=sys.stderr)
    if not claims:
        table = study.tables[0].build(evidence)
        assert isinstance(table, Table)
        _print_table(table, as_json)
    elif as_json:
        print(json.dumps(claims, ensure_ascii=False))
    else:
        _print_rows(claims)


def _mark_folder(out: Path, ours: dict[str, Any]) -> None:
    """Reject a folder of another study, version, precision or kind; mark a new one."""
    path = out / MARK
    if path.exists():
        theirs = _read_json(path)
        for key, value in ours.items():
            other = theirs.get(key) if isinstance(theirs, dict) else theirs
            if other != value:
                raise InputError(
                    f"{named(out)} was written with {key} {shown(other)}, and this is {key} {shown(value)}; "
                    "choose another folder with --out"
                )
        return
    # A plan that was written with --plan-only and run elsewhere leaves runs there, and nothing else.
    if out.exists() and (not out.is_dir() or any(one.name != RUNS for one in out.iterdir())):
        raise InputError(f"{named(out)} exists and was not written by `grokscope reproduce`; choose another --out")
    write_json(path, ours)


def _set_damaged_aside(store: Store, wish: Literal["stop", "rerun", "skip"]) -> set[str]:
    """The names of damaged runs to leave out; those to be rerun are set aside."""
    found = damaged_runs(store)
    if found and wish == "stop":
        name, why = next(iter(found.items()))
        more = f" (and {len(found) - 1} more runs)" if len(found) > 1 else ""
        raise InputError(f"{name} is damaged: {why}{more}; use --damaged rerun or --damaged skip")
    for name, why in found.items():
        print(f"{name} is damaged: {why}; {'it is rerun' if wish == 'rerun' else 'left out'}", file=sys.stderr)
    if wish == "rerun":
        set_aside(store, list(found))
        return set()
    return set(found)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{named(path)} cannot be read: {error}") from None


def _read_claims(folder: Path) -> list[dict[str, Any]]:
    path, needed = folder / "claims.json", {"name", "reported", "value", "n", "verdict"}
    if not path.exists():
        raise InputError(f"{named(folder)} has no claims.json, which is what `grokscope reproduce` writes")
    rows = _read_json(path)
    if not isinstance(rows, list) or not all(isinstance(row, dict) and needed <= row.keys() for row in rows):
        raise InputError(f"{named(path)} holds no claims as `grokscope reproduce` writes them")
    return rows


def _print_rows(rows: Sequence[dict[str, Any]]) -> None:
    """The claims as a table, and how many have which verdict."""
    is_judged = bool(rows) and "verdict" in rows[0]
    table = Columns(box=None, pad_edge=False)
    for column in ("claim", "paper", *(("ours", "n", "verdict") if is_judged else ("rule",))):
        table.add_column(column, justify="right" if column == "n" else "left", overflow="fold")
    for row in rows:
        last = (row["value"], str(row["n"]), row["verdict"]) if is_judged else (row["rule"],)
        table.add_row(*map(escape, (row["name"], row["reported"], *last)))
    Console(highlight=False).print(table)
    if is_judged:
        counts = Counter(row["verdict"] for row in rows)
        print(f"{len(rows)} claims: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))


def _print_table(table: Table, as_json: bool) -> None:
    heads, body = read_aloud(table)
    if as_json:
        print(json.dumps([dict(zip(heads, row, strict=True)) for row in body], ensure_ascii=False))
        return
    printed = Columns(box=None)
    for place, head in enumerate(heads):
        printed.add_column(escape(head), justify="left" if place < 2 else "right")
    for row in body:
        printed.add_row(*map(escape, row))
    console = Console(highlight=False)
    console.print(printed)
    for note in table.notes:
        console.print(escape(note), soft_wrap=True)
