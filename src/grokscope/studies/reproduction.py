"""From the catalogue to a plan that any worker can run, and from its store to the records that are judged."""

from collections.abc import Iterable

from grokscope.errors import InputError
from grokscope.runs.records import RunRecord
from grokscope.runs.store import Store
from grokscope.specs import Plan, RunSpec
from grokscope.studies.catalogue import STUDIES, Precision, quick_studies, studies

__all__ = ["MEASURED", "MILESTONES", "records_in", "reproduction_plan", "run_steps"]

# At every checkpoint; readings that a task does not have are left out.
MEASURED = (
    "fsd",
    "fsd_k",
    "fsd_gen",
    "rank",
    "control",
    "paper_restricted",
    "trig",
    "logit_map",
    "fsd@sum",
    "fsd@additive",
    "rank@sum",
)
MILESTONES = ("removal", "logits", "fourier_kan", "ablation")
QUICK_MILESTONES = MILESTONES[:-1]  # ablation is dozens of passes over all inputs: a minute and more on a core
# Of forks, triggered and sensitivity runs nothing is asked that their logs do not tell.
MEASURED_STUDIES = ("base", "symmetric", "architecture", "multiplication", "open_questions", "negatives")


def reproduction_plan(
    names: Iterable[str],
    out: str,
    *,
    n_seeds: int | None = None,
    precision: Precision = "float32",
    device: str = "cpu",
    deterministic: bool = False,
    quick: bool = False,
) -> Plan:
    """Every run of the studies, each once, measured where tables ask for it; states are kept where forks begin."""
    known = quick_studies(precision) if quick else studies(STUDIES, n_seeds, precision)
    everything = {spec.content_hash: spec for study in known.values() for spec in study.values()}
    runs: dict[str, RunSpec] = {}
    for name in names:
        runs |= {spec.content_hash: spec for spec in known[name].values()}
    for spec in list(runs.values()):
        while spec.fork is not None:  # parents may stand in a study that was not asked for
            spec = everything[spec.fork.parent]
            runs[spec.content_hash] = spec
    if not runs:
        why = "the quick version has no such run" if quick else "all that was asked for is left out"
        raise InputError(f"nothing is left to reproduce: {why}")
    measured = {spec.content_hash for study in MEASURED_STUDIES for spec in known[study].values() if not spec.fork}
    return Plan(
        out,
        tuple(runs.values()),
        device,
        keep="forks",
        measures=MEASURED,
        milestones=QUICK_MILESTONES if quick else MILESTONES,
        measured=tuple(name for name in runs if name in measured),
        deterministic=deterministic,
    )


def run_steps(plan: Plan) -> int:
    """Optimiser steps of all runs together: what the plan costs."""
    return sum(spec.training.steps - (spec.fork.step if spec.fork else 0) for spec in plan.runs)


def records_in(store: Store) -> list[RunRecord]:
    """The records of all finished runs of a store, by name; runs that are not finished are left out."""
    return [folder.record() for folder in sorted(store, key=lambda one: one.name) if folder.outcome.is_finished]
