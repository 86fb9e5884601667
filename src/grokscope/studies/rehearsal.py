"""Runs that are made up, on which rules, tables, figures and sentences are tried before there are any runs."""

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.runs.logs import Columns
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies.evidence import Evidence
from grokscope.studies.selection import configuration
from grokscope.studies.study import Study

__all__ = ["Events", "made_up"]

Events = Mapping[str, tuple[int | None, int | None]]
"""A pattern of configurations → the steps at which their runs memorise and grok; None is never."""
MADE_UP = {"device": "no device", "commit": "made up"}  # of provenance, so that no page of them looks like one of runs


def made_up(study: Study, events: Events, n_seeds: int | None = None, **columns: float) -> Evidence:
    """Every run of a study, as if the runs of each configuration had memorised and grokked at these steps.

    Both accuracies are 0 before and 1 from then on, at the evaluations that the run would have; further columns have
    one value throughout. The first pattern that a configuration fits is used, and each must fit one.

    >>> from grokscope.studies import find_study
    >>> evidence = made_up(find_study("clock"), {"*": (100, 900)})
    >>> {record.timeline.grokked for record in evidence.records["parents"].values()}
    {900}
    """
    experiments = study.runs(n_seeds)
    known = {configuration(name) for runs in experiments.values() for name in runs}
    for pattern in events:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise InputError(f"{study.name} has no configuration {shown(pattern)}{did_you_mean(pattern, known)}")
    records = {
        experiment: {name: _record(spec, _events_of(name, events), columns) for name, spec in runs.items()}
        for experiment, runs in experiments.items()
    }
    return Evidence(records)


def _events_of(name: str, events: Events) -> tuple[int | None, int | None]:
    kind = configuration(name)
    for pattern, found in events.items():
        if fnmatchcase(kind, pattern):
            return found
    raise InputError(f"nothing is made up for the configuration {shown(kind)}")


def _record(spec: RunSpec, events: tuple[int | None, int | None], columns: Mapping[str, float]) -> RunRecord:
    begins = spec.fork.step if spec.fork else 0
    steps = [step for step in sorted(spec.evaluation_steps) if step >= begins]
    log: Columns = {"step": [*steps]}
    log |= {name: [value] * len(steps) for name, value in columns.items()}
    memorized, grokked = (next((step for step in steps if at is not None and step >= at), None) for at in events)
    for name, begin in (("train_accuracy", memorized), ("validation_accuracy", grokked)):
        log[name] = [float(begin is not None and step >= begin) for step in steps]
    record = RunRecord(spec, RunOutcome(), log, {"step": []})
    ending = record.timeline.outcome.name.lower()
    outcome = RunOutcome(ending, memorized=memorized, grokked=grokked, provenance=MADE_UP)
    return replace(record, outcome=outcome)
