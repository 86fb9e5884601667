"""`grokscope measure`: what can be measured, and measuring it on a stored run."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from grokscope.cli.measure_names import measure_names, reject_unknown_measures
from grokscope.cli.options import File, Flag, Force, JsonFlag, Whole, reject
from grokscope.errors import InputError, for_shell
from grokscope.files import disk_error, named
from grokscope.runs import open_runs

if TYPE_CHECKING:
    from grokscope.runs import Run

__all__ = ["measure"]

DEFAULT = ("fsd", "rank", "memorization", "norms")


def measure(
    folder: Annotated[
        Path | None,
        tyro.conf.Positional,
        tyro.conf.arg(
            metavar="[DIR]", help="A folder of runs; without one, the measures are listed.", help_behavior_hint=""
        ),
    ] = None,
    run: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[RUN]", help_behavior_hint="")] = None,
    measures: Annotated[
        tuple[str, ...], tyro.conf.arg(metavar="NAME ...", help_behavior_hint=f"(default: {' '.join(DEFAULT)})")
    ] = (),
    at: Annotated[tuple[int, ...], tyro.conf.arg(metavar="INT ...", help_behavior_hint="")] = (),
    condition: Annotated[
        Literal["answer", "sum", "input"] | None,
        tyro.conf.arg(metavar="{answer,sum,input}", help_behavior_hint="(default: what the task's basis is read on)"),
    ] = None,
    basis: Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = None,
    reference: Whole = None,
    reading: File = None,
    seed: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: 0)")] = None,
    device: Annotated[
        Literal["cpu", "cuda", "mps"] | None,
        tyro.conf.arg(metavar="{cpu,cuda,mps}", help_behavior_hint="(default: cpu)"),
    ] = None,
    all_: Annotated[Flag, tyro.conf.arg(name="all", help_behavior_hint="")] = False,
    out: File = None,
    force: Force = False,
    as_json: JsonFlag = False,
) -> None:
    """Measure a run at its checkpoints; without a run, list the measures.

    The table has a row for each checkpoint and the main column of each measure, such as the p-value against untrained
    networks of fsd_null; --all prints the others too. An undefined value is nan in a .csv file and null in a .json
    file, and the column `undefined` gives the reason. Without a run, --measures explains the measures it names:
    formula, source, cost, null, columns and a worked example.

    Args:
        run: The run's name, its hash, or the beginning of either; add_mod97_s0:weight_decay=2 tells runs apart.
        measures: Measures by name.
        at: Steps with stored weights; all if not given.
        condition: Average activations over rows with the same answer, with the same a + b as in the paper, or (parity)
            with the same input.
        basis: Basis of the Fourier analysis, as `grokscope tasks TASK` lists them; the task's own if not given.
        reference: Stored step from which restricted and excluded losses take their key modes.
        reading: JSON file with measurement settings (ReadingSpec): where FSD is read, and the choices of
            paper_restricted and fourier_kan.
        seed: The seed of nulls, resampled inputs and trained fits.
        device: Where to compute.
        all_: Print every column, not only the main ones.
        out: The file to write with every column, .csv or .json; none if not given.

    Examples:
        grokscope measure
        grokscope measure --measures fsd
        grokscope measure runs/first add_mod97_s0 --measures fsd rank paper_restricted
    """
    if folder is None:
        options = {
            "condition": condition,
            "basis": basis,
            "reference": reference,
            "reading": reading,
            "seed": seed,
            "device": device,
            "at": at or None,
            "out": out,
            "all": all_ or None,
            "force": force or None,
        }
        useless = " has no effect without a run; name one as in: grokscope measure DIR RUN"
        reject({f"--{name}{useless}": value is not None for name, value in options.items()})
        reject_unknown_measures(measures)
        from grokscope.cli.catalogue import print_catalogue

        print_catalogue(measures, as_json)
        return
    if run is None:
        if not folder.exists() and folder.name in measure_names():
            raise InputError(f"a measure is explained by `grokscope measure --measures {folder.name}`")
        open_runs(folder)  # rejects what is no folder
        raise InputError(f"name a run, as `grokscope list {for_shell(folder)}` lists them")
    found = open_runs(folder)[run]
    reject_unknown_measures(measures)
    reject({"--force has no effect without --out": force and out is None})
    if out is not None:
        _reject_bad_place(out, force)

    from grokscope.cli.measure_table import measure_run, read_reading
    from grokscope.runs import Reading

    chosen = Reading(at, condition or "", basis or "", reference, read_reading(reading), seed or 0, device or "cpu")
    measure_run(found, measures or _usual(found), chosen, out, all_, as_json)


def _usual(run: "Run") -> tuple[str, ...]:
    """What is measured if nothing is named: without what the task has no basis for."""
    from grokscope.activations import lacking_needs
    from grokscope.measures import MEASURES
    from grokscope.tasks import named_task

    task = named_task(run.spec.task)
    left_out = [name for name in DEFAULT if MEASURES[name].needs & lacking_needs(task)]
    if left_out:
        print(f"{task.name} has no basis to read activations in: {', '.join(left_out)} left out", file=sys.stderr)
    return tuple(name for name in DEFAULT if name not in left_out)


def _reject_bad_place(path: Path, force: bool) -> None:
    """Measuring may take hours: a place where the table cannot be written is rejected before."""
    try:
        is_there, has_folder = path.exists(), path.parent.is_dir()
    except OSError as error:
        raise disk_error(path, error) from None
    reject(
        {
            f"a table is written as .csv or .json, got {named(path)}": path.suffix not in (".csv", ".json"),
            f"a table needs a printable name, got {named(path)}": not path.name.isprintable(),
            f"{named(path)} exists already; nothing was overwritten (--force replaces it)": is_there
            and not (force and path.is_file()),
            f"there is no folder {named(path.parent)} to write {named(Path(path.name))} in": not has_folder,
        }
    )
