"""`grokscope show`: a folder's summary, or everything that is known of one run."""

import json
import textwrap
from typing import TYPE_CHECKING, Annotated

import tyro

from grokscope.cli.columns import align
from grokscope.cli.damage import describe_damage
from grokscope.cli.options import Folder, JsonFlag
from grokscope.runs import open_runs
from grokscope.timeline.success import RELATIVE_ERRORS
from grokscope.view.outcomes import why_without_fsd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from grokscope.runs import Run

__all__ = ["show"]

SHOWN_ROWS = 30
COLUMNS = ("step", "train_accuracy", "validation_accuracy", "train_loss", "validation_loss", "norm", "fsd")


def show(
    folder: Folder,
    run: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[RUN]", help_behavior_hint="")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Summarise a folder of runs in words, or show one run in full.

    For a folder: what happened to each run, and how the forks of a run agree with Δt = C/λ. For a run: its spec, its
    outcome, its evaluations and where its weights are stored.

    Args:
        run: The run's name, its hash, or the beginning of either; add_mod97_s0:weight_decay=2 tells runs apart. The
            whole folder if not given.

    Examples:
        grokscope show runs/first
        grokscope show runs/first add_mod97_s0
        grokscope show runs/first add_mod97_s0 --json
    """
    runs = open_runs(folder)
    if run is not None:
        _show_run(runs[run], as_json)
    elif as_json:
        print(json.dumps(runs.facts()))
    else:
        from grokscope.view.summary import summarize

        whole, damaged = runs.survey()
        if whole or not damaged:
            print(_wrapped(summarize(whole)))
        if damaged:
            print(f"\n{describe_damage(damaged, folder)}")


def _wrapped(text: str) -> str:
    """The text with its lines broken between words where the window ends."""
    from rich.console import Console

    width = Console().width
    return "\n".join(
        textwrap.fill(line, width, subsequent_indent=" " * 4 * line.startswith(" ")) for line in text.split("\n")
    )


def _show_run(run: "Run", as_json: bool) -> None:
    rows = run.folder.log()
    if as_json:
        outcome = run.folder.outcome
        ended = {**outcome.to_dict(), "outcome": outcome.ending} if outcome.is_finished else None
        print(json.dumps({"spec": run.spec.to_dict(), "outcome": ended, "log": rows}))
        return
    from grokscope.view.summary import summarize_run

    print(f"{summarize_run(run)}\nspec: {json.dumps(run.spec.to_short_dict())}\n")
    last = max(len(rows) - 1, 1)
    shown = [rows[i] for i in sorted({round(k * last / (SHOWN_ROWS - 1)) for k in range(SHOWN_ROWS)}) if i < len(rows)]
    columns = _columns(rows)
    cells = [[f"{row['step']:,}", *(_number(row.get(name)) for name in columns[1:])] for row in shown]
    print(align([column.replace("_", " ") for column in columns], cells))
    if RELATIVE_ERRORS["train_accuracy"] in columns:
        print("relative error: the mean squared error over what counts as success, so that 1 or less is success")
    if rows and "fsd" not in columns and (reason := why_without_fsd(run.record)):
        print(f"FSD and rank are not defined: {reason}")
    if len(shown) < len(rows):
        print(f"{len(shown)} of {len(rows)} evaluations; --json prints all")
    if device := run.folder.outcome.provenance.get("device"):
        print(f"\ntrained on {device}; another processor rounds differently, and its steps will differ")
    if run.steps:
        print(f"\nweights at {len(run.steps)} steps: {run.steps[0]:,} … {run.steps[-1]:,}")


def _columns(rows: "Sequence[Mapping[str, Any]]") -> list[str]:
    """What is shown of a log: held-out groups too, of real answers errors, and FSD only where it is defined."""
    logged = dict.fromkeys(name for row in rows for name in row)
    is_real = RELATIVE_ERRORS["train_accuracy"] in logged
    apart = "_loss" if is_real else "_accuracy"  # of real answers, how many are right decides nothing
    more = [name for name in logged if name.endswith(apart) and name not in COLUMNS]
    columns = [RELATIVE_ERRORS.get(name, name) for name in COLUMNS] if is_real else [*COLUMNS]
    place = columns.index("validation_loss") + 1 if is_real else columns.index("train_loss")
    columns[place:place] = more
    return columns if not rows or any(row.get("fsd") is not None for row in rows) else columns[:-1]


def _number(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, int | float) else "–"
