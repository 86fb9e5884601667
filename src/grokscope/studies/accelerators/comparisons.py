"""Estimands that compare arms: how many times sooner one median is, and which share of runs gets there."""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, sqrt
from typing import Any, Literal

import numpy as np

from grokscope.runs.records import RunRecord
from grokscope.studies import Estimand, Selection, Stratum
from grokscope.studies.accelerators.events import pattern, read_events
from grokscope.studies.accelerators.settings import MUON_TASKS, SETTINGS
from grokscope.studies.reduction import Reduction, mean, median, spread
from grokscope.tasks import named_task, train_size

__all__ = ["epochs", "half_on_a_log_scale", "ratio", "shares", "shown_as", "sooner_than_decay", "step", "stratum"]

Event = Literal["grok", "stable"]


def half_on_a_log_scale(factor: float) -> float:
    """√factor: at least as near to the published factor as to none.

    >>> half_on_a_log_scale(25.0)
    5.0
    """
    return sqrt(factor)


def stratum(setting: str, arm: str, drawn: int | None) -> Stratum:
    """An arm's runs, of which a paper had so many.

    >>> stratum("Grokfast", "Adam", 1).runs.configuration
    'Grokfast/Adam'
    """
    runs = Selection((SETTINGS[setting].experiment,), configuration=pattern(setting, arm))
    return Stratum(pattern(setting, arm), runs, drawn)


def step(setting: str, arm: str, event: Event) -> Estimand:
    """The median step of an event."""
    own = stratum(setting, arm, 1)
    return Estimand(
        f"median steps to {WORDS[event]}", (own,), read_events, {"steps": median(event)}, "{steps:,.0f}",
        ("steps", ",.0f"),
    )  # fmt: skip


def ratio(setting: str, arm: str, baseline: str, event: Event, drawn: int | None = None) -> Estimand:
    """How many times sooner an arm's median is than a baseline's, whose runs that do not get there count as its budget.

    So it is at most what longer runs would show. Of an arm that does not get there it is 0.
    """
    names = (pattern(setting, baseline), pattern(setting, arm))
    return Estimand(
        f"speed-up to {WORDS[event]}, {arm} against {baseline}",
        (stratum(setting, baseline, drawn), stratum(setting, arm, drawn)),
        read_events,
        {"baseline": median(f"{event} wait", names[0]), "own": median(event, names[1])},
        "{ratio:.1f} times ({baseline:,.0f} to {own:,.0f} steps)",
        ("ratio", ".1f"),
        derive=derive_ratio,
    )


def derive_ratio(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Baseline over arm."""
    return {"ratio": parts["baseline"] / parts["own"]}


def sooner_than_decay(settings: tuple[str, ...], arm: str, decays: tuple[str, ...]) -> Estimand:
    """How many times sooner an arm is stable than the sooner of some decays, as a geometric mean over settings."""
    parts: dict[str, Reduction] = {}
    for setting in settings:
        parts |= {f"{setting}/{one}": median("stable wait", pattern(setting, one)) for one in decays}
        parts[f"{setting}/own"] = median("stable", pattern(setting, arm))
    return Estimand(
        f"speed-up to stable generalisation, {arm} against the better of {' and '.join(decays)}",
        tuple(stratum(setting, one, None) for setting in settings for one in (*decays, arm)),
        read_events,
        parts,
        "{ratio:.2f} times",
        ("ratio", ".2f"),
        derive=derive_best,
    )


def derive_best(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The geometric mean over settings of the sooner decay's median over the arm's; parts are called `SETTING/…`."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in parts.items():
        setting, is_part, arm = name.rpartition("/")
        if is_part:
            found.setdefault(setting, {})[arm] = np.asarray(value)
    logs = []
    for own in found.values():
        decays = [value for arm, value in own.items() if arm != "own"]
        logs.append(np.log(np.minimum.reduce(decays) / own["own"]))
    return {"ratio": np.exp(np.mean(logs, axis=0))}


def shares(setting: str, arms: Mapping[str, str], until: int | None = None) -> Estimand:
    """The share of each arm's runs that grok, by a step if one is given; `arms` names each part's arm."""
    return Estimand(
        f"share that groks{f' within {until:,} steps' if until else ''}",
        tuple(stratum(setting, arm, 1) for arm in arms.values()),
        read_reached,
        {part: mean("grokked", pattern(setting, arm)) for part, arm in arms.items()},
        "; ".join(f"{part} {{{part}:.0%}}" for part in arms),
        (tuple(arms), ".0%"),
        options={"until": until},
    )


def read_reached(record: RunRecord, until: int | None) -> Mapping[str, float]:
    """Whether a run groks, by a step if one is given."""
    return {"grokked": float(read_events(record)["grok"] <= (until or record.spec.training.steps))}


def epochs(arms: tuple[str, ...], baselines: tuple[str, ...]) -> Estimand:
    """Mean and spread of epochs to grokking over tasks and softmaxes.

    An epoch is a pass over the training rows, so many steps as they make batches. A run that does not get there counts
    as its budget, whichever its optimiser, so that the shares that get there belong to every rule about these means.
    """
    places = {"own": arms, "baseline": baselines}
    names = {
        part: tuple(pattern(_muon(task), arm) for task in MUON_TASKS for arm in own) for part, own in places.items()
    }
    both = (*baselines, *arms)
    return Estimand(
        "epochs to grokking",
        tuple(stratum(_muon(task), arm, None) for task in MUON_TASKS for arm in both),
        read_epochs,
        {
            **{part: mean("epochs", *own) for part, own in names.items()},
            **{f"{part} spread": spread("epochs", *own) for part, own in names.items()},
            **{f"{part} groks": mean("groks", *own) for part, own in names.items()},
        },
        "{ratio:.2f} times ({baseline:.1f} to {own:.1f} epochs)",
        ("ratio", ".2f"),
        derive=derive_epochs,
    )


def _muon(task: str) -> str:
    return f"Muon, {task.replace('_', ' ')}"


def read_epochs(record: RunRecord) -> Mapping[str, float]:
    """Epochs until a run groks, or of its budget; and whether it groks."""
    spec, events = record.spec, read_events(record)
    rows = train_size(named_task(spec.task), spec.train_fraction)
    return {
        "epochs": events["grok wait"] / ceil(rows / (spec.training.batch_size or rows)),
        "groks": events["grok reached"],
    }


def derive_epochs(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Baseline over arm, and the arm's spread over the baseline's."""
    return {
        "ratio": parts["baseline"] / parts["own"],
        "spread ratio": parts["own spread"] / parts["baseline spread"],
    }


def shown_as(estimand: Estimand, part: str, form: str) -> Estimand:
    """The same, of which another part is shown over all units.

    >>> shown_as(epochs(("Muon, softmax",), ("AdamW, softmax",)), "spread ratio", ".2f").effect
    ('spread ratio', '.2f')
    """
    return replace(estimand, text=f"{{{part}:{form}}}", effect=(part, form))


WORDS: dict[Event, str] = {"grok": "grokking", "stable": "stable generalisation"}
