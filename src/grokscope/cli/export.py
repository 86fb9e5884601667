"""`grokscope export` and `import`: runs and weights, to and from other programs."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro

from grokscope.cli.damage import describe_damage
from grokscope.cli.options import File, Folder, Force, Whole, reject
from grokscope.errors import InputError, for_shell, plural
from grokscope.files import named
from grokscope.runs import is_remote, open_runs, pull
from grokscope.runs.packed_files import PACKED, has_records

__all__ = ["export", "import_source"]


def export(
    folder: Folder,
    run: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[RUN]", help_behavior_hint="")] = None,
    format: Literal["safetensors", "parquet"] = "safetensors",
    at: Whole = None,
    out: File = None,
    force: Force = False,
) -> None:
    """Write a run's weights as safetensors, or the logs of all runs as Parquet.

    The weights are the state dict of a plain PyTorch module.

    Args:
        run: The run's name, its hash, or the beginning of either; add_mod97_s0:weight_decay=2 tells runs apart; parquet
            takes all runs if it is not given.
        format: safetensors: the weights at one step; parquet: the tables runs, log and measures.
        at: A step with stored weights; the last if not given.
        out: The file to write, RUN-STEP.safetensors if not given; for parquet the folder, `parquet` if not given.

    Examples:
        grokscope export runs/first add_mod97_s0 --format safetensors
        grokscope export runs/first --format parquet --out tables
    """
    runs = open_runs(folder)
    if format == "parquet":
        if at is not None:
            raise InputError("--at has no effect with --format parquet, which has every step")
        from grokscope.view.data import write_parquet

        damaged: dict[str, str] = {}
        chosen_runs = runs if run is None else [runs[run]]
        for path in write_parquet(chosen_runs, out or Path("parquet"), damaged.__setitem__, replace=force):
            print(f"wrote {path}")
        if damage := describe_damage(damaged, folder):
            print(damage, file=sys.stderr)
        return
    if run is None:
        raise InputError(f"name a run, as `grokscope list {for_shell(folder)}` lists them; only parquet takes all")
    found = runs[run]
    chosen = max(found.steps, default=0) if at is None else at
    path = out or Path(f"{found.name}-{chosen}.safetensors")
    reject(
        {
            f"{found.name} has no stored weights": not found.steps,
            f"{named(path)} exists already; nothing was overwritten (--force replaces it)": path.exists()
            and not (force and path.is_file()),
        }
    )

    from grokscope.training.checkpoint import export_tensors

    export_tensors(path, dict(found.module(chosen).state_dict()))
    print(f"wrote {path}")


def import_source(
    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")],
    out: File = None,
) -> None:
    """Copy runs from a remote store or packed records, or turn a .pt file into safetensors.

    A .pt file is a pickle, and a pickle can hold a program. It is read by a separate process that accepts tensors and
    plain values only (weights_only); that lowers the risk and does not remove it, so import only what you trust. No
    other command opens a pickle.

    Args:
        source: A remote address such as s3://bucket/runs, whose finished runs are copied and checked; a file of
            records, NAME.records.gz, a folder of such files or a collection, whose runs have logs and no weights; or a
            .pt, .pth, .bin or .ckpt file.
        out: The folder for the runs; or the file to write, SOURCE with the ending .safetensors if not given.

    Examples:
        grokscope import s3://bucket/decays --out runs/decays
        grokscope import results/synchronization --out runs/paper
        grokscope import grokked.pt --out grokked.safetensors
    """
    if is_remote(source):
        if out is None:
            raise InputError("name the folder for the runs with --out")
        copied = pull(source, out, lambda sentence: print(sentence, file=sys.stderr))
        print(f"copied {plural(copied, 'run')} to {out}")
        return
    if not Path(source).exists():
        raise InputError(f"there is no file {named(Path(source))}")
    if has_records(Path(source)):
        if out is None:
            raise InputError("name the folder for the runs with --out")
        from rich.console import Console
        from rich.markup import escape

        from grokscope.runs.unpacking import add_records
        from grokscope.studies.sources import every_record

        with Console(stderr=True).status(f"storing the runs of {escape(source)}"):
            added = add_records(every_record(Path(source)), out)
        print(
            f"added {plural(added, 'run')} to {out}, without weights; list them with: grokscope list {for_shell(out)}"
        )
        return
    if Path(source).is_dir():
        raise InputError(f"{named(Path(source))} is a folder without records ({PACKED}); runs in it need no import")
    from grokscope.attach.checkpoints import convert, read_weights

    path = convert(Path(source), out)
    print(f"wrote {path}: {plural(len(read_weights(path)), 'tensor')}")
