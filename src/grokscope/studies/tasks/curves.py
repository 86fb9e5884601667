"""Accuracies over training, task by task."""

from dataclasses import replace

from grokscope.runs.records import RunRecord
from grokscope.studies import Evidence, Item, Selection
from grokscope.studies.synchronization.series import quartiles, seeds_line
from grokscope.studies.tasks.experiments import CELLS
from grokscope.tasks import named_task
from grokscope.view.charts.figure import Figure, Panel, Series

__all__ = ["FIGURES"]


def fig_tasks(evidence: Evidence) -> Figure:
    """Median and quartiles of train, validation and held-out accuracy, or error, over the seeds of each task."""
    shown = [name for name in CELLS if _runs(name).select(evidence.records)]
    runs = sum(len(_runs(name).select(evidence.records)) for name in shown)
    return Figure(
        "fig-tasks",
        "fig:tasks",
        f"Every kind of task, {runs:,} runs",
        tuple(_panel(evidence, name) for name in shown),
        ("Median and quartiles over seeds, at steps that at least half of them reach: runs end after grokking.",),
        columns=3,
    )


def _runs(name: str) -> Selection:
    return Selection((CELLS[name].experiment,), configuration=name)


def _panel(evidence: Evidence, name: str) -> Panel:
    """Accuracies; of real answers the squared errors over what counts as success, which is 1."""
    runs = _runs(name)
    records = list(runs.select(evidence.records).values())
    last = max(record.timeline.last for record in records)
    is_real = named_task(records[0].spec.task).is_real
    kind = "relative_error" if is_real else "accuracy"
    columns = {f"{part}_{kind}": (part, part) for part in ("train", "validation")}
    if not is_real:
        columns |= {f"{group}_accuracy": (group.replace("_", " "), "rank") for group in _held_out(records[0])}
    lines = tuple(
        _from_first(seeds_line(evidence, quartiles(runs, column), last, what, role), what)
        for column, (what, role) in columns.items()
    )
    if is_real:
        return Panel(CELLS[name].title, "step", "squared error / success", lines, log_x=True, log_y=True)
    return Panel(CELLS[name].title, "step", "accuracy", lines, log_x=True, y_range=(-0.02, 1.02))


def _held_out(record: RunRecord) -> tuple[str, ...]:
    return named_task(record.spec.task).held_out


def _from_first(line: Series, what: str) -> Series:
    """Without step 0, which has no place on a logarithmic axis; and with its name in the legend."""
    kept = [i for i, step in enumerate(line.x) if step > 0]
    x, y, low, high = (tuple(column[i] for i in kept) for column in (line.x, line.y, line.low, line.high))
    return replace(line, x=x, y=y, low=low, high=high, legend=f"{what}, median and quartiles")


FIGURES = (Item("fig-tasks", tuple(dict.fromkeys(one.experiment for one in CELLS.values())), fig_tasks),)
