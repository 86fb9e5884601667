"""A study trained, remade from records, drawn, and its claims printed."""

import json
import shutil
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from grokscope.cli.columns import print_columns
from grokscope.cli.options import ExecutorOptions, HardwareOptions, Precision
from grokscope.cli.plans import INTERRUPTED, device_here, estimate, run_with_progress, write_plan
from grokscope.errors import InputError, did_you_mean, plural, shown
from grokscope.files import named, write_json
from grokscope.runs import Store, run_name
from grokscope.runs.damage import damaged_runs
from grokscope.runs.doctor import set_aside
from grokscope.runs.packing import save_records, unpack_records
from grokscope.studies import Evidence, Study, rules_digest
from grokscope.studies.claim import claim_rows
from grokscope.studies.page import describe_verdict
from grokscope.studies.parts import PARTS, describe_parts
from grokscope.studies.results import write_results
from grokscope.studies.sources import read_evidence, stored_records
from grokscope.studies.verdicts import compare_verdicts
from grokscope.version import __version__
from grokscope.view import require_module
from grokscope.view.charts.figure import Figure
from grokscope.view.charts.files import write_figure
from grokscope.view.page.sources import read_json
from grokscope.view.render import read_aloud
from grokscope.view.table import Table

__all__ = ["RUNS", "collect", "draw", "mark_folder", "print_claims", "remake", "train_study"]

NO_RUNS = 1
RUNS, MARK = "runs", "reproduction.json"
WIDEST = 120  # columns of a claim
NEEDED = {"name", "statement", "reported", "value", "n", "verdict"}  # of a claim that was judged


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
    seal: Path | None,
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
    study.check_training(plan.runs, seal)
    if plan_only is not None:
        write_plan(plan, plan_only)
        return
    mark_folder(out, {"grokscope": __version__, "study": study.name, "precision": arithmetic, "quick": quick})
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
    records = [record for record in stored_records(store, skipped) if record.spec.precision in precisions]
    path = out / f"{study.name}.records.gz"
    save_records(path, records)
    if study.save_models is not None:
        study.save_models(out / "checkpoints", records, store)
    # From the file that anybody can read, so that everything follows from it.
    selection = {"only": [*only] or ["all"], "without": [*without]}
    claims = _write(study, study.evidence(unpack_records(path), out), out, selection, as_json)
    if quick and (compared := compare_verdicts(study.name, claims)):
        print(compared, file=sys.stderr if as_json else sys.stdout)
    whole = time.monotonic() - started
    times = f"{len(plan.runs):,} runs in {trained:,.0f} s; with tables, figures and claims {whole:,.0f} s"
    print(f"{times}\nresults: {out}", file=sys.stderr if as_json else sys.stdout)


def remake(study: Study, sources: Sequence[Path], out: Path, as_json: bool) -> None:
    """Write everything that follows from the records in these places, training nothing."""
    with Console(stderr=True).status("reading the records"):
        evidence = read_evidence(study, *sources)
    _write(study, evidence, out, {}, as_json)


def collect(study: Study, sources: Sequence[Path], out: Path) -> None:
    """Write the records in these places as Parquet tables."""
    from grokscope.view.collection_files import LARGEST, write_collection

    with Console(stderr=True).status("reading the records"):
        evidence = read_evidence(study, *sources)
    records = {one.name: one for runs in evidence.records.values() for one in runs.values()}
    paths = write_collection(list(records.values()), out, study.name, study.title, study.sparse_columns)
    print("\n".join(f"wrote {path}: {path.stat().st_size:,} bytes" for path in paths))
    if parts := describe_parts(sources):
        write_json(out / PARTS, parts)
    if (size := sum(path.stat().st_size for path in paths)) > LARGEST:
        print(f"the collection has {size:,} bytes, more than {LARGEST:,}", file=sys.stderr)


def draw(study: Study, name: str, sources: Sequence[Path], out: Path) -> None:
    """Draw a figure of a study, or all of them, from runs or records."""
    figures = {item.name: item for item in study.figures}
    if name not in (*figures, "all"):
        raise InputError(f"{study.name} has no figure {shown(name)}{did_you_mean(name, (*figures, 'all'))}")
    require_module("matplotlib", "report")
    with Console(stderr=True).status("reading the records"):
        evidence = read_evidence(study, *sources)
    has_runs = False
    for one in figures if name == "all" else (name,):
        drawn = study.build(figures[one], evidence, Figure)
        paths = write_figure(drawn, out)
        has_runs |= any(panel.has_runs for panel in drawn.panels)
        print("\n  ".join([drawn.title, *drawn.notes, f"wrote {', '.join(map(str, paths))}"]))
    if not has_runs:
        print("none of these runs is in it: it shows what is reported, and nothing else", file=sys.stderr)
        sys.exit(NO_RUNS)


