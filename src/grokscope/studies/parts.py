"""A study's runs cut into parts that one accelerator trains within minutes, each ending in one packed file."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from math import log2
from pathlib import Path
from typing import Any

from grokscope.activations import lacking_needs
from grokscope.errors import InputError, plural
from grokscope.files import read_json
from grokscope.jobs.stacks import count_generations, stack_key
from grokscope.measures.catalogue import measure_named
from grokscope.runs.packed_files import collection_folder, packed_files
from grokscope.runs.packing import read_head
from grokscope.specs import Plan, RunSpec
from grokscope.studies.run_set import Precision, RunSet
from grokscope.studies.study import Study
from grokscope.tasks import named_task

__all__ = ["PARTS", "SPEEDS", "Part", "describe_parts", "missing_parts", "part_file", "parts_of", "stack_speed"]

SECONDS = 300.0  # that a part is estimated to take: an H200 that is lent for 10 minutes has to start and compile, too
# Run-steps a second with measuring of an H200, by the runs of a stack (benchmarks/results/training-cuda.json, TF32),
# and the speed of other arithmetic beside it.
SPEEDS = {1: 4_315.0, 8: 16_637.0, 64: 24_760.0, 512: 27_028.0}
RELATIVE = {"tf32": 1.0, "float32": 13_159 / 27_028, "bf16": 39_356 / 27_028, "float64": 0.1}
TIER_SIGNALS = 5e-4  # of one run at one evaluation: a forward pass over all rows, a guess likewise
PARTS = "parts.json"  # of a collection: what the parts that it was made of say of themselves
LONG = 30_000  # steps: families with longer runs, and parts of them alone, come last: of all they take the most time


@dataclass(frozen=True)
class Part:
    """Some runs of a study, with the parents of all forks among them."""

    study: str
    """The study's name."""
    number: int
    """From 1 on."""
    of: int
    """How many parts there are."""
    title: str
    """The run set that it is cut from."""
    plan: Plan
    """What a worker needs to know."""
    seconds: float
    """What it is estimated to take on one H200, without compiling."""

    @property
    def steps(self) -> int:
        """Optimiser steps of all runs; a fork's own only."""
        return sum(map(_own_steps, self.plan.runs))

    @cached_property
    def digest(self) -> str:
        """Of its runs and of what is measured: equal for the same part of the same plan."""
        plan = self.plan
        lines = [*sorted(spec.content_hash for spec in plan.runs), *plan.measures, *plan.milestones, str(plan.signals)]
        lines += ["tier signals"] if plan.tier_signals else []
        lines += plan.afterwards
        return sha256("\n".join(lines).encode()).hexdigest()[:16]

    @property
    def head(self) -> dict[str, Any]:
        """What its packed file says of itself."""
        return {"study": self.study, "part": self.number, "of": self.of, "runs": self.digest}


def parts_of(
    study: Study, precision: Precision, device: str = "cuda", out: str = "runs", n_seeds: int | None = None
) -> list[Part]:
    """Every run of a study in as few parts as keep to the time, forks always with their parents.

    The order is that of the study, so that runs of one shape stand together and fill a stack, but families with long
    runs come last. A function of the study and the precision alone: the same part has the same runs wherever it is
    trained.

    >>> from grokscope.studies import find_study
    >>> parts = parts_of(find_study("bakeoff"), "tf32")
    >>> parts[0].number, parts[0].of == len(parts)
    (1, True)
    """
    cut = [
        (title, _readable(plan.select(runs)), seconds)
        for title, plan, run_set in _plans(study, precision, device, out, n_seeds)
        for runs, seconds in _cut(plan, run_set)
    ]
    cut = sorted(cut, key=lambda part: min(spec.training.steps for spec in part[1].runs) > LONG)
    return [
        Part(study.name, i, len(cut), title, plan, seconds) for i, (title, plan, seconds) in enumerate(cut, start=1)
    ]


def part_file(folder: Path, number: int) -> Path:
    """Where the records of a part are packed.

    >>> part_file(Path("results"), 3).name
    'part-03.records.gz'
    """
    return folder / f"part-{number:02}.records.gz"


