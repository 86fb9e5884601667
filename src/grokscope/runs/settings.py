"""Runs told apart by their settings, and selected by them: `add_mod97_s0:weight_decay=2`."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import combinations
from typing import Any

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.specs import ClosedLoop, Fork, NormHold, Release, RunSpec, Trigger

__all__ = ["differing", "is_selected", "settings_of", "suffixes"]

MOST_NAMED = 3  # settings that name a run; where they do not suffice, its hash has to
OPTIONAL = {"fork": Fork, "trigger": Trigger, "control": ClosedLoop, "release": Release, "norm_hold": NormHold}


def settings_of(spec: RunSpec | Mapping[str, Any]) -> dict[str, Any]:
    """Every setting of a run, given as its spec or as the spec's dictionary, by its name.

    The settings of other parts than training and architecture are named with their part. Those of a part that a run
    does not have, such as a fork, are None, so that all runs have the same settings.

    >>> found = settings_of(RunSpec())
    >>> found["task"], found["weight_decay"], found["width"], found["seeds.split"], found["fork.step"]
    ('add_mod97', 1.0, 128, 0, None)
    """
    found: dict[str, Any] = {}
    for part, value in (spec.to_dict() if isinstance(spec, RunSpec) else spec).items():
        beginning = "" if part in ("training", "architecture") else f"{part}."
        if part in OPTIONAL and value is None:
            value = dict.fromkeys(field.name for field in fields(OPTIONAL[part]))
        found |= (
            {f"{beginning}{name}": one for name, one in value.items()} if isinstance(value, Mapping) else {part: value}
        )
    return found


def differing(specs: Sequence[RunSpec]) -> dict[str, list[Any]]:
    """The settings in which these runs differ, each with the runs' values in their order."""
    every = [settings_of(spec) for spec in specs]
    columns = {name: [settings[name] for settings in every] for name in every[0]} if every else {}
    return {name: values for name, values in columns.items() if any(value != values[0] for value in values)}


def suffixes(specs: Sequence[RunSpec]) -> list[str] | None:
    """What tells each run from the others, as `:weight_decay=2`; None where it would take too many settings."""
    columns = {name: [*map(_written, values)] for name, values in differing(specs).items()}
    for count in range(1, MOST_NAMED + 1):
        for names in combinations(columns, count):
            rows = list(zip(*(columns[name] for name in names), strict=True))
            if len(set(rows)) == len(rows):
                return ["".join(f":{name}={value}" for name, value in zip(names, row, strict=True)) for row in rows]
    return None


def is_selected(spec: RunSpec, conditions: Sequence[str]) -> bool:
    """Whether a run has these settings, each written as `weight_decay=2`; an unknown one is rejected."""
    settings = settings_of(spec)
    for condition in conditions:
        name, equals, wanted = condition.partition("=")
        if not equals:
            raise InputError(f"a run is selected as in NAME:weight_decay=2, got {shown(condition)}")
        if name not in settings:
            raise InputError(f"a run has no setting {shown(name)}{did_you_mean(name, settings)}")
        if not _is_value(settings[name], wanted):
            return False
    return True


def _written(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else "none" if value is None else str(value)


def _is_value(value: object, wanted: str) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(wanted) == value
        except ValueError:
            return False
    return _written(value).lower() == wanted.lower()
