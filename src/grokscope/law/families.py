"""The one law that the summary, the page and the studies report: which branches it is fitted to, and when it is fitted.

A family is what may be compared: forks made for one experiment of one study (else of one folder), of one task, at one
step, that differ in λ and seed alone. Families are never pooled.

>>> from grokscope.timeline import Outcome
>>> times = {1: 3500, 2: 2000, 3: 1000}  # Δt by λ, evaluated every 500 steps
>>> runs = [ForkedRun(decay, time, Outcome.GROKKED, 500, 15000) for decay, time in times.items()]
>>> round(fit_constant(runs).parameters["constant"].value)
3030
>>> round(fit_mean_constant(runs).parameters["constant"].value)  # later, for evaluations are late
3500
>>> runs += [ForkedRun(0.5, 7000, Outcome.GROKKED, 500, 15000)]  # an exponent needs one more
>>> round(fit_exponent(runs).parameters["exponent"].value, 2)
1.09
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose, isnan, nan
from typing import Protocol, runtime_checkable

from grokscope.errors import InputError, plural
from grokscope.law.censored import PARAMETERS, CensoredFit, CensoredForm, fit_censored
from grokscope.law.fits import LawFit, fit_law
from grokscope.law.runs import Ending, ForkedRun, forked_run
from grokscope.specs import Fork, Membership, RunSpec
from grokscope.timeline import Timeline

__all__ = [
    "Branch",
    "Family",
    "Law",
    "Record",
    "begins_in",
    "count_foreign_forks",
    "fit_constant",
    "fit_exponent",
    "fit_mean_constant",
    "fork_families",
    "law_of",
]

LEAST_FREEDOM = 2  # degrees of freedom below which a fit tests nothing
SAME_STATE = 1e-5  # relative, of a norm: what rounding leaves of one state, and two trainings of a run never share
_Key = tuple[str, str, int, str]  # what a family is of: study, task, step, and the rest of the spec


@runtime_checkable
class _Ended(Protocol):
    @property
    def is_finished(self) -> bool: ...


@runtime_checkable
class Record(Protocol):
    """What the law needs of a run's record."""

    @property
    def spec(self) -> RunSpec:
        """What was run."""

    @property
    def outcome(self) -> _Ended:
        """Whether it has ended."""

    @property
    def timeline_or_none(self) -> Timeline | None:
        """Its events; None where its log has none."""

    @property
    def made_for(self) -> tuple[Membership, ...]:
        """The studies it was trained for."""

    def at(self, step: int, column: str, /) -> float:
        """A column's value at a step; NaN if there was no evaluation."""


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
    """Study and experiment its forks were made for, `synchronization/crossprime`; empty where for none."""
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
        return f"{self.task.partition('#')[0]} forked at {self.step:,}{f', {self.study}' if self.study else ''}"

    @property
    def size(self) -> str:
        """What the law is fitted to: `2 forks and 1 parent`."""
        parents = sum(branch.is_parent for branch in self.branches)
        forks = plural(len(self.branches) - parents, "fork")
        return f"{forks} and {plural(parents, 'parent')}" if parents else forks


@dataclass(frozen=True)
class Law:
    """Δt = C/λ and Δt = C λ^−α fitted to one family; None where too few points are left to test them."""

    constant: CensoredFit | None
    """C by maximum likelihood, runs that have not yet grokked counted as censored."""
    power: CensoredFit | None
    """C and α likewise."""
    aic_difference: float
    """AIC of C λ^−α less that of C/λ: below 0 speaks against C/λ. NaN without α."""
    reason: str
    """Why a fit is missing; empty where both are there."""


def law_of(runs: Sequence[ForkedRun]) -> Law:
    """The law of one family, with intervals over seeds; the order of runs does not matter.

    A point is a run that grokked after the fork. A fit needs two λ, more points than parameters, and two degrees of
    freedom: through two points a law with two parameters always passes.

    >>> law_of([]).reason
    '3 points are needed to test 1 parameter, and there are none'
    """
    reasons = [_too_few(runs, parameters) for parameters in (1, 2)]
    constant = None if reasons[0] else fit_constant(runs)
    power = None if reasons[1] else fit_exponent(runs)
    return Law(
        constant,
        power,
        aic_difference=power.aic - constant.aic if constant and power else nan,
        reason=reasons[0] or reasons[1],
    )


