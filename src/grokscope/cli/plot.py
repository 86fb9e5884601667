"""`grokscope plot`: a run's curves in one picture."""

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from grokscope.cli.options import File, Flag, Folder, Force, RunName, reject
from grokscope.files import named, write_atomically
from grokscope.runs import open_runs
from grokscope.runs.records import known_task

if TYPE_CHECKING:
    from grokscope.runs import Run

__all__ = ["plot"]

PICTURES = ("pdf", "png", "svg")


def plot(
    folder: Folder,
    run: RunName,
    out: File = None,
    no_null: Annotated[Flag, tyro.conf.arg(help_behavior_hint="")] = False,
    force: Force = False,
) -> None:
    """Draw the curves of one run in a picture.

    It shows accuracies, losses, FSD with its null, Fourier rank and weight norm at every evaluation; accuracies and
    losses also of the groups of rows that are held out; of real answers the squared error over what counts as success;
    and no FSD or rank where the task has no basis to read activations in. The null is the 95 % quantile of FSD in 64
    untrained networks of the same spec. It is computed, which takes some seconds and for large networks minutes, unless
    fsd_null was measured while training.

    Args:
        out: The file to write, .pdf, .png or .svg; RUN.pdf if not given.
        no_null: Leave the null out.

    Examples:
        grokscope plot runs/first add_mod97_s0 --out curves.pdf
    """
    found = open_runs(folder)[run]
    path = out or Path(f"{found.name}.pdf")
    ending = path.suffix.removeprefix(".")
    reject(
        {
            f"a picture is written as .pdf, .png or .svg, got {named(path)}": ending not in PICTURES,
            f"{named(path)} exists already; nothing was overwritten (--force replaces it)": path.exists()
            and not (force and path.is_file()),
            f"there is no folder {named(path.parent)} to write {named(Path(path.name))} in": not path.parent.is_dir(),
            f"{found.name} has no evaluations to plot yet": not found.record.evaluations.get("step"),
        }
    )
    from grokscope.view import require_module

    require_module("matplotlib", "report")
    from rich.console import Console

    from grokscope.view.charts import run_chart
    from grokscope.view.charts.files import pictures_of
    from grokscope.view.outcomes import why_without_fsd

    missing = why_without_fsd(found.record)
    with Console(stderr=True).status("measuring untrained networks, for the null of FSD"):
        quantile = None if no_null or missing else _untrained_95(found)
    write_atomically(path, pictures_of(run_chart.run_chart(found.name, found.record, quantile), [ending])[ending])
    print(f"wrote {path}{missing and f'; FSD and rank are not defined: {missing}'}")


def _untrained_95(run: "Run") -> float | None:
    """The 95 % quantile of FSD in untrained networks; None where it is not known or not defined."""
    measured = [value for value in run.record.at_checkpoints("untrained_95") if value == value]
    if measured:
        return measured[-1]
    # Somebody else's model, whose untrained networks are not known; or a function's rows, which no picture runs.
    if run.spec.model or known_task(run.spec.task) is None:
        return None
    from grokscope.measures import fsd_null, surrogates

    value = float(surrogates.untrained_null(run.spec, draws=fsd_null.NULL_DRAWS).quantile(0.95))
    return None if isnan(value) else value
