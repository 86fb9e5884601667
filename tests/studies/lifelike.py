"""Runs that look like trained ones: smooth curves with noise, different for every seed, made without training."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import nan

import numpy as np

from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies import Evidence
from grokscope.studies.synchronization.experiments import EXPERIMENTS
from grokscope.timeline import first_step

EVERY = 100


@dataclass(frozen=True)
class Course:
    """When things happen in a run."""

    memorized: float
    sync: float | None
    grok: float | None
    end: int
    start: int = 0
    unstable: bool = False


def lifelike(n_seeds: int | None, names: Iterable[str] = EXPERIMENTS) -> Evidence:
    """Every run of the studies, at so many seeds."""
    planned = {study: EXPERIMENTS[study](n_seeds, "float32") for study in names}
    found = {
        study: {name: record(spec, course(study, name, spec), place) for place, (name, spec) in enumerate(runs.items())}
        for study, runs in planned.items()
    }
    return Evidence(found)


def course(study: str, name: str, spec: RunSpec) -> Course:
    """Events of a run, drawn by its name."""
    draw = np.random.default_rng(list(name.encode()))
    end, decay = spec.training.steps, spec.training.weight_decay
    grok = float(draw.normal(3800, 500))
    if spec.fork is not None:
        prime = {"add_mod53": 4600.0, "add_mod131": 1750.0}.get(spec.task, 2900.0)
        fails = decay == 10 or (decay == 5 and draw.random() < 0.3)
        wait = prime / decay * float(draw.lognormal(0.08, 0.1)) + 40 * decay
        return Course(0, spec.fork.step - 200, None if fails else spec.fork.step + wait, end, spec.fork.step, decay > 3)
    if study == "accelerator" and spec.trigger is not None:
        high = spec.trigger.weight_decay
        early = name.startswith(("mem", "early", "random"))
        fails = early and (high == 10 or (high == 5 and draw.random() < 0.5))
        return Course(500, 1500, None if fails else grok * (0.55 if early else 0.62), end, 0, fails)
    if study == "architecture" and name.startswith("mlp_only"):
        return Course(1e9 if "pooled" not in name else 900, 500, None, end)
    if spec.task == "S5":
        slow = {0.7: 1.2, 0.5: 1.9, 0.3: None}[spec.train_fraction]
        return Course(600, grok * 0.5, None if slow is None else grok * slow, end)
    lag = 1000 if name.startswith("one_layer") else -float(draw.normal(1800, 600))
    return Course(float(draw.normal(450, 60)), None if draw.random() < 0.04 else grok + lag, grok, end)


def record(spec: RunSpec, events: Course, seed: int) -> RunRecord:
    """The course as columns over looks."""
    draw = np.random.default_rng(seed)
    steps = np.arange(events.start, events.end + 1, EVERY)
    noise = draw.normal(0, 0.02, (3, len(steps)))

    def rise(at: float | None, width: float) -> np.ndarray:
        return np.zeros(len(steps)) if at is None else 1 / (1 + np.exp(-np.clip((steps - at) / width, -30, 30)))

    train = np.clip(rise(events.memorized - 150, 60), 0.01, 1)
    validation = np.clip(
        0.01 + 0.1 * rise(events.memorized, 200) + 0.93 * rise(events.grok and events.grok - 300, 90), 0, 1
    )
    if events.unstable:
        late = steps > (events.grok or events.start) + 600
        validation = np.where(late, draw.uniform(0.02, 0.9, len(steps)), validation)
        train = np.where(late & (events.grok is None), 0.4, train)
    fsd = np.clip(0.15 + 0.8 * rise(events.sync and events.sync - 200, 250) + noise[0] * 2, 0, 1)
    settled = rise(events.sync and events.sync + 300, 300)
    rank = np.maximum(1, np.round(25 * np.exp(-(steps - events.start) / 350.0) + 5 * (1 - settled)))
    until = 23 + draw.normal(0, 1)
    norm = until + (52 - until) * np.exp(-(steps - events.start) * spec.training.weight_decay / 1400) + noise[1] * 4
    log = {"step": steps, "train_accuracy": train, "validation_accuracy": validation, "norm": norm, "fsd": fsd}
    log |= {"rank": rank, "fsd_mode": np.full(len(steps), 5), "answer_share": np.full(len(steps), 0.1)}
    rows = steps % 500 == 0
    measured = {
        "step": steps[rows],
        "control_fsd": np.clip(0.1 + 0.5 * rise(events.grok, 800)[rows] + noise[2][rows], 0, 1),
    }
    measured["paper_restricted"] = (
        np.where(validation[rows] > 0.9, 0.1, 3.0) if events.grok else np.full(rows.sum(), nan)
    )
    at = [int(step) for step in steps]
    memorized, grokked = (first_step(at, list(part), least) for part, least in ((train, 0.99), (validation, 0.95)))
    return RunRecord(
        spec,
        RunOutcome("grokked", memorized=memorized, grokked=grokked),
        {name: column.tolist() for name, column in log.items()},
        {name: column.tolist() for name, column in measured.items()},
    )
