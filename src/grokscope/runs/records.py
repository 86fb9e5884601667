"""What is left of a run when its weights are gone: its spec, its log, what was measured, and how it ended.

Tables, figures and claims are made of records alone, so runs may be trained anywhere and judged anywhere else.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import isclose, isnan, nan
from pathlib import Path
from typing import Any

from grokscope.errors import InputError
from grokscope.runs.outcome import EVENTS, RunOutcome
from grokscope.runs.run_folder import RunFolder, run_name
from grokscope.files import named, write_atomically
from grokscope.specs import Membership, ReadingSpec, RunSpec
from grokscope.tasks import named_task
from grokscope.timeline import Timeline, timeline_of

__all__ = ["RunRecord", "begins_in", "begun_elsewhere", "packed", "record_of", "save_records", "unpacked"]

FORMAT = "grokscope records 1"
DIGITS = 7  # significant: what float32 holds
SAME = 1e-5  # relative, of a norm: what rounding leaves of one state, and two makings of a run never share
LOGGED = ("step", "train_accuracy", "validation_accuracy")  # in every log
Columns = dict[str, list[float]]


@dataclass(frozen=True, eq=False)
class RunRecord:
    """One run: finished, running, packed or monitored."""

    spec: RunSpec
    """What was run."""
    outcome: RunOutcome
    """How it ended, if it has."""
    evaluations: Columns
    """Columns over the evaluations: step, accuracies, losses, norm, fsd, rank, answer share, λ."""
    checkpoints: Columns
    """Columns over the checkpoints: step and what was measured there; empty if nothing was."""
    made_for: tuple[Membership, ...] = ()
    """The studies it was trained for."""

    @cached_property
    def timeline(self) -> Timeline:
        """Its events, by the paper's thresholds; of a group's run, FSD_gen's."""
        return self.timeline_by(ReadingSpec())

    def timeline_by(self, reading: ReadingSpec) -> Timeline:
        """Its events, by these thresholds."""
        at = reading.sync_at(is_group=named_task(self.spec.task).sums is None)
        return timeline_of(self._with_restricted_loss(), reading, failed_at=self.outcome.failed_at, sync_at=at)

    @property
    def name(self) -> str:
        """Its name with its content hash, as its folder is called."""
        return run_name(self.spec)

    def seen_every(self, steps: int) -> "RunRecord":
        """The run as somebody sees it who evaluates only so often, and at its start."""
        return _thinned(self, steps)

    def at(self, step: int, column: str) -> float:
        """A column's value at a step; NaN if there was no look."""
        for part in (self.evaluations, self.checkpoints):
            if column in part and step in part["step"]:
                return part[column][part["step"].index(step)]
        return nan

    def _with_restricted_loss(self) -> Columns:
        """The log with the paper's restricted loss where it was measured."""
        if "paper_restricted" not in self.checkpoints:
            return self.evaluations
        known = dict(zip(self.checkpoints["step"], self.checkpoints["paper_restricted"], strict=True))
        return self.evaluations | {"restricted_loss": [known.get(step, nan) for step in self.evaluations["step"]]}


@lru_cache(maxsize=8192)  # every table and claim asks for the same
def _thinned(record: RunRecord, steps: int) -> RunRecord:
    first = min(record.evaluations["step"], default=0)
    rows = [row for row, step in enumerate(record.evaluations["step"]) if step % steps == 0 or step == first]
    seen = {name: [values[row] for row in rows] for name, values in record.evaluations.items()}
    return replace(record, evaluations=seen)


def record_of(folder: RunFolder) -> RunRecord:
    """The record of a finished run."""
    if folder.outcome is None:
        raise InputError(f"{folder.name} is not finished; continue it with `grokscope resume`")
    return RunRecord(
        folder.spec, RunOutcome.from_dict(folder.outcome), _columns(folder.log()), _columns(folder.log("measures"))
    )


def begins_in(branch: RunRecord, parent: RunRecord) -> bool:
    """Whether a fork's first look is its parent's at that step, so that it branched off this making of it.

    Training is chaotic: a parent that was made again elsewhere is another run, and its earlier forks are not of it.
    Where one of them was not looked at, nothing speaks against it.
    """
    fork = branch.spec.fork
    if fork is None:
        return False
    own, before = (record.at(fork.step, "norm") for record in (branch, parent))
    return isnan(own) or isnan(before) or isclose(own, fork.scale * before, rel_tol=SAME)


def begun_elsewhere(records: Iterable[RunRecord]) -> tuple[int, int]:
    """How many forks do not begin in the parent that is among these records, and of how many with a parent there."""
    by_hash = {record.spec.content_hash: record for record in records}
    pairs = [
        (record, by_hash[fork.parent])
        for record in by_hash.values()
        if (fork := record.spec.fork) is not None and fork.parent in by_hash
    ]
    return sum(not begins_in(branch, parent) for branch, parent in pairs), len(pairs)


def packed(records: Iterable[RunRecord]) -> bytes:
    """Records as one compressed file of lines, numbers to seven digits; the same records give the same bytes."""
    lines = [json.dumps({"format": FORMAT})]
    for record in records:
        parts = {"spec": record.spec.to_dict(), "outcome": record.outcome.to_dict()}
        parts |= {"log": _shortened(record.evaluations), "measured": _shortened(record.checkpoints)}
        lines.append(json.dumps(parts, separators=(",", ":")))
    return gzip.compress("\n".join(lines).encode(), mtime=0)


def unpacked(path: Path) -> list[RunRecord]:
    """The records in a file that `packed` made."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:  # the text of many records is larger than they are
            if json.loads(next(lines, "null")) != {"format": FORMAT}:
                raise ValueError(f"it is not '{FORMAT}'")
            return [_record(json.loads(line)) for line in lines]
    except (OSError, EOFError, zlib.error, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise InputError(f"the records {named(path)} cannot be read: {error}") from None


def save_records(path: Path, records: Iterable[RunRecord]) -> None:
    """Write records."""
    write_atomically(path, packed(records))


def _record(parts: Mapping[str, Any]) -> RunRecord:
    columns = [
        {name: [nan if x is None else x for x in values] for name, values in parts[part].items()}
        for part in ("log", "measured")
    ]
    lacking = [name for name in LOGGED if name not in columns[0]]
    if lacking:
        raise ValueError(f"a log has no column {lacking[0]!r}")
    for part in columns:
        _refuse_uneven(part)
    for name in EVENTS:
        if name not in parts["outcome"]:
            raise ValueError(f"an outcome does not say {name!r}")
    return RunRecord(RunSpec.from_dict(parts["spec"]), RunOutcome.from_dict(parts["outcome"]), columns[0], columns[1])


def _refuse_uneven(columns: Columns) -> None:
    """What `packed` never writes, and whoever reads a record relies on: numbers, as many in each column."""
    if len({len(values) for values in columns.values()}) > 1:
        raise ValueError("the columns of a log are not of one length")
    for name, values in columns.items():
        if not all(isinstance(value, int | float) for value in values):
            raise ValueError(f"the column {name[:40]!r} of a log holds something that is not a number")


def _columns(rows: list[dict[str, Any]]) -> Columns:
    names = dict.fromkeys(name for row in rows for name in row)  # a continued run may have been asked for more
    kept = [name for name in names if not any(isinstance(row.get(name), str) for row in rows)]
    return {name: [nan if row.get(name) is None else row[name] for row in rows] for name in kept}


def _shortened(columns: Columns) -> dict[str, list[float | None]]:
    return {
        name: [None if isnan(x) else x if isinstance(x, int) else float(f"{x:.{DIGITS}g}") for x in values]
        for name, values in columns.items()
    }
