"""Every measure by name, gathered from the modules of this package, and measuring by name."""

from collections.abc import Iterable, Sequence
from importlib import import_module
from math import isfinite, nan
from pkgutil import iter_modules

import grokscope.measures as package
from grokscope.activations import NEEDS, OF_TASKS, Need, lacking_needs
from grokscope.errors import InputError, did_you_mean, require, shown
from grokscope.measures.question import Measure, Question
from grokscope.tasks import Task

__all__ = [
    "MEASURES",
    "Row",
    "gather",
    "lacking",
    "measure",
    "measure_named",
    "require_of_task",
    "select",
    "task_lacks",
    "undefined_reason",
]

Row = dict[str, float | str]
"""A run's columns."""
# The order of the catalogue, by module; modules that are not named follow in the order of their names.
ORDER = (
    "synchronization",
    "fsd_null",
    "control",
    "rank",
    "concentration",
    "weight_spectra",
    "logit_structure",
    "restricted",
    "fourier_kan",
    "ablation",
    "patching",
    "scores",
    "norms",
    "singular_values",
    "output_entropy",
    "representation",
    "updates",
    "commutator",
)

WITHOUT_MEASURES = ("catalogue", "kernel_snapshot")  # the second needs Triton


def gather() -> dict[str, Measure]:
    """The `ENTRIES` of every module of the package: a measure is added by adding a file."""
    others = sorted({module.name for module in iter_modules(package.__path__)} - {*ORDER, *WITHOUT_MEASURES})
    modules = [import_module(f"{package.__name__}.{name}") for name in (*ORDER, *others)]
    return {name: entry for module in modules for name, entry in getattr(module, "ENTRIES", {}).items()}


MEASURES = gather()


def measure_named(name: str) -> Measure:
    """The measure with this name."""
    if name not in MEASURES:
        raise InputError(f"there is no measure {shown(name)}{did_you_mean(name, MEASURES)}")
    return MEASURES[name]


def select(names: Iterable[str]) -> dict[str, Measure]:
    """The measures with these names, each once; at least one."""
    found = {name: measure_named(name) for name in names}
    require(found, "no measure was asked for; `grokscope measure` lists them")
    return found


def lacking(entry: Measure, offers: frozenset[Need]) -> str:
    """What a measure needs and is not offered, in words; empty if nothing."""
    return " and ".join(words for need, words in NEEDS.items() if need in entry.needs - offers)


def task_lacks(task: Task, need: Need, measure: str) -> str:
    """Why a measure cannot be taken of a task.

    >>> from grokscope.tasks import named_task
    >>> task_lacks(named_task("random7"), "basis", "fsd")
    "random7 has no basis to read activations in, which 'fsd' needs"
    """
    if need == "pairs":
        return f"{task.name} is not a table of pairs, which {shown(measure)} needs"
    what = (
        "classes as answers, over which activations are averaged" if need == "means" else NEEDS[need].removeprefix("a ")
    )
    return f"{task.name} has no {what}, which {shown(measure)} needs"


def require_of_task(task: Task, names: Iterable[str], offers: frozenset[Need] = frozenset()) -> None:
    """Reject measures that need what a task does not have, unless it is offered all the same.

    >>> from grokscope.tasks import named_task
    >>> require_of_task(named_task("add_mod7"), ["fsd", "trig"])
    """
    lacks = lacking_needs(task) - offers
    for name in names:
        missing = [need for need in OF_TASKS if need in measure_named(name).needs & lacks]
        if missing:
            raise InputError(task_lacks(task, missing[0], name))


def measure(question: Question, names: Iterable[str]) -> list[Row]:
    """One row for each run of the subject: the columns of every measure asked for.

    A value that is undefined is NaN, and the column `undefined` says why; neighbours are not touched by it. A subject
    of a single run whose activations are not numbers is rejected instead.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import Architecture, RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> specs = [RunSpec("add_mod5", architecture=small).with_seed(seed) for seed in (0, 1)]
    >>> subject = subject_of(specs, initial_state(Cohort(specs)).weights)
    >>> [sorted(row) for row in measure(Question(subject), ["rank"])]
    [['r2_rank_1', 'rank', 'rank_one_share', 'undefined'], ['r2_rank_1', 'rank', 'rank_one_share', 'undefined']]
    """
    chosen, subject = select(names), question.subject
    for name, one in chosen.items():
        if lacks := lacking(one, question.offers):
            require_of_task(subject.task, [name], question.offers)
            raise InputError(f"{shown(name)} needs {lacks}, which {subject.names[0]} does not offer")
    rows: list[Row] = [{} for _ in range(len(subject))]
    for one in chosen.values():
        for column, values in one.compute(question).items():
            for row, value in zip(rows, values.tolist(), strict=True):
                row[column] = value if isfinite(value) else nan
    for run, row in enumerate(rows):
        undefined = [column for column, value in row.items() if value != value]
        row["undefined"] = undefined_reason(question, run, undefined) if undefined else ""
    return rows


def undefined_reason(question: Question, run: int, undefined: Sequence[str]) -> str:
    """Why some columns of a run are undefined."""
    means = question.means() if question.has("means") else None
    if question.has("weights"):
        for name, weight in question.stack.weights.items():
            if not weight[run].isfinite().all():
                return f"weights in {name} are not numbers"
    if means is not None and not means.finite[run]:
        return f"activations at {question.site} are not numbers"
    if means is not None and question.has("basis"):
        waves = question.spectrum()
        share = float(waves.is_constant[run].double().mean())
        if share >= 0.5:
            return f"{share:.0%} of the neurons at {question.site} are constant over the answers"
        if len(waves.dimensions) == 1:
            return "the basis has a single mode: there is nothing to agree on"
    more = f" and {len(undefined) - 1} more columns" if len(undefined) > 1 else ""
    return f"{undefined[0]}{more}: not defined for this model or checkpoint"
