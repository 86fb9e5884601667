"""`grokscope measures` and `measure`: what can be measured, and measuring it on stored runs."""

import csv
import io
import json
import textwrap
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from grokscope.activations import Conditioning
from grokscope.cli.arguments import JsonFlag
from grokscope.errors import InputError
from grokscope.files import disk_error, named, write_atomically
from grokscope.measures.catalogue import MEASURES, Row, measure, measure_named
from grokscope.measures.question import Question
from grokscope.runs import Reading, measure_checkpoints, open_runs
from grokscope.specs import ReadingSpec

__all__ = ["measure_run", "measures"]


def measures(
    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")] = None, as_json: JsonFlag = False
) -> None:
    """List every measure, or explain one: formula, source, cost, null, columns, and how to compute it.

    Example: grokscope measures fsd

    Args:
        name: A measure; all if not given.
        as_json: Print facts for programs instead of people.
    """
    console = Console(highlight=False)
    if as_json:
        chosen = MEASURES if name is None else {name: measure_named(name)}
        print(json.dumps({key: _facts(key) for key in chosen}))
    elif name is None:
        table = Table(box=None)
        for column in ("measure", "what it is", "source"):
            table.add_column(column, overflow="fold", no_wrap=column == "measure")
        for key, one in MEASURES.items():
            table.add_row(key, escape(one.title), escape(one.source))
        console.print(table)
    else:
        _explain(console, name)


def _facts(name: str) -> dict[str, object]:
    one = measure_named(name)
    words = ("title", "formula", "source", "cost", "null", "undefined")
    return {word: getattr(one, word) for word in words} | {"columns": dict(one.columns)}


def _explain(console: Console, name: str) -> None:
    one = measure_named(name)
    console.print(f"[bold]{name}[/bold]: {escape(one.title)}\n", soft_wrap=True)
    console.print(escape(textwrap.indent(one.formula, "    ")) + "\n", soft_wrap=True)
    for word in ("source", "cost", "null", "undefined"):
        console.print(f"{word:>9}  {escape(getattr(one, word))}", soft_wrap=True)
    console.print("\ncolumns")
    for column, meaning in one.columns.items():
        console.print(f"  {escape(column)}: {escape(meaning)}", soft_wrap=True)
    console.print(f"\nexample\n  grokscope measure add_mod97_s0 --measures {name} --out runs/first", soft_wrap=True)
    console.print(f"\n{escape(_worked_example(name))}", soft_wrap=True)


def _worked_example(name: str) -> str:
    """Two untrained networks on addition mod 7, measured here and now."""
    from grokscope.activations import subject_of
    from grokscope.specs import Architecture, RunSpec
    from grokscope.training import Cohort

    spec = RunSpec(task="add_mod7", architecture=Architecture(width=16, mlp_width=32))
    specs = [spec.with_seed(seed) for seed in (0, 1)]
    subject = subject_of(specs, Cohort(specs).initial(), ["seed 0", "seed 1"])
    rows = measure(Question(subject, spec=spec), [name])
    lines = ["on two untrained networks that add modulo 7 (seeds 0 and 1)"]
    lines += [
        f"  {column}: {', '.join(_shown(row[column]) for row in rows)}" for column in rows[0] if column != "undefined"
    ]
    return "\n".join(lines)


def measure_run(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    measures: str = "fsd,rank,memorization,norms",
    out: Path = Path("runs"),
    steps: tuple[int, ...] = (),
    by: Conditioning = "answer",
    basis: str = "",
    reference: int | None = None,
    reading: Path | None = None,
    seed: int = 0,
    device: Literal["cpu", "cuda", "mps"] = "cpu",
    to: Path | None = None,
) -> None:
    """Measure a run at its checkpoints, and write a table: a row for each, with every measure's columns.

    A value that is undefined is nan in a .csv file and null in a .json file, and the column `undefined` says why.

    Example: grokscope measure add_mod97_s0 --measures fsd,rank,paper_restricted --out runs/first

    Args:
        run: The run's name, hash, or the beginning of either.
        measures: Names from `grokscope measures`, with commas between.
        out: The folder it is stored in.
        steps: Stored steps; all if not given.
        by: Condition on the answer, or on a + b as the paper reads multiplication.
        basis: The basis to read in; the task's own if not given (`grokscope tasks TASK` lists them).
        reference: A stored step whose key modes restricted and excluded losses take (retrospective).
        reading: A JSON file with a ReadingSpec: where FSD is read, and the choices of paper_restricted and fourier_kan.
        seed: Of everything drawn: nulls, resampled inputs, trained fits.
        device: Where to compute.
        to: The file to write, .csv or .json; RUN-measures.csv if not given.
    """
    found = open_runs(out)[run]
    names = [name.strip() for name in measures.split(",") if name.strip()]
    path = to or Path(f"{found.name}-measures.csv")
    _refuse_bad_place(path)
    parts = measure_checkpoints(found, names, Reading(steps, by, basis, reference, _reading(reading), seed, device))
    rows: list[Row] = []
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal) as bar:
        waiting = bar.add_task(f"measuring {escape(found.name)}", total=len(steps or found.steps))
        for part in parts:
            rows += part
            bar.advance(waiting, len(part))
    write_atomically(path, _written(rows, path.suffix).encode())
    _print(rows)
    print(f"wrote {path}")


def _refuse_bad_place(path: Path) -> None:
    """Measuring may take hours: where its table cannot be written is said before."""
    if path.suffix not in (".csv", ".json"):
        raise InputError(f"a table is written as .csv or .json, got {named(path)}")
    if not path.name.isprintable():
        raise InputError(f"a table needs a printable name, got {named(path)}")
    try:
        is_there, has_folder = path.exists(), path.parent.is_dir()
    except OSError as error:
        raise disk_error(path, error) from None
    if is_there:
        raise InputError(f"{named(path)} exists already; nothing was overwritten")
    if not has_folder:
        raise InputError(f"there is no folder {named(path.parent)} to write {named(Path(path.name))} in")


def _reading(path: Path | None) -> ReadingSpec:
    if path is None:
        return ReadingSpec()
    try:
        return ReadingSpec.from_json(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the reading {named(path)} cannot be read: {error}") from None


def _written(rows: list[Row], suffix: str) -> str:
    if suffix == ".json":
        return json.dumps([{k: None if v != v else v for k, v in row.items()} for row in rows], indent=1)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _print(rows: list[Row]) -> None:
    """As many columns as fit into the window, and why some values are undefined."""
    console = Console(highlight=False)
    columns = [column for column in rows[0] if column not in ("run", "undefined")]
    cells: list[list[str]] = []
    table, room = Table(box=None), console.width
    for column in columns:
        values = [_shown(row[column]) for row in rows]
        room -= max(map(len, (column, *values))) + 2
        if cells and room < 0:
            break
        table.add_column(column, justify="right")
        cells.append(values)
    for line in zip(*cells, strict=True):
        table.add_row(*line)
    console.print(table)
    if len(columns) > len(cells):
        console.print(f"and {len(columns) - len(cells)} more columns in the file", soft_wrap=True)
    for reason in dict.fromkeys(row["undefined"] for row in rows if row["undefined"]):
        steps = ", ".join(_shown(row["step"]) for row in rows if row["undefined"] == reason)
        console.print(escape(f"undefined at step {steps}: {reason}"), soft_wrap=True)


def _shown(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
