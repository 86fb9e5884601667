"""`grokscope show`, `story` and `export`: stored runs, for people and programs."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from grokscope.cli.arguments import JsonFlag
from grokscope.errors import InputError
from grokscope.files import named
from grokscope.runs import Run, open_runs
from grokscope.training.checkpoint import export_tensors
from grokscope.view.data import write_parquet
from grokscope.view.summary import summarize, summarize_run

__all__ = ["export", "show", "tell"]

Folder = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
SHOWN_ROWS = 30


def show(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    out: Path = Path("runs"),
    as_json: JsonFlag = False,
) -> None:
    """Show one run: what it is, how it went, and where its weights are.

    Example: grokscope show add_mod97_s0 --out runs/first

    Args:
        run: The run's name, hash, or the beginning of either.
        out: The folder it is stored in.
        as_json: Print spec, outcome and measurements for programs.
    """
    found = open_runs(out)[run]
    log = found.log()
    if as_json:
        print(json.dumps({"spec": found.spec.to_dict(), "outcome": _ended(found), "log": found.folder.log()}))
        return
    console = Console(highlight=False)
    console.print(f"[bold]{escape(found.name)}[/bold]", soft_wrap=True)
    console.print(escape(summarize_run(found)), soft_wrap=True)
    table = Table(box=None)
    columns = ("step", "train_accuracy", "validation_accuracy", "train_loss", "validation_loss", "norm", "fsd")
    for column in columns:
        table.add_column(column.replace("_", " "), justify="right")
    count = len(log.get("step", ()))
    for i in np.unique(np.linspace(0, count - 1, min(count, SHOWN_ROWS)).round().astype(int)) if count else ():
        table.add_row(f"{log['step'][i]:,.0f}", *(f"{log[column][i]:.3f}" for column in columns[1:]))
    console.print(table)
    if found.steps:
        console.print(f"weights at {len(found.steps)} steps: {found.steps[0]:,} … {found.steps[-1]:,}")


def _ended(run: Run) -> dict[str, Any] | None:
    outcome = run.folder.outcome
    return outcome.to_dict() if outcome.is_finished else None


def export(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[RUN]")] = "",
    out: Path = Path("runs"),
    to: Literal["safetensors", "parquet"] = "safetensors",
    step: int | None = None,
    file: Path | None = None,
) -> None:
    """Write a run's weights as a plain module's state dict, or the logs of all runs as Parquet, to be read anywhere.

    Example: grokscope export add_mod97_s0 --out runs/first --to safetensors

    Example: grokscope export --to parquet --out runs/first --file tables

    Args:
        run: The run's name, hash, or the beginning of either; for parquet all runs if not given.
        out: The folder it is stored in.
        to: safetensors (weights at one step) or parquet (the tables runs, log and measures).
        step: A step with stored weights; the last if not given.
        file: Where to write; RUN-STEP.safetensors, or a folder `parquet` for its tables, if not given.
    """
    if to == "parquet":
        runs = list(open_runs(out)) if run == "" else [open_runs(out)[run]]
        for path in write_parquet(runs, file or Path("parquet")):
            print(f"wrote {path}")
        return
    if run == "":
        raise InputError("which run? `grokscope list` names them; only parquet takes all")
    found = open_runs(out)[run]
    if not found.steps:
        raise InputError(f"{found.name} has no stored weights")
    chosen = found.steps[-1] if step is None else step
    path = file or Path(f"{found.name}-{chosen}.safetensors")
    if path.exists():
        raise InputError(f"{named(path)} exists already; nothing was overwritten")
    export_tensors(path, dict(found.module(chosen).state_dict()))
    print(f"wrote {path}")


def tell(out: Folder = Path("runs")) -> None:
    """Tell in plain words what became of the runs in a folder, and how their forks stand to Δt = C/λ.

    Example: grokscope story runs/first

    Args:
        out: A folder of runs.
    """
    print(summarize(list(open_runs(out))))