def fit_constant(runs: Sequence[ForkedRun]) -> CensoredFit:
    """C of one family by maximum likelihood, for page, summary and studies alike; rejects too few points to test it."""
    return _fit_where_tested(runs, "inverse")


def fit_exponent(runs: Sequence[ForkedRun]) -> CensoredFit:
    """C and α of Δt = C λ^−α, likewise."""
    return _fit_where_tested(runs, "power")


def _fit_where_tested(runs: Sequence[ForkedRun], form: CensoredForm) -> CensoredFit:
    if reason := _too_few(runs, len(PARAMETERS[form])):
        raise InputError(reason)
    return fit_censored(runs, form)


def fit_mean_constant(runs: Sequence[ForkedRun]) -> LawFit:
    """The paper's estimator, C = mean(λΔt) over the mean Δt of each λ (§6); rejects too few points to test it.

    R² is over the means of each λ, so it is NaN with fewer than three λ. Evaluations that are far apart make these
    means late, and runs that have not yet grokked are not in them: what grokscope reports as the law is `fit_constant`.
    """
    if reason := _too_few(runs, 1):
        raise InputError(reason)
    fit = fit_law(runs, "mean")
    return fit if len({*fit.weight_decay.tolist()}) - 1 >= LEAST_FREEDOM else replace(fit, r_squared=nan)


def _too_few(runs: Sequence[ForkedRun], parameters: int) -> str:
    """Why a law with so many parameters is not fitted; empty where it is."""
    grokked = [run.weight_decay for run in runs if run.ending is Ending.GROKKED]
    points = len(grokked)
    if len(set(grokked)) == 1:
        return "one value of λ: nothing to compare"
    left = points - parameters
    if left >= LEAST_FREEDOM:
        return ""
    needed = f"{parameters + LEAST_FREEDOM} points are needed to test {plural(parameters, 'parameter')}"
    return f"{needed}, and there {'is' if points == 1 else 'are'} {points or 'none'}"


def fork_families(records: Sequence[Record]) -> list[Family]:
    """The families among records, the largest first; only finished forks that change nothing but λ have a law.

    The parent is the branch that it is, where no fork of it has its λ and it is the state the forks left. Forks of
    parents with different λ are different families; those of a missing parent are of the family they can only be of.
    A record made for several experiments is in the families of each.

    >>> from grokscope.runs.outcome import RunOutcome
    >>> from grokscope.runs.records import RunRecord
    >>> from grokscope.specs import RunSpec
    >>> fork_families([RunRecord(RunSpec(), RunOutcome(), {}, {})])  # no forks, no families
    []
    """
    places = {record.spec.identity: place for place, record in enumerate(records)}
    found: dict[_Key, dict[float | None, list[Branch]]] = {}
    for place, record in enumerate(records):
        fork, run = record.spec.fork, _plain(record)
        if fork is None or run is None:
            continue
        decay = records[places[fork.parent]].spec.training.weight_decay if fork.parent in places else None
        for study in dict.fromkeys(f"{one.study}/{one.experiment}" for one in record.made_for) or ("",):
            key = (study, run.task, fork.step, _shared(record.spec))
            found.setdefault(key, {}).setdefault(decay, []).append(Branch(place, run))
    families = []
    for (study, task, step, _), groups in found.items():
        if len(groups) == 2 and None in groups:
            groups = {None: [branch for group in groups.values() for branch in group]}
        for forks in groups.values():
            branches = sorted([*forks, *_parents(forks, records, places)], key=lambda branch: branch.place)
            families.append(Family(study, task, step, tuple(branches)))
    return sorted(families, key=lambda family: (-len(family.branches), family.title))


