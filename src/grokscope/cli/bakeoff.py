"""`grokscope bakeoff`: every way of grokking sooner on the same tasks, seeds and budget, and the table of who wins."""

import sys
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Printed

from grokscope.cli.progress import run_with_progress
from grokscope.cli.train import INTERRUPTED, Device, Precision, device_named, write_plan
from grokscope.errors import InputError
from grokscope.runs import Store
from grokscope.runs.records import RunRecord, record_of, save_records, unpacked
from grokscope.specs import Plan
from grokscope.studies.bakeoff.configurations import TASKS, TUNING_TASK, bakeoff_plan, quick_plan, tuning_plan
from grokscope.studies.bakeoff.tables import bakeoff_results, bakeoff_table, tuned
from grokscope.studies.figures import write_figure
from grokscope.studies.bakeoff.figures import fig_bakeoff
from grokscope.studies.reproduction import run_steps
from grokscope.studies.bakeoff.speed import measured_speed, read_speed, save_speed
from grokscope.studies.tables import Table
from grokscope.view.render import read_aloud, write_table

__all__ = ["bakeoff"]

RECORDS, TUNING_RECORDS, SPEED = "bakeoff.records.gz", "tuning.records.gz", "speed.json"
SEEDS, TUNING_SEEDS = 32, 16


def bakeoff(
    tasks: tuple[str, ...] = TASKS,
    n_seeds: int | None = None,
    device: Device = "auto",
    precision: Precision = "float32",
    out: Path = Path("runs/bakeoff"),
    dry_run: bool = False,
    plan_only: Path | None = None,
    quick: bool = False,
    tune: bool = False,
    time: bool = False,
    from_: Annotated[tuple[Path, ...], tyro.conf.arg(name="from", metavar="FILE.gz")] = (),
) -> None:
    """Compare fixed λ, the paper's triggers, our closed loop, Grokfast and orthogonal gradients, all else equal.

    Trains what is not yet in the folder, then prints the table and writes it as CSV, Markdown and LaTeX, with a figure
    and the records of all runs in one file. On a CPU the whole of it takes weeks: see what it costs with --dry-run, see
    what it looks like with --quick, or write a plan for a machine with a GPU.

    Example: grokscope bakeoff --tasks add_mod97 --n-seeds 32 --out runs/bakeoff

    Args:
        tasks: What is learnt.
        n_seeds: Runs of each arm on each task, 32 if not given; with --tune of each setting, 16.
        device: Where to train; auto takes CUDA if there is one.
        precision: float32 is the reference; tf32 and bf16 are faster.
        out: The folder for runs, table and records.
        dry_run: Say what would be trained, and train nothing.
        plan_only: Write the plan to this file, run by `python -m grokscope.jobs.worker --spec FILE`, by several at
            once if you like. The same command without this option then finds the runs in the folder; on another
            machine, `python -m grokscope.runs.packing --spec FILE --out RECORDS.gz` packs them for --from.
        quick: Two seeds of a small task with a small model: minutes on a CPU, and no result.
        tune: Train every family's settings on the tuning seeds instead, and say which one the rule chooses of each.
        time: Measure what a step costs in each arm, so that the table has seconds too.
        from_: Train nothing, and make table and figure from these records of workers elsewhere; seconds come from a
            speed.json beside the first of them.
    """
    _refuse_what_has_no_effect(tasks, n_seeds, dry_run, plan_only, quick, tune)
    if from_:
        if time or dry_run or quick or plan_only is not None:
            raise InputError("--from trains nothing: leave out --time, --dry-run, --quick and --plan-only")
        _concluded(_together(from_), out, tune, from_[0].parent / SPEED)
        return
    place = device_named(device, elsewhere=dry_run or plan_only is not None)
    if tune:
        plan = tuning_plan(
            str(out), n_seeds=TUNING_SEEDS if n_seeds is None else n_seeds, precision=precision, device=place
        )
    elif quick:
        plan = quick_plan(str(out), device=place)
    else:
        plan = bakeoff_plan(
            str(out), tasks, n_seeds=SEEDS if n_seeds is None else n_seeds, precision=precision, device=place
        )
    if dry_run:
        print(_cost(plan))
    elif plan_only is not None:
        write_plan(plan, plan_only)
    else:
        records = _trained(plan)
        if time:
            save_speed(measured_speed(plan), out / SPEED)
        _concluded(records, out, tune, out / SPEED)


