"""Forks held against their parents: where they begin, and, if nothing was changed, all the way, to the last bit."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Any

from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec

__all__ = ["ForksCheck", "check_forks", "is_control"]

# Of a fork's first evaluation: what the fork itself sets, and what its weights alone say, whatever the temperature.
OWN_COLUMNS = ("weight_decay",)
OF_WEIGHTS = ("norm", "fingerprint")


@dataclass(frozen=True)
class ForksCheck:
    """What comparing every fork with its parent found."""

    forks: int
    """Forks whose parent is among the records, and that begin with its weights."""
    begin_equal: int
    """Those whose first evaluation equals the parent's at that step in every column but λ."""
    controls: int
    """Forks that change nothing."""
    equal: int
    """Those whose every evaluation equals the parent's in every column, the fingerprint of the state among them."""
    fingerprints: bool
    """Whether the logs have fingerprints, so that equal means equal weights and moments, bit for bit."""
    equal_weights: int = 0
    """Control forks whose last weights equal the parent's at that step, by the SHA-256 of their bytes."""
    without_parent: tuple[str, ...] = ()
    """Forks whose parent is not among the records."""
    differing: tuple[str, ...] = ()
    """Forks that differ where they should not."""

    def to_dict(self) -> dict[str, Any]:
        """As it is stored in a packed file's first line."""
        return {
            "forks": self.forks,
            "begin_equal": self.begin_equal,
            "controls": self.controls,
            "equal": self.equal,
            "fingerprints": self.fingerprints,
            "equal_weights": self.equal_weights,
            "without_parent": list(self.without_parent),
            "differing": list(self.differing),
        }

    def __str__(self) -> str:
        what = "log and fingerprints of weights and moments" if self.fingerprints else "log (no fingerprints)"
        text = (
            f"{self.begin_equal} of {self.forks} forks begin as their parent is at that step; "
            f"{self.equal} of {self.controls} control forks equal their parent in every evaluation: {what}; "
            f"{self.equal_weights} of {self.controls} end with its weights (SHA-256)"
        )
        named = [f"{len(names)} {why}: {', '.join(names[:3])}" for why, names in self._problems() if names]
        return "; ".join([text, *named])

    def _problems(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ("differ", self.differing), ("have no parent here", self.without_parent)


def check_forks(records: Iterable[RunRecord]) -> ForksCheck:
    """Compare every fork with its parent, and every fork that changes nothing with all that its parent logged.

    >>> check_forks([]).controls
    0
    """
    found = list(records)
    by_name = {record.spec.content_hash: record for record in found}
    forks = [record for record in found if record.spec.fork is not None]
    pairs = [(record, by_name[_parent(record)]) for record in forks if _parent(record) in by_name]
    begun = {fork.name: _begins_equal(fork, parent) for fork, parent in pairs if _keeps_state(fork.spec)}
    controls = [(fork, parent) for fork, parent in pairs if is_control(fork, parent)]
    same = {fork.name: _is_equal(fork, parent) for fork, parent in controls}
    ends = {fork.name: holds for fork, parent in controls if (holds := _ends_equal(fork, parent)) is not None}
    return ForksCheck(
        forks=len(begun),
        begin_equal=sum(begun.values()),
        controls=len(same),
        equal=sum(same.values()),
        fingerprints=bool(found) and all("fingerprint" in record.evaluations for record in found),
        without_parent=tuple(record.name for record in forks if _parent(record) not in by_name),
        equal_weights=sum(ends.values()),
        differing=tuple(
            dict.fromkeys(name for kind in (begun, same, ends) for name, holds in kind.items() if not holds)
        ),
    )


def is_control(fork: RunRecord, parent: RunRecord) -> bool:
    """Whether a fork changes nothing: its spec is the parent's but for budget and cadences, and its hold never acts.

    >>> from grokscope.runs.outcome import RunOutcome
    >>> from grokscope.specs import Fork
    >>> parent = RunRecord(RunSpec(), RunOutcome(), {}, {})
    >>> fork = replace(parent, spec=replace(RunSpec(), fork=Fork(RunSpec().content_hash, 1000)))
    >>> is_control(fork, parent)
    True
    """
    spec, other = fork.spec, parent.spec
    alike = replace(
        spec,
        fork=other.fork,
        training=replace(spec.training, steps=other.training.steps),
        checkpoints=other.checkpoints,
        measurements=other.measurements,
        norm_hold=other.norm_hold,
    )
    return alike == other and _keeps_state(spec) and (spec.norm_hold == other.norm_hold or _never_acts(fork, parent))


def _never_acts(fork: RunRecord, parent: RunRecord) -> bool:
    """Whether a fork's own hold is a floor that its parent's norm stays clear of: half of it is far below."""
    hold, norms = fork.spec.norm_hold, parent.evaluations.get("norm", [])
    if hold is None or hold.level is None or hold.side != "at_least" or hold.parts != ("all",) or not norms:
        return False
    return hold.level < min(norms) / 2


def _keeps_state(spec: RunSpec) -> bool:
    """Whether a fork begins with its parent's weights and moments as they are."""
    fork = spec.fork
    return fork is not None and fork.scale == 1 and fork.moments == "kept"


def _parent(record: RunRecord) -> str:
    assert record.spec.fork is not None
    return record.spec.fork.parent


def _begins_equal(fork: RunRecord, parent: RunRecord) -> bool:
    assert fork.spec.fork is not None
    step = fork.spec.fork.step
    ours, theirs = _row(fork, step), _row(parent, step)
    if ours is not None and theirs is not None and fork.spec.architecture != parent.spec.architecture:
        ours, theirs = ({name: row[name] for name in OF_WEIGHTS if name in row} for row in (ours, theirs))
    return ours is not None and theirs is not None and _agree(ours, theirs, without=OWN_COLUMNS)


def _is_equal(fork: RunRecord, parent: RunRecord) -> bool:
    """Whether both logged the same wherever both were evaluated, and the fork's last evaluation is among these."""
    common = [step for step in fork.evaluations["step"] if step in set(parent.evaluations["step"])]
    rows = [(_row(fork, step), _row(parent, step)) for step in common]
    is_whole = bool(common) and fork.evaluations["step"][-1] == common[-1]
    return is_whole and all(ours is not None and theirs is not None and _agree(ours, theirs) for ours, theirs in rows)


def _ends_equal(fork: RunRecord, parent: RunRecord) -> bool | None:
    """Whether a fork's last weights are the parent's at that step; None where one of both kept no digest there."""
    step = str(fork.spec.training.steps)
    ours, theirs = ((record.outcome.weights or {}).get(step) for record in (fork, parent))
    return None if ours is None or theirs is None else ours == theirs


def _row(record: RunRecord, step: int | float) -> dict[str, int | float] | None:
    steps = record.evaluations.get("step", [])
    if step not in steps:
        return None
    place = steps.index(step)
    return {name: values[place] for name, values in record.evaluations.items()}


def _agree(ours: Mapping[str, int | float], theirs: Mapping[str, int | float], without: tuple[str, ...] = ()) -> bool:
    """Whether two rows say the same; a column that one of them lacks is undefined there."""
    names = {*ours, *theirs} - {*without}
    pairs = [(ours.get(name, nan), theirs.get(name, nan)) for name in names]
    return all(one == other or (isnan(one) and isnan(other)) for one, other in pairs)