def _parents(forks: Sequence[Branch], records: Sequence[Record], places: Mapping[str, int]) -> Iterable[Branch]:
    """The parents of these forks that are branches themselves."""
    children: dict[tuple[int, int], list[Record]] = {}
    for record in (records[branch.place] for branch in forks):
        if (fork := record.spec.fork) is not None and fork.parent in places:
            children.setdefault((places[fork.parent], fork.step), []).append(record)
    for (place, step), branches in children.items():
        parent = records[place]
        run, norm = _plain(parent), parent.at(step, "norm")
        decays = {branch.spec.training.weight_decay for branch in branches}
        is_same = all(begins_in(branch, parent) for branch in branches)
        if run is not None and run.watched > step and run.weight_decay not in decays and is_same:
            time = None if run.steps_to_grok is None else run.steps_to_grok - step
            own = replace(run, steps_to_grok=time, watched=run.watched - step, norm_at_fork=norm)
            yield Branch(place, own, is_parent=True)


def begins_in(branch: Record, parent: Record) -> bool:
    """Whether a fork's first evaluation is its parent's at that step, so that it branched off this very training.

    Training is chaotic: a parent that was trained again elsewhere is another run, and earlier forks are not of it.
    Where one of the two was not evaluated, nothing speaks against it.

    >>> from dataclasses import replace
    >>> from grokscope.runs.outcome import RunOutcome
    >>> from grokscope.runs.records import RunRecord
    >>> from grokscope.specs import RunSpec
    >>> from grokscope.specs import Fork
    >>> parent = RunRecord(RunSpec(), RunOutcome(), {"step": [0, 1000], "norm": [90.0, 52.0]}, {})
    >>> spec = replace(RunSpec(), fork=Fork(RunSpec().content_hash, 1000))
    >>> begins_in(RunRecord(spec, RunOutcome(), {"step": [1000], "norm": [52.0]}, {}), parent)
    True
    >>> begins_in(RunRecord(spec, RunOutcome(), {"step": [1000], "norm": [57.0]}, {}), parent)
    False
    """
    fork = branch.spec.fork
    if fork is None:
        return False
    own, before = (record.at(fork.step, "norm") for record in (branch, parent))
    return isnan(own) or isnan(before) or isclose(own, fork.scale * before, rel_tol=SAME_STATE)


def count_foreign_forks(records: Iterable[Record]) -> tuple[int, int]:
    """How many forks do not begin in the parent that is among these records, and of how many with a parent there.

    >>> from dataclasses import replace
    >>> from grokscope.runs.outcome import RunOutcome
    >>> from grokscope.runs.records import RunRecord
    >>> from grokscope.specs import RunSpec
    >>> from grokscope.specs import Fork
    >>> parent = RunRecord(RunSpec(), RunOutcome(), {"step": [0, 1000], "norm": [90.0, 52.0]}, {})
    >>> spec = replace(RunSpec(), fork=Fork(RunSpec().content_hash, 1000))
    >>> count_foreign_forks([parent, RunRecord(spec, RunOutcome(), {"step": [1000], "norm": [57.0]}, {})])
    (1, 1)
    """
    by_hash = {record.spec.content_hash: record for record in records}
    pairs = [
        (record, by_hash[fork.parent])
        for record in by_hash.values()
        if (fork := record.spec.fork) is not None and fork.parent in by_hash
    ]
    return sum(not begins_in(branch, parent) for branch, parent in pairs), len(pairs)


def _plain(record: Record) -> ForkedRun | None:
    """A run as the law sees it; None if more than λ was changed, or it has not ended."""
    spec = record.spec
    fork = spec.fork or Fork("0" * 16, 0)
    changes = (spec.rule, spec.training.weight_decay_schedule or None)
    if (fork.norm, fork.scale, fork.moments) != ("free", 1, "kept") or changes != (None, None):
        return None
    timeline = record.timeline_or_none if record.outcome.is_finished else None
    try:
        return None if timeline is None else forked_run(spec, timeline)
    except InputError:  # without decay there is no law
        return None


def _shared(spec: RunSpec) -> str:
    """What the forks of a family have in common: the spec without λ, seeds, parent, budget and cadences."""
    parts = spec.to_dict()
    kept = {name: parts[name] for name in parts.keys() - {"seeds", "checkpoints", "measurements", "fork"}}
    training = {name: value for name, value in parts["training"].items() if name not in ("weight_decay", "steps")}
    return json.dumps(kept | {"training": training}, sort_keys=True)
