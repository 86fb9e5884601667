"""The one law that the summary, the page and the studies report: which branches it is fitted to, and when it is fitted.

A family is what may be compared: forks made for one experiment of one study (else of one folder), of one task, at one
step, that differ in λ and seed alone. Families are never pooled.
"""

import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import isclose, isnan, nan
from typing import TYPE_CHECKING, Any, Protocol

from grokscope.errors import InputError
from grokscope.law.censored import CensoredFit, fit_censored
from grokscope.law.fits import LawFit, fit_law
from grokscope.law.runs import Ending, ForkedRun, forked_run
from grokscope.specs import Fork, Membership, RunSpec
from grokscope.timeline import Timeline

__all__ = ["Branch", "Family", "Law", "fork_families", "law_of"]

SEED, RESAMPLES = 0, 200  # of the bootstrap of censored fits
LEAST_FREEDOM = 2  # degrees of freedom below which a fit tests nothing
SAME_STATE = 1e-5  # relative, of a norm: a parent that was trained again elsewhere never agrees so well


if TYPE_CHECKING:

    class _Ended(Protocol):
        @property
        def is_finished(self) -> bool: ...

    class ForkRecord(Protocol):
        """What is needed of a `runs.RunRecord`, a room above this one."""

        @property
        def spec(self) -> RunSpec: ...

        @property
        def outcome(self) -> _Ended: ...

        @property
        def timeline(self) -> Timeline: ...

        @property
        def made_for(self) -> tuple[Membership, ...]: ...

        def at(self, step: int, column: str) -> float: ...

else:
    ForkRecord = Any  # checking a record against a protocol would compute its timeline


@dataclass(frozen=True)
class Branch:
    """One run of a family from the fork on."""

    place: int
    """Where its record stands among those given."""
    run: ForkedRun
    """The run as the law sees it."""
    is_parent: bool = False
    """Whether it is the parent itself, going on with its own λ."""


@dataclass(frozen=True)
class Family:
    """Branches that may be compared with each other."""

    study: str
    """Study and experiment its forks were made for, `synchronization/crossprime`; else their folder."""
    task: str
    """What they learn."""
    step: int
    """Where they were forked."""
    branches: tuple[Branch, ...]
    """Forks by seed and λ, parents among them."""

    @property
    def runs(self) -> list[ForkedRun]:
        """All branches as the law sees them."""
        return [branch.run for branch in self.branches]

    @property
    def title(self) -> str:
        """What its forks are: `add_mod97 forked at 1,000, synchronization/fork`."""
        return f"{self.task} forked at {self.step:,}{f', {self.study}' if self.study else ''}"

    @property
    def size(self) -> str:
        """Of what the law is made: `2 forks and the run itself`."""
        parents = sum(branch.is_parent for branch in self.branches)
        forks = len(self.branches) - parents
        parts = [f"{forks} fork{'s' * (forks != 1)}"]
        parts += [f"{parents} parent{'s' * (parents != 1)}"] if parents else []
        return " and ".join(parts)


@dataclass(frozen=True)
class Law:
    """Δt = C/λ and Δt = C λ^−α fitted to one family; None where too few points are left to test them."""

    constant: LawFit | None
    """C = mean(λΔt) over the mean Δt of each λ, the paper's estimator."""
    power: CensoredFit | None
    """C and α by maximum likelihood, runs that have not yet grokked counted as censored."""
    r_squared: float
    """Of C/λ over the means; NaN with fewer than three λ."""
    aic_difference: float
    """AIC of C λ^−α less that of C/λ, both by maximum likelihood: below 0 speaks against C/λ. NaN without α."""
    reason: str
    """Why there is no fit; empty where both are there."""


def law_of(runs: Sequence[ForkedRun]) -> Law:
    """The law of one family, with bootstrap intervals over seeds; the order of runs does not matter.

    A point is a run that grokked after the fork. A fit needs two λ, more points than parameters, and two degrees of
    freedom: through two points a law with two parameters always passes.

    >>> law_of([]).reason
    '0 points, 1 parameter: nothing left to test'
    """
    ordered = sorted(runs, key=lambda run: (_sortable(run.draw), run.weight_decay, run.learning_rate))
    grokked = [run for run in ordered if run.ending is Ending.GROKKED]
    decays = len({run.weight_decay for run in grokked})
    reasons = [_too_few(len(grokked), decays, parameters) for parameters in (1, 2)]
    constant = None if reasons[0] else fit_law(ordered, "mean", seed=SEED)
    power = None if reasons[1] else fit_censored(ordered, "power", seed=SEED, resamples=RESAMPLES)
    simple = None if reasons[1] else fit_censored(ordered, "inverse", seed=SEED, resamples=0)
    return Law(
        constant,
        power,
        r_squared=constant.r_squared if constant and decays - 1 >= LEAST_FREEDOM else nan,
        aic_difference=power.aic - simple.aic if power and simple else nan,
        reason=reasons[0] or reasons[1],
    )


