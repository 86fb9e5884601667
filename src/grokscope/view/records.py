"""Stored runs as records, whether they have ended or not."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

from grokscope.errors import InputError
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.runs.run_folder import RunFolder
from grokscope.timeline import Timeline

__all__ = ["columns_of", "stored_record", "timeline_or_none"]


def stored_record(folder: RunFolder) -> RunRecord:
    """A stored run as far as it is logged."""
    outcome = RunOutcome.from_dict(folder.outcome) if folder.outcome else RunOutcome()
    return RunRecord(folder.spec, outcome, columns_of(folder.log()), columns_of(folder.log("measures")))


def timeline_or_none(record: RunRecord) -> Timeline | None:
    """A record's events; None before its first evaluation, or where its log lacks what a timeline needs."""
    try:
        return record.timeline
    except InputError:
        return None


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows of a log as columns of numbers; what a row lacks is NaN.

    >>> columns_of([{"step": 0, "fsd": None}, {"step": 100, "fsd": 0.5, "undefined": "why"}])
    {'step': [0, 100], 'fsd': [nan, 0.5]}
    """
    names = dict.fromkeys(name for row in rows for name in row)
    numeric = [name for name in names if not any(isinstance(row.get(name), str) for row in rows)]
    return {name: [nan if row.get(name) is None else row[name] for row in rows] for name in numeric}