def missing_parts(parts: list[Part], folder: Path, commit: str | None = None) -> dict[int, str]:
    """What is wrong with each part that is not there as it should be: missing, of another plan, or of another commit.

    The commit is that of most of the parts, unless one is given.

    Example::

        missing_parts(parts_of(study, "tf32"), Path("results/synchronization"))
    """
    collected = _collected_heads(folder)
    heads = {part.number: _head(part_file(folder, part.number), collected.get(part.number)) for part in parts}
    commits = [head.get("commit") for head in heads.values() if isinstance(head, dict)]
    most = commit or (max(commits, key=commits.count) if commits else None)
    found = {part.number: _problem(part, heads[part.number], most) for part in parts}
    return {number: problem for number, problem in found.items() if problem}


def describe_parts(folders: Sequence[Path]) -> dict[str, Any]:
    """What each packed part in these folders says of itself, and what all of them come to; empty without parts.

    >>> describe_parts([Path("no folder")])
    {}
    """
    paths = [path for folder in folders for path in packed_files(folder) if path.name.startswith("part-")]
    heads = [read_head(path) for path in paths]
    total = {name: round(sum(head[name] for head in heads), 1) for name in ("finished", "run_steps", "seconds")}
    return {"parts": heads, "all": total} if heads else {}


def _collected_heads(folder: Path) -> dict[int, Mapping[str, Any]]:
    """What the parts of a collection say of themselves, by their numbers."""
    tables = collection_folder(folder)
    if tables is None or not (tables / PARTS).exists():
        return {}
    return {head["part"]: head for head in read_json(tables / PARTS, dict)["parts"]}


def _head(path: Path, collected: Mapping[str, Any] | None) -> Mapping[str, Any] | str:
    """The first line of a packed file, or what the collection of such files says of it; or why there is none."""
    if not path.exists():
        return collected or "missing"
    try:
        return read_head(path)
    except InputError as error:
        return str(error)


def _problem(part: Part, head: Mapping[str, Any] | str, commit: object) -> str:
    if isinstance(head, str):
        return head
    if {name: head.get(name) for name in part.head} != part.head:
        return f"made by another plan than this version's, at commit {head.get('commit')}"
    if head.get("commit") != commit:
        return f"from commit {head.get('commit')}, the others are from {commit}"
    if left := len(part.plan.runs) - int(head.get("finished", 0)):
        return f"lacks {plural(left, 'run')} of {len(part.plan.runs):,}"
    return ""


def _plans(
    study: Study, precision: Precision, device: str, out: str, n_seeds: int | None
) -> Iterator[tuple[str, Plan, RunSet]]:
    """The plan of each run set; a study without any has one, of all its experiments."""
    for one in study.run_sets:
        own = replace(
            study,
            claims=(),  # which may be about runs of another set
            message=(),
            experiments=one.experiments,
            measures=one.measures,
            milestones=one.milestones,
            measured=one.measured,
            plan_options=one.plan_options,
        )
        plan = own.plan(one.experiments, out, n_seeds=n_seeds, precision=precision, device=device)
        yield one.name, plan, one
    if not study.run_sets:
        plan = study.plan(study.experiments, out, n_seeds=n_seeds, precision=precision, device=device)
        yield "all runs", plan, RunSet("all runs", study.experiments)


def _readable(plan: Plan) -> Plan:
    """The plan of a part without measures in a basis that none of its runs has, as those of a study of many tasks."""
    bases = {"", "sum", *(basis for task in {spec.task for spec in plan.runs} for basis in named_task(task).bases)}
    measures, milestones = (
        tuple(reading for reading in readings if reading.partition("@")[2] in bases)
        for readings in (plan.measures, plan.milestones)
    )
    return replace(plan, measures=measures, milestones=milestones)


def _cut(plan: Plan, run_set: RunSet) -> Iterator[tuple[list[RunSpec], float]]:
    """Whole families, in order, until a part is full; a family that alone is longer is a part alone."""
    part, load, generations = list[RunSpec](), _Load(plan, run_set), count_generations(plan.runs)
    for family in _families(plan):
        longer = load.with_runs(family, generations)
        if part and longer.seconds > SECONDS:
            yield part, load.seconds
            part, longer = [], _Load(plan, run_set).with_runs(family, generations)
        part, load = [*part, *family], longer
    yield part, load.seconds