def _refuse_what_has_no_effect(
    tasks: tuple[str, ...], n_seeds: int | None, dry_run: bool, plan_only: Path | None, quick: bool, tune: bool
) -> None:
    """An option that would be passed over without a word."""
    if quick and tune:
        raise InputError("--quick is a small bake-off and --tune is another plan: give one of them")
    if quick and (tasks != TASKS or n_seeds is not None):
        raise InputError("--quick has a task and seeds of its own: leave out --tasks and --n-seeds")
    if tune and tasks not in (TASKS, (TUNING_TASK,)):
        raise InputError(f"settings are chosen on {TUNING_TASK} alone: leave out --tasks, got {' '.join(tasks)}")
    if dry_run and plan_only is not None:
        raise InputError("--dry-run writes nothing: leave out --plan-only")


def _concluded(records: list[RunRecord], out: Path, tune: bool, speed: Path) -> None:
    """Table, figure and records, on the screen and in the folder."""
    if tune:
        _finish(tuned(records)[1], records, out, TUNING_RECORDS)
        return
    results = bakeoff_results(records)
    if not results:
        raise InputError(f"none of the {len(records)} records is a run of the bake-off (those of its tuning: --tune)")
    _finish(_table(records, speed), records, out, RECORDS)
    write_figure(fig_bakeoff(results), out)


def _together(files: tuple[Path, ...]) -> list[RunRecord]:
    """The records of several files; one that stands in more than one of them counts once."""
    return list({record.spec.content_hash: record for file in files for record in unpacked(file)}.values())


def _cost(plan: Plan) -> str:
    """What a plan is, and how long it takes at the most."""
    tasks = ", ".join(dict.fromkeys(run.task for run in plan.runs))
    kinds = len(plan.runs) // len({(run.task, run.seeds) for run in plan.runs})
    return (
        f"{len(plan.runs):,} runs ({kinds} for each seed of {tasks}) of at most {run_steps(plan):,} run-steps in all; "
        f"a run ends {plan.stop_after_grokking:,} steps after it groks"
    )


def _trained(plan: Plan) -> list[RunRecord]:
    """The records of the plan's runs; those that are finished already are not trained again."""
    store = Store(plan.out)
    finished = {folder.spec.content_hash for folder in store if folder.outcome is not None}
    is_complete = finished.issuperset(run.content_hash for run in plan.runs)
    if not is_complete and not run_with_progress(plan):
        print(f"stopped; everything is stored: continue with the same command, or `grokscope resume {plan.out}`")
        sys.exit(INTERRUPTED)
    return [record_of(store.add(run)) for run in plan.runs]


def _table(records: list[RunRecord], path: Path) -> Table:
    speed = read_speed(path)
    return bakeoff_table(records) if speed is None else bakeoff_table(records, speed.seconds_per_step, speed.place)


def _finish(table: Table, records: list[RunRecord], out: Path, name: str) -> None:
    """Print the table, and write it beside the records."""
    heads, body = read_aloud(table)
    printed = Printed(box=None)
    for place, head in enumerate(heads):
        printed.add_column(escape(head), justify="left" if place < 2 else "right")
    for row in body:
        printed.add_row(*map(escape, row))
    console = Console(highlight=False)
    console.print(printed)
    for note in table.notes:
        console.print(escape(note), soft_wrap=True)
    out.mkdir(parents=True, exist_ok=True)
    save_records(out / name, records)
    files = [*write_table(table, out), out / name]
    print(f"wrote {', '.join(path.name for path in files)} to {out}")
