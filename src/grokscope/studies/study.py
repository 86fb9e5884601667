"""A study: what to run, which quantities to compute, which claims to judge, and what to show.

The seed paper is `grokscope.studies.synchronization`; anybody's own study is a folder with a `study.py` that defines
`STUDY`, outside this package, and is used by the same commands.
"""

import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from grokscope.errors import InputError, did_you_mean, require, shown
from grokscope.files import named
from grokscope.runs.records import RunRecord
from grokscope.runs.run_folder import run_name
from grokscope.runs.store import Store
from grokscope.specs import Membership, Plan, RunSpec
from grokscope.studies.claim import Claim, Contradiction
from grokscope.studies.evidence import QUICK, Evidence, place_records
from grokscope.studies.message import Sentence
from grokscope.studies.names import BUILT_IN, arxiv_number, near_numbers, reject_unknown_study
from grokscope.studies.run_set import Precision, Runs, RunSet
from grokscope.studies.selection import configuration
from grokscope.studies.wiring import check_claims, check_message
from grokscope.view.charts.figure import Figure
from grokscope.view.table import Table

__all__ = ["Item", "Precision", "Runs", "Study", "find_study", "gather", "own_code", "study_names"]

Content = TypeVar("Content", Table, Figure)
FILE = "study.py"
LONGEST = 300  # characters of an exception's text
MOST_REPORTED = 6  # seeds that a paper names, so that they are not counted from 0


@dataclass(frozen=True)
class Item:
    """One table, supplementary analysis or figure, and the experiments it needs."""

    name: str
    """`tab-cross`; its files are called so."""
    experiments: tuple[str, ...]
    """Whose runs it shows."""
    build: Callable[[Evidence], Table] | Callable[[Evidence], Figure]
    """Makes it of the evidence; every number in it is a quantity's."""
    sentence: Callable[[Table], str] | None = None
    """What a supplementary analysis says, in one sentence whose numbers are cells of its table."""