def _too_few(points: int, decays: int, parameters: int) -> str:
    if decays == 1:
        return "one value of λ: nothing to compare"
    left = points - parameters
    if left >= LEAST_FREEDOM:
        return ""
    words = f"{points} point{'s' * (points != 1)}, {parameters} parameter{'s' * (parameters != 1)}"
    return f"{words}: {'nothing' if left <= 0 else 'one degree of freedom'} left to test"


def _sortable(draw: Hashable) -> tuple[bool, float, str]:
    return (False, float(draw), "") if isinstance(draw, int | float) else (True, 0.0, str(draw))


def fork_families(records: Sequence[ForkRecord], folder: str = "") -> list[Family]:
    """The families among records, the largest first; only forks that change nothing but λ have a law.

    The parent is the branch that it is, where no fork of it has its λ and it is the state the forks left. A record
    made for several experiments is in the families of each.
    """
    parents = {identity: record for record in records if (identity := _identity(record.spec))}
    places = {id(record): place for place, record in enumerate(records)}
    found: dict[tuple[str, str, int, str, float | None], list[Branch]] = {}
    for place, record in enumerate(records):
        fork, run = record.spec.fork, _plain(record)
        if fork is None or run is None:
            continue
        decay = parents[fork.parent].spec.training.weight_decay if fork.parent in parents else None
        for study in _studies(record, folder):
            key = (study, record.spec.task, fork.step, _shared(record.spec), decay)
            found.setdefault(key, []).append(Branch(place, run))
    families = []
    for (study, task, step, *_), branches in found.items():
        joined = [*branches, *_parents(branches, records, parents, places)]
        joined.sort(key=lambda branch: (_sortable(branch.run.draw), branch.run.weight_decay))
        families.append(Family(study, task, step, tuple(joined)))
    return sorted(families, key=lambda family: (-len(family.branches), family.title))


def _parents(
    branches: Sequence[Branch],
    records: Sequence[ForkRecord],
    parents: dict[str, ForkRecord],
    places: dict[int, int],
) -> Iterable[Branch]:
    """The parents of these forks that are branches themselves."""
    forks: dict[str, list[ForkRecord]] = {}
    for branch in branches:
        record = records[branch.place]
        assert record.spec.fork is not None
        forks.setdefault(record.spec.fork.parent, []).append(record)
    for identity, children in forks.items():
        parent, step = parents.get(identity), _step(children[0].spec)
        if parent is None or any(
            child.spec.training.weight_decay == parent.spec.training.weight_decay or not _left(child, parent)
            for child in children
        ):
            continue
        if (run := _plain(parent)) is not None and run.watched > step:
            wait = None if run.steps_to_grok is None else run.steps_to_grok - step
            own = replace(run, steps_to_grok=wait, watched=run.watched - step, norm_at_fork=parent.at(step, "norm"))
            yield Branch(places[id(parent)], own, is_parent=True)


def _step(spec: RunSpec) -> int:
    return spec.fork.step if spec.fork else 0


def _left(child: ForkRecord, parent: ForkRecord) -> bool:
    """Whether a fork begins where its parent was at that step; where one has no norm, nothing speaks against it."""
    own, before = (record.at(_step(child.spec), "norm") for record in (child, parent))
    return isnan(own) or isnan(before) or isclose(own, before, rel_tol=SAME_STATE)


def _plain(record: ForkRecord) -> ForkedRun | None:
    """A run as the law sees it; None if more than λ was changed, or it has not ended."""
    spec = record.spec
    fork = spec.fork or Fork("0" * 16, 0)
    if (fork.norm, fork.scale, fork.moments) != ("free", 1, "kept") or spec.trigger is not None:
        return None
    if spec.training.weight_decay_schedule or spec.control is not None or not record.outcome.is_finished:
        return None
    try:
        return forked_run(spec, record.timeline)
    except InputError:  # without decay there is no law, and without an evaluation no run
        return None


def _studies(record: ForkRecord, folder: str) -> list[str]:
    return list(dict.fromkeys(f"{one.study}/{one.experiment}" for one in record.made_for)) or [folder]


def _identity(spec: RunSpec) -> str:
    try:
        return spec.content_hash
    except InputError:  # a table that is not pinned has no hash, and no forks
        return ""


def _shared(spec: RunSpec) -> str:
    """What the forks of a family have in common: the spec without λ, seeds, parent, budget and cadences."""
    parts = spec.to_dict()
    kept = {name: value for name, value in parts.items() if name not in ("seeds", "checkpoints", "measurements")}
    training = {name: value for name, value in parts["training"].items() if name not in ("weight_decay", "steps")}
    return json.dumps(kept | {"training": training, "fork": _step(spec)}, sort_keys=True)