def print_claims(study: Study, sources: Sequence[Path], as_json: bool) -> None:
    """Print the claims of a study with their verdicts in a folder of results; without one, with their rules."""
    if not study.claims:
        raise InputError(f"{study.name} has no claims")
    if len(sources) > 1:
        raise InputError(f"--claims reads one folder of results, got {len(sources)}")
    _print_rows(_read_claims(study, sources[0]) if sources else claim_rows(study.claims), as_json)
    if not sources and not as_json:
        print(f"digest of these rules: {rules_digest(study.claims)}")


def _write(
    study: Study, evidence: Evidence, out: Path, selection: dict[str, Any], as_json: bool
) -> list[dict[str, Any]]:
    """Write the results of a study, and print its claims or its first table; the claims."""
    with Console(stderr=True).status("tables and figures") as status:
        claims = write_results(study, evidence, out, lambda name: status.update(f"wrote {name}"), **selection)
    for name in evidence.unplaced:
        print(f"{name} was made for no experiment of {study.name}, and is left out", file=sys.stderr)
    if claims:
        _print_rows(claims, as_json)
    elif study.tables:
        table = study.build(study.tables[0], evidence, Table)
        heads, body = read_aloud(table)
        if as_json:
            print(json.dumps([dict(zip(heads, row, strict=True)) for row in body], ensure_ascii=False))
        else:
            print_columns(heads, body, right=frozenset(heads[2:]))
            print(*table.notes, sep="\n")
    return claims


def mark_folder(out: Path, ours: dict[str, Any]) -> None:
    """Reject a folder of another study, version, precision or kind; mark a new one."""
    theirs = read_json(out / MARK, dict)
    for key, value in ours.items():
        if theirs and theirs.get(key) != value:
            raise InputError(
                f"{named(out)} was written with {key} {shown(theirs.get(key))}, and this is {key} {shown(value)}; "
                "choose another folder with --out"
            )
    # A plan that was written with --plan-only and run elsewhere leaves runs there, and nothing else.
    if not theirs and out.exists() and (not out.is_dir() or any(one.name != RUNS for one in out.iterdir())):
        raise InputError(f"{named(out)} exists and was not written by `grokscope reproduce`; choose another --out")
    write_json(out / MARK, ours)


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


def _read_claims(study: Study, folder: Path) -> list[dict[str, Any]]:
    """The claims in a folder of results; other rules than the study has today are reported."""
    rows: list[Any] = read_json(folder / "claims.json", list) if folder.is_dir() else []
    if not rows or not all(isinstance(row, dict) and row.keys() >= NEEDED for row in rows):
        raise InputError(f"{named(folder)} has no claims.json with claims as `grokscope reproduce` writes them")
    theirs, ours = read_json(folder / "provenance.json", dict).get("rules"), rules_digest(study.claims)
    if theirs != ours:
        print(
            f"note: these verdicts follow from other rules than those of {study.name} today (digest "
            f"{str(theirs or 'unknown')[:12]}, today {ours[:12]}); --remake judges the same records by today's",
            file=sys.stderr,
        )
    return rows


def _print_rows(rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    """Each claim with its statement and verdict, or its rule, and how many have which verdict."""
    if as_json:
        print(json.dumps(list(rows), ensure_ascii=False))
        return
    is_judged = "verdict" in rows[0]
    for row in rows:
        found = f"ours, n = {row['n']}: {row['value']}. {row.get('why', '')}" if is_judged else f"rule: {row['rule']}"
        verdict = describe_verdict(row) if "share" in row else row.get("verdict")
        _print_folded(f"{row['name']}: {verdict}" if is_judged else str(row["name"]), "")
        for text in (str(row["statement"]), f"paper: {row['reported']}", found):
            _print_folded(text, "  ")
    if is_judged:
        counts = Counter(row["verdict"] for row in rows)
        print(f"{plural(len(rows), 'claim')}: " + ", ".join(f"{count} {word}" for word, count in counts.items()))


def _print_folded(text: str, indent: str) -> None:
    """Print a text in lines as wide as the window; what a foreign file holds is no command to a terminal."""
    width = min(shutil.get_terminal_size().columns, WIDEST)
    plain = text if text.isprintable() else shown(text)
    print(textwrap.fill(plain, width, initial_indent=indent, subsequent_indent=f"{indent}  "))