@dataclass(frozen=True)
class Study:
    """Everything there is to know about a study."""

    name: str
    """One word; records carry it."""
    title: str
    """What it is about."""
    experiments: Mapping[str, Callable[[int | None, Precision], Runs]]
    """Named sets of runs, each a function of how many seeds are wanted and of the precision."""
    claims: tuple[Claim, ...] = ()
    """What is judged."""
    contradictions: tuple[Contradiction, ...] = ()
    """What the paper says twice, so that one at most can hold: listed, and not counted as claims."""
    message: tuple[Sentence, ...] = ()
    """What it says, in plain sentences whose numbers are those of its claims."""
    tables: tuple[Item, ...] = ()
    """The paper's tables."""
    supplements: tuple[Item, ...] = ()
    """Supplementary analyses: tables that the paper does not have."""
    figures: tuple[Item, ...] = ()
    """Figures."""
    source: str = ""
    """The paper, with authors, year and link."""
    limits: tuple[str, ...] = ()
    """What was not available, what was assumed, and what differs from the paper: sentences on the page of results."""
    papers: Mapping[str, str] = field(default_factory=dict)
    """Papers whose claims it judges: what to call each, by its arXiv number, under which the study is found."""
    quick: Callable[[Precision], Mapping[str, Runs]] | None = None
    """A reduced version for a machine of two cores, where there is one."""
    measures: tuple[str, ...] = ()
    """What is measured at every checkpoint."""
    milestones: tuple[str, ...] = ()
    """What is measured at the first checkpoint after grokking and at the last, because it is expensive."""
    measured: tuple[str, ...] = ()
    """The experiments whose runs are measured so; the others need their logs alone."""
    save_models: Callable[[Path, Sequence[RunRecord], Store], None] | None = None
    """Keeps trained models of its runs in a folder, where the study has models to show."""
    plan_options: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the plan."""
    sparse_columns: tuple[str, ...] = ()
    """Beginnings of the names of logged columns that no claim, table or figure reads: a collection keeps fewer."""
    run_sets: tuple[RunSet, ...] = ()
    """What its parts are cut from, where that is more than all of its experiments, trained and measured alike."""
    guard: Callable[[Sequence[RunSpec], Path | None], Any] | None = None
    """Rejects runs that may not be trained yet, given the seal of what has to be fixed before, where there is one."""

    def __post_init__(self) -> None:
        """Reject names that are no words, that occur twice, or that nothing has."""
        require(
            re.fullmatch(r"[\w-]+", self.name, re.ASCII),
            "a study's name must be one word of letters, digits, - and _",
            self.name,
        )
        for number in self.papers:
            require(
                arxiv_number(number) == number, f"papers of {self.name} must be arXiv numbers as 2606.12966", number
            )
        parts = (*self.tables, *self.supplements, *self.figures)
        for kind, names in (("claims", [one.name for one in self.claims]), ("items", [one.name for one in parts])):
            twice = [name for name, count in Counter(names).items() if count > 1]
            require(not twice, f"the study {self.name} has two {kind} of one name", *twice[:1])
        for claim in self.claims if parts else ():
            known = claim.shown_in in self.items
            require(known, f"claim {claim.name} of {self.name} must be shown in an item of the study", claim.shown_in)
        check_claims(self.name, self.claims, self.experiments)
        check_message(self.name, self.message, {claim.name: claim for claim in self.claims})

    @property
    def items(self) -> dict[str, Item]:
        """Every table, supplementary analysis and figure by name."""
        return {item.name: item for item in (*self.tables, *self.supplements, *self.figures)}

    def check_training(self, runs: Sequence[RunSpec], seal: Path | None) -> None:
        """Reject runs that may not be trained yet, and a seal that has nothing to say."""
        if self.guard is not None:
            self.guard(runs, seal)
        elif seal is not None:
            raise InputError(f"--seal has no effect: no runs of {self.name} are sealed")

    def runs(
        self, n_seeds: int | None = None, precision: Precision = "float32", quick: bool = False
    ) -> dict[str, Runs]:
        """Every experiment's runs by name."""
        if not quick:
            return {name: self._runs(name, n_seeds, precision) for name in self.experiments}
        if self.quick is None:
            raise InputError(f"the study {self.name} has no quick version")
        with own_code(self.name, "the quick version"):
            return {name: {} for name in self.experiments} | dict(self.quick(precision))

    def _runs(self, experiment: str, n_seeds: int | None, precision: Precision) -> Runs:
        """An experiment's runs by name."""
        with own_code(self.name, f"experiment {experiment}"):
            found = self.experiments[experiment](n_seeds, precision)
            if not isinstance(found, dict) or not all(isinstance(spec, RunSpec) for spec in found.values()):
                raise TypeError("it must return a dict of RunSpec by name")
            return found

    def build(self, item: Item, evidence: Evidence, kind: type[Content]) -> Content:
        """An item of the study, made of the evidence; anything but this kind is rejected."""
        with own_code(self.name, item.name):
            found = item.build(evidence)
            if not isinstance(found, kind):
                raise TypeError(f"it must return a {kind.__name__}, got {type(found).__name__}")
            return found

    def experiments_for(self, names: Iterable[str], without: Iterable[str] = ()) -> tuple[str, ...]:
        """The experiments behind tables, figures or experiments, in the study's order; `all` is every one."""
        known = {"all": tuple(self.experiments), **{item.name: item.experiments for item in self.items.values()}}
        known |= {name: (name,) for name in self.experiments}
        for name in (*names, *without):
            if name not in known:
                raise InputError(f"{self.name} has nothing called {shown(name)}{did_you_mean(name, known)}")
        left_out = {experiment for name in without for experiment in known[name]}
        wanted = {experiment for name in names for experiment in known[name]} - left_out
        return tuple(experiment for experiment in self.experiments if experiment in wanted)

    def plan(
        self,
        experiments: Iterable[str],
        out: str,
        *,
        n_seeds: int | None = None,
        precision: Precision = "float32",
        quick: bool = False,
        device: str = "cpu",
        deterministic: bool = False,
    ) -> Plan:
        """Every run of the experiments, each once, with the parents of forks; each carries what it was made for."""
        known = self.runs(n_seeds, precision, quick)
        everything = {spec.content_hash: spec for runs in known.values() for spec in runs.values()}
        chosen: dict[str, RunSpec] = {}
        for experiment in experiments:
            chosen |= {spec.content_hash: spec for spec in known[experiment].values()}
        for spec in list(chosen.values()):
            while spec.fork is not None:  # parents may belong to an experiment that was not asked for
                if spec.fork.parent not in everything:
                    raise InputError(f"{run_name(spec)} of {self.name} is a fork of a run that is not in the study")
                spec = everything[spec.fork.parent]
                chosen[spec.content_hash] = spec
        if not chosen:
            why = "the quick version has no such run" if quick else "all that was asked for is left out"
            raise InputError(f"nothing is left to reproduce: {why}")
        measured = {spec.content_hash for name in self.measured for spec in known[name].values() if not spec.fork}
        return Plan(
            out,
            tuple(chosen.values()),
            device,
            measures=self.measures,
            milestones=self.milestones,
            measured=tuple(name for name in chosen if name in measured),
            deterministic=deterministic,
            made_for=self._memberships(known, chosen, quick),
            **({"keep": "forks"} | dict(self.plan_options)),
        )

    def _memberships(
        self, known: Mapping[str, Runs], chosen: Mapping[str, RunSpec], quick: bool
    ) -> tuple[tuple[Membership, ...], ...]:
        """For each chosen run, in order, the places it has in the study."""
        places: dict[str, list[Membership]] = {name: [] for name in chosen}
        for experiment, runs in known.items():
            for name, spec in runs.items():
                if spec.content_hash in places:
                    member = Membership(self.name + QUICK if quick else self.name, experiment, name)
                    places[spec.content_hash].append(member)
        return tuple(tuple(places[name]) for name in chosen)

    def evidence(self, records: Iterable[RunRecord], folder: Path | None = None) -> Evidence:
        """Records under the experiments they were made for."""
        found = place_records(self.name, self.experiments, records, folder)
        return replace(found, records={name: self._in_order(name, runs) for name, runs in found.records.items()})

    def _in_order(self, experiment: str, records: Mapping[str, RunRecord]) -> dict[str, RunRecord]:
        """An experiment's records as the study lists them, wherever they were stored; others follow by name."""
        seeds = max(Counter(configuration(name) for name in records).values(), default=1)
        listed = [name for name in self._runs(experiment, seeds + MOST_REPORTED, "float32") if name in records]
        return {name: records[name] for name in (*listed, *sorted(records.keys() - set(listed)))}


