"""A grokked model of each operation, as a plain module's weights that anybody can load."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from grokscope.files import make_folder, write_atomically
from grokscope.runs.records import RunRecord
from grokscope.runs.runs import Run
from grokscope.runs.store import Store
from grokscope.specs import ReadingSpec, RunSpec, Training
from grokscope.studies.synchronization.experiments import SHOWN
from grokscope.training.checkpoint import export_tensors

__all__ = ["MODELS", "save_models"]

MODELS = ("add_mod97", "sub_mod97", "mult_mod97", "S5")


def save_models(folder: Path, records: Sequence[RunRecord], store: Store) -> None:
    """For each operation the newest grokked weights that a run of the paper's own model has kept, with their spec."""
    for task in MODELS:
        own = [record for record in records if record.spec.task == task and _is_plain(record.spec)]
        found = _newest_grokked(sorted(own, key=lambda record: record.spec.seeds != SHOWN), store)
        if found is None:
            continue
        record, run, step = found
        make_folder(folder)
        export_tensors(folder / f"{task}.safetensors", dict(run.module(step).state_dict()))
        about = {"step": step, "spec": record.spec.to_dict(), "made_with": record.outcome.provenance}
        write_atomically(folder / f"{task}.json", (json.dumps(about, indent=1) + "\n").encode())


def _is_plain(spec: RunSpec) -> bool:
    """Whether a run differs from §3 only in task, share, seeds, steps, evaluations and arithmetic."""
    plain = RunSpec(
        task=spec.task,
        train_fraction=spec.train_fraction,
        seeds=spec.seeds,
        training=replace(Training(), steps=spec.training.steps),
        checkpoints=spec.checkpoints,
        measurements=spec.measurements,
        precision=spec.precision,
    )
    return spec == plain


def _newest_grokked(records: Iterable[RunRecord], store: Store) -> tuple[RunRecord, Run, int] | None:
    """The last kept step of the first run that had grokked there, and had not collapsed again."""
    for record in records:
        run = Run(store.find(record.spec.content_hash))
        for step in reversed(run.steps):
            if record.at(step, "validation_accuracy") >= ReadingSpec().grokked:
                return record, run, step
    return None
