"""A run as a row of the table: what it is, the steps of its events, how it ended."""

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from grokscope.model import Component
from grokscope.model.sites import hidden_sites
from grokscope.runs.outcome import describe_ending, stable_columns
from grokscope.runs.records import is_group, known_task
from grokscope.specs import RunSpec
from grokscope.tasks import Task
from grokscope.timeline import LeadStatus, Timeline, dips_after, judged_columns
from grokscope.view.outcomes import describe_stability, why_without_fsd
from grokscope.view.page.sources import ShownRun

__all__ = ["row_of", "task_or_none"]

IN_COLUMNS = {  # settings that the table shows in columns of their own, or that change nothing of the training
    *(
        "task",
        "seeds",
        "weight_decay",
        "learning_rate",
        "train_fraction",
        "steps",
        "fork",
        "trigger",
        "shuffled_labels",
    ),
    *("precision", "model", "layers", "width", "heads", "mlp_width", "attention", "mlp", "causal", "readout"),
    *("kind", "embedded"),
    *("checkpoints", "measurements"),
}


@lru_cache(maxsize=1024)
def task_or_none(name: str) -> Task | None:
    """The task, if it can be made here: a user's table may be elsewhere, and a name may be anything."""
    return known_task(name)


def row_of(run: ShownRun) -> dict[str, Any]:
    """All that the page knows of a run besides its curves."""
    spec, events = run.record.spec, run.record.timeline_or_none
    found = {
        "id": spec.identity,
        "name": run.name,
        "task": spec.task,
        "seed": spec.seeds.data_order,
        "split_seed": spec.seeds.split,
        "init_seed": spec.seeds.initialization,
        "weight_decay": spec.training.weight_decay,
        "train_fraction": spec.train_fraction,
        "learning_rate": spec.training.learning_rate,
        "steps": spec.training.steps,
        "precision": spec.precision,
        "shuffled": spec.shuffled_labels,
        "model": _model(run),
        "other": _other_settings(spec),
        "site": "" if spec.model else Component(hidden_sites(spec.architecture)[0]).short_name,
        "study": ", ".join(sorted({f"{one.study}/{one.experiment}" for one in run.record.made_for})),
        "group": is_group(spec.task),
        "loss": "mean squared error" if spec.training.loss == "mse" else "loss in nats",
        "basis": why_without_fsd(run.record),
        "by": _averaged_over(spec),
        "finished": run.is_finished,
        "outcome": _ended(run, events),
        "stopped_early": run.record.outcome.stopped_early,
        "fork": None if spec.fork is None else spec.fork.to_dict(),
        "trigger": None if spec.trigger is None else spec.trigger.to_dict(),
        "fired": run.record.outcome.fired_at,
    }
    return found | (_steps(events) | _dips(run, events) if events else {"last": None})


def _averaged_over(spec: RunSpec) -> str:
    """What the activations that are read are averaged over: the answer, or bits of the input."""
    task = task_or_none(spec.task)
    return "input" if task is not None and "walsh" in task.bases else "answer"


def _ended(run: ShownRun, events: Timeline | None) -> str:
    if not run.is_finished:
        return "unfinished" if events is None or events.grokked is None else "unfinished, grokked"
    if events is not None:
        return describe_ending(events.outcome.name.lower(), events.memorized)
    return run.record.outcome.ending


def _dips(run: ShownRun, events: Timeline) -> dict[str, Any]:
    """How often, and for how many steps at most, validation accuracy was below one half after grokking."""
    if events.grokked is None:
        return {"dips": None, "longest_dip": None}
    log = judged_columns(run.record.evaluations)
    steps, values = zip(*sorted(zip(log["step"], log["validation_accuracy"], strict=True)), strict=True)
    dips = dips_after(events.grokked, steps, values)
    return {"dips": dips.count, "longest_dip": dips.longest if dips.count else None}


def _steps(events: Timeline) -> dict[str, Any]:
    return {
        "first": events.first,
        "last": events.last,
        "memorized": events.memorized,
        "sync": events.sync.step,
        "sync_flags": [str(flag) for flag in events.sync.flags],
        "liberated": events.liberated,
        "grokked": events.grokked,
        **{name: value for name, value in stable_columns(events.stable.to_dict()).items() if name != "stable_from"},
        "stability_text": describe_stability(events.stable),
        "lead": events.sync.lead.steps,
        "lead_status": "" if events.sync.lead.status is LeadStatus.LEADS else str(events.sync.lead.status),
    }


def _leaves(spec: RunSpec) -> Iterable[tuple[str, Any]]:
    """Every setting with its value."""
    for name, value in spec.to_dict().items():
        yield from value.items() if name in ("architecture", "initialization", "training") else [(name, value)]


USUAL = dict(_leaves(RunSpec()))


def _other_settings(spec: RunSpec) -> str:
    """What is unusual of a run and has no column of its own; runs that differ in it must not be summarised together."""
    found = [(name, value) for name, value in _leaves(spec) if name not in IN_COLUMNS and value != USUAL[name]]
    return ", ".join(f"{name} = {value if isinstance(value, str) else json.dumps(value)}" for name, value in found)


def _model(run: ShownRun) -> str:
    """The architecture in a few words; the name of a model that is not ours."""
    if run.record.spec.model:
        return run.record.spec.model
    shape = run.record.spec.architecture
    if shape.kind == "mlp":
        parts = [f"plain MLP {shape.layers} × {shape.mlp_width}" if shape.layers else "linear model"]
        return ", ".join(parts + [f"embeddings {shape.width}"] * shape.embedded)
    parts = [f"{shape.layers} × {shape.width}", f"{shape.heads} heads", f"mlp {shape.mlp_width}"]
    parts += [f"{name} {branch}" for name in ("attention", "mlp") if (branch := getattr(shape, name)) != "on"]
    parts += [word for word, holds in (("causal", shape.causal), (shape.readout, shape.readout != "last")) if holds]
    return ", ".join(parts)