@contextmanager
def own_code(study: str, part: str) -> Iterator[None]:
    """What a study's own code raises, as one sentence that names the study and the part of it."""
    try:
        yield
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # somebody's program may raise anything
        raise InputError(f"{part} of the study {study} failed: {_one_line(error)}") from error


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:LONGEST]}{'…' * (len(text) > LONGEST)}"


def gather(sections: Iterable[ModuleType]) -> dict[str, Any]:
    """What the sections of a study define, in their order: CLAIMS, CONTRADICTIONS, TABLES, SUPPLEMENTS and FIGURES.

    >>> from grokscope.studies.synchronization import over_time
    >>> [item.name for item in gather([over_time])["figures"]]
    ['fig-two-phase', 'fig-memorisation']
    """
    modules = tuple(sections)
    return {
        name: tuple(one for module in modules for one in getattr(module, name.upper(), ()))
        for name in ("claims", "contradictions", "tables", "supplements", "figures")
    }


def study_names() -> tuple[str, ...]:
    """The studies of this package.

    >>> study_names()
    ('synchronization', 'bakeoff', 'tasks', 'steering', 'foresight', 'accelerators', 'clock', 'signals')
    """
    return BUILT_IN


def find_study(name: str) -> Study:
    """The study with this name, of the paper with this arXiv number, or in this folder, whose `study.py` is run.

    >>> find_study("arXiv:2606.12966").title
    'Circuit Synchronization Precedes Generalization'
    """
    if name in BUILT_IN:
        return _checked(import_module(f"grokscope.studies.{name}"), name)
    reject_unknown_study(name)
    if number := arxiv_number(name):
        return _study_of_paper(number)
    folder = Path(name)
    path = folder / FILE
    if not path.is_file():
        raise InputError(f"{named(folder)} has no {FILE}, which defines a study")
    return _checked(_load(path), str(path))


def _study_of_paper(number: str) -> Study:
    studies = {paper: study for study in map(find_study, BUILT_IN) for paper in study.papers}
    if number not in studies:
        near = ", ".join(f"{one} ({studies[one].name})" for one in near_numbers(number, [*studies]))
        raise InputError(f"no study judges a paper with the arXiv number {number}; near it are {near}")
    return studies[number]


def _load(path: Path) -> ModuleType:
    """The module in a file, with its folder's other files importable beside it."""
    name = f"grokscope_study_{path.parent.resolve().name}"
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=[str(path.parent)])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that its sections can import each other relatively, and its source can be read
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # somebody's program may raise anything
        raise InputError(f"{named(path)} cannot be loaded: {_one_line(error)}") from error
    return module


def _checked(module: ModuleType, where: str) -> Study:
    found = getattr(module, "STUDY", None)
    if not isinstance(found, Study):
        raise InputError(f"{where} defines no STUDY")
    return found