@dataclass(frozen=True)
class _Load:
    """What a part takes: a stack computes all its slots until its longest run ends, and then measures."""

    plan: Plan
    """What the runs are of."""
    run_set: RunSet
    """With its speed, and what its measures take."""
    stacks: Mapping[tuple[str, int, Hashable], tuple[int, int]] = field(default_factory=dict)
    """Runs and most steps of those that may share a stack."""
    measured: float = 0.0
    """Seconds of all measures."""

    def with_runs(self, runs: Sequence[RunSpec], generations: Mapping[RunSpec, int]) -> "_Load":
        """The load with these runs added."""
        stacks = dict(self.stacks)
        for spec in runs:
            key = (spec.precision, generations[spec], stack_key(spec))
            count, steps = stacks.get(key, (0, 0))
            stacks[key] = (count + 1, max(steps, _own_steps(spec)))
        more = sum(_measuring(spec, self.plan, self.run_set) for spec in runs)
        return replace(self, stacks=stacks, measured=self.measured + more)

    @property
    def seconds(self) -> float:
        """Of one H200."""
        training = (
            count * steps / (stack_speed(count) * RELATIVE[key[0]]) for key, (count, steps) in self.stacks.items()
        )
        return sum(training) / self.run_set.speed + self.measured


def _measuring(spec: RunSpec, plan: Plan, run_set: RunSet) -> float:
    """Seconds of a run's measures, at its evaluations, its checkpoints and its milestones."""
    signals = TIER_SIGNALS * len(spec.measurements.steps(spec.training.steps)) if plan.tier_signals else 0.0
    return signals + _at_checkpoints(spec, plan, run_set)


def _at_checkpoints(spec: RunSpec, plan: Plan, run_set: RunSet) -> float:
    is_measured = plan.measures or plan.milestones or plan.afterwards
    if not is_measured or (plan.measured and spec.content_hash not in plan.measured):
        return 0.0
    begins = spec.fork.step if spec.fork else 0
    points = sum(step >= begins for step in spec.checkpoints.steps(spec.training.steps))
    at_each = _share_of(spec, plan.measures) + bool(plan.afterwards)
    return points * run_set.checkpoint_seconds * at_each + run_set.milestone_seconds * _share_of(spec, plan.milestones)


def _share_of(spec: RunSpec, readings: Sequence[str]) -> float:
    """The share of measures that a run's task has what is needed for: a random table has no basis, for example."""
    lacks = lacking_needs(named_task(spec.task))
    taken = [not measure_named(reading.partition("@")[0]).needs & lacks for reading in readings]
    return sum(taken) / max(1, len(taken))


def _families(plan: Plan) -> list[list[RunSpec]]:
    """Each run that is no fork, with all forks of it and of its forks, in the order of the plan, long ones last."""
    by_name = {spec.content_hash: spec for spec in plan.runs}

    def root(spec: RunSpec) -> RunSpec:
        while spec.fork is not None:
            spec = by_name[spec.fork.parent]
        return spec

    found: dict[RunSpec, list[RunSpec]] = {}
    for spec in plan.runs:
        found.setdefault(root(spec), []).append(spec)
    return sorted(found.values(), key=lambda family: max(spec.training.steps for spec in family) > LONG)


def stack_speed(runs: int) -> float:
    """Run-steps a second of a stack, between measured sizes by the logarithm of the size.

    >>> stack_speed(1), stack_speed(1000)
    (4315.0, 27028.0)
    """
    sizes = list(SPEEDS)
    after = next((i for i, size in enumerate(sizes) if size >= runs), len(sizes) - 1)
    if sizes[after] <= runs or after == 0:
        return SPEEDS[sizes[after]]
    low, high = sizes[after - 1], sizes[after]
    share = (log2(runs) - log2(low)) / (log2(high) - log2(low))
    return SPEEDS[low] + share * (SPEEDS[high] - SPEEDS[low])


def _own_steps(spec: RunSpec) -> int:
    return spec.training.steps - (spec.fork.step if spec.fork else 0)
