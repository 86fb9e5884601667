"""Records that look like runs without any training: to measure and test the page, never to say anything of grokking."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from grokscope.runs import Store, keep_plan, run_name
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import Fork, Plan, RunSpec, Seeds, Training
from grokscope.tasks import named_task
from grokscope.timeline import Timeline, timeline_of

EVALUATIONS = 151
TASKS = ("add_mod97", "add_mod53", "mult_mod97", "S5", "add_mod131")
DECAYS = (1.0, 2.0, 3.0, 5.0)
LAYOUT = {"slots": 1, "slot": 0, "padded_size": 128, "compiled": False}


def synthetic_records(
    count: int, evaluations: int = EVALUATIONS, seed: int = 0, tasks: Sequence[str] = TASKS
) -> list[RunRecord]:
    """Runs of several tasks, most with four forks each; every number is drawn."""
    generator = np.random.default_rng(seed)
    found: list[RunRecord] = []
    number = 0
    while len(found) < count:
        task = tasks[number % len(tasks)]
        spec = RunSpec(task=task, training=Training(steps=(evaluations - 1) * 100)).with_seed(number // len(tasks))
        found.append(_record(spec, generator))
        if task.startswith("add"):
            for decay in DECAYS:
                training = replace(spec.training, weight_decay=decay)
                fork = replace(spec, training=training, fork=Fork(spec.content_hash, 1000))
                found.append(_record(fork, generator))
        number += 1
    return found[:count]


def synthetic_folders(path: Path, count: int, evaluations: int = EVALUATIONS, drawn: int = 1000) -> None:
    """A store of so many runs of one task: a thousand are drawn, and the others share their logs through links.

    One in a thousand has not ended. The plan of all is kept beside them.
    """
    generator, store = np.random.default_rng(0), Store(path)
    usual = RunSpec(task="add_mod97", training=Training(steps=(evaluations - 1) * 100))
    plan = Plan(str(path), tuple(usual.with_seed(seed) for seed in range(count)))
    keep_plan(plan, store)
    for place, spec in enumerate(plan.runs):
        if place < drawn:
            record, folder = _record(spec, generator), store.add(spec)
            columns = list(record.evaluations.items())
            for i in range(len(record.evaluations["step"])):
                folder.append({name: values[i] for name, values in columns})
            folder.finish(replace(record.outcome, layout=LAYOUT))
            if place == drawn - 1:
                (folder.path / "outcome.json").unlink()
            continue
        like, here = path / run_name(plan.runs[place % drawn]), path / run_name(spec)
        here.mkdir()
        (here / "format").write_bytes((like / "format").read_bytes())
        (here / "spec.json").write_text(json.dumps(spec.to_dict(), indent=1, sort_keys=True) + "\n")
        (here / "log.jsonl").hardlink_to(like / "log.jsonl")
        if (like / "outcome.json").exists():
            (here / "outcome.json").write_bytes((like / "outcome.json").read_bytes())


def hostile(record: RunRecord, task: str) -> RunRecord:
    """The same run with another word for its task."""
    return replace(record, spec=replace(record.spec, task=task, seeds=Seeds(7, 7, 7)))


def synthetic_claims() -> list[dict[str, Any]]:
    """One claim for each verdict."""
    verdicts = ("reproduced", "unlikely", "refuted", "not testable")
    return [
        {
            "name": f"drawn {i + 1}",
            "statement": "A made-up sentence, to see how a claim looks on the page.",
            "where": f"§{i + 1}",
            "printed": "1,722",
            "rule": "There is none: this claim was drawn.",
            "value": 1700 + i,
            "interval": [1111.0, 2333.0] if i % 2 == 0 else None,
            "n": 9,
            "verdict": verdict,
            "why": "So that every badge is seen.",
            "table": "",
        }
        for i, verdict in enumerate(verdicts)
    ]


def _record(spec: RunSpec, generator: np.random.Generator) -> RunRecord:
    start = spec.fork.step if spec.fork else 0
    step = np.arange(start, spec.training.steps + 1, 100)
    time_to_grok = 3500 * np.exp(generator.normal(0, 0.15)) / spec.training.weight_decay
    grok = (start if spec.fork else 1000) + time_to_grok
    sync = 1000 + 0.5 * (grok - 1000) * generator.uniform(0.5, 1.2)
    noise = generator.normal(0, 1, (4, len(step)))

    def rise(at: float, width: float) -> np.ndarray:
        return 1 / (1 + np.exp(-np.clip((step - at) / width, -60, 60)))

    validation = np.clip(rise(grok, 90) * 0.999 + 0.004 * np.abs(noise[0]), 0, 1)
    fsd = np.clip(0.12 + 0.85 * rise(sync, 200) + 0.02 * noise[1], 0, 1)
    train = np.clip(rise(350, 60) + 0.001 * noise[2], 0, 1)
    norm = 23 + 55 * np.exp(-step * spec.training.weight_decay / 1600) + 0.1 * noise[3]
    modes = len(named_task(spec.task).basis().modes)
    mode = np.where(step > sync, generator.integers(1, modes + 1), generator.integers(1, modes + 1, len(step)))
    log = {
        "step": step.tolist(),
        "train_accuracy": train.tolist(),
        "validation_accuracy": validation.tolist(),
        "train_loss": (4.6 * np.exp(-step / 300) + 1e-4 * np.abs(noise[2])).tolist(),
        "validation_loss": (6 * (1 - rise(grok, 150)) + 0.01 * np.abs(noise[0])).tolist(),
        "norm": norm.tolist(),
        "fsd": fsd.tolist(),
        "fsd_mode": mode.astype(float).tolist(),
        "rank": np.maximum(1, np.round(2 * 6 * np.exp(-step / 1200)) / 2).tolist(),
        "answer_share": (1e-4 + 0.3 * rise(grok, 300) * (1 + 0.01 * noise[1])).tolist(),
        "weight_decay": [spec.training.weight_decay] * len(step),
    }
    events: Timeline = timeline_of(log)
    outcome = {
        "outcome": events.outcome.name.lower(),
        "failed_at": None,
        "memorized": events.memorized,
        "grokked": events.grokked,
        "provenance": {"grokscope": "synthetic", "commit": None, "device": "none", "torch": "none"},
    }
    return RunRecord(spec, RunOutcome.from_dict(outcome), log, {})
