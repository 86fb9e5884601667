"""From the catalogue to a plan that any worker can run, and from its store to the records that are judged."""

from collections.abc import Iterable

from grokscope.experiments.catalogue import STUDIES, Precision, studies
from grokscope.experiments.records import RunRecord, record_of
from grokscope.experiments.store import Store
from grokscope.specs import Plan, RunSpec

__all__ = ["MEASURED", "records_in", "reproduction_plan", "run_steps"]

# At every checkpoint of every run; readings that a task does not have are left out.
MEASURED = (
    "fsd",
    "fsd_k",
    "fsd_gen",
    "rank",
    "control",
    "paper_restricted",
    "trig",
    "removal",
    "logits",
    "logit_map",
    "fourier_kan",
    "ablation",
    "fsd@sum",
    "fsd@additive",
    "rank@sum",
)


def reproduction_plan(
    names: Iterable[str],
    out: str,
    *,
    n_seeds: int | None = None,
    precision: Precision = "float32",
    device: str = "cpu",
    deterministic: bool = False,
) -> Plan:
    """Every run of the studies, each once, measured at its checkpoints; states are kept where forks begin."""
    runs: dict[str, RunSpec] = {}
    for study in studies(names, n_seeds, precision).values():
        runs |= {spec.content_hash: spec for spec in study.values()}
    known = studies(STUDIES, n_seeds, precision).values()
    everything = {spec.content_hash: spec for study in known for spec in study.values()}
    for spec in list(runs.values()):
        while spec.fork is not None:  # parents may stand in a study that was not asked for
            spec = everything[spec.fork.parent]
            runs[spec.content_hash] = spec
    return Plan(out, tuple(runs.values()), device, keep="forks", measures=MEASURED, deterministic=deterministic)


def run_steps(plan: Plan) -> int:
    """Optimiser steps of all runs together: what the plan costs."""
    return sum(spec.training.steps - (spec.fork.step if spec.fork else 0) for spec in plan.runs)


def records_in(store: Store) -> list[RunRecord]:
    """The records of all finished runs of a store, by name; runs that are not finished are left out."""
    return [record_of(folder) for folder in sorted(store, key=lambda one: one.name) if folder.outcome is not None]
