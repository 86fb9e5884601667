"""What the sections about forks share: Δt from either start, laws by name, and evidence of which much is missing."""

from dataclasses import replace

import pytest
from lifelike import lifelike
from paper_runs import evidence as followed
from planted import EMPTY, evidence

from grokscope.runs.records import RunRecord
from grokscope.studies import Evidence, Verdict, judge
from grokscope.studies.rule import falling
from grokscope.studies.synchronization import (
    accelerator,
    censored_law,
    crossprime,
    intervention,
    norm_interventions,
    sensitivity,
    threshold,
    timing_law,
)
from grokscope.studies.synchronization.experiments import EXPERIMENTS
from grokscope.studies.synchronization.forks import law, times_to_grok

SECTIONS = (
    intervention,
    timing_law,
    crossprime,
    censored_law,
    threshold,
    norm_interventions,
    accelerator,
    sensitivity,
)
CLAIMS = [claim for section in SECTIONS for claim in getattr(section, "CLAIMS", ())]
ITEMS = [
    item for section in SECTIONS for kind in ("TABLES", "SUPPLEMENTS", "FIGURES") for item in getattr(section, kind, ())
]


def test_times_are_from_the_fork_or_from_the_crossing() -> None:
    runs = {
        "add_mod97_d42_x1": {"grok": 3000, "sync": 1500, "last": 9000},
        "add_mod97_d0_x1": {"grok": 4000, "sync": None, "last": 9000},
    }
    found, chosen = evidence("crossprime", runs), crossprime.forks("add_mod97", 1.0)
    fork, crossing = (found.measure(times_to_grok(chosen, start=start)) for start in ("fork", "FSD crossing"))
    assert (fork.number("mean"), fork.n) == (2500, 2)
    assert (crossing.number("mean"), crossing.n) == (1500, 1)
    assert found.measure(times_to_grok(chosen, needed=5)).missing == "2 of the 5 forks that it needs are there."
    assert found.measure(times_to_grok(chosen, needed=5)).number("mean") == 2500


def test_without_a_fork_that_groks_there_is_no_law() -> None:
    found = evidence("crossprime", {"add_mod97_d42_x1": {"grok": None, "last": 9000}})
    measured = found.measure(law(crossprime.forks("add_mod97")))
    assert (measured.parts, measured.text, measured.missing) == ({}, "none grokked", "")


def test_a_quantity_made_of_others_has_their_values() -> None:
    found = followed(True)
    quantity = next(claim.quantity for claim in CLAIMS if claim.name == "law-constant-falls")
    laws = {label: found.measure(one).parts["C"] for label, one in crossprime.LAWS.items()}
    assert found.measure(quantity).parts == laws
    assert falling(*laws, apart=True).holds(found.measure(quantity))
    assert quantity.data["members"].keys() == laws.keys()


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_one_run_alone_builds_everything_and_decides_no_claim_about_many(experiment: str) -> None:
    runs = lifelike(3, (experiment,)).experiment(experiment)
    last = list(runs)[-1]
    found = Evidence({name: {} for name in EXPERIMENTS} | {experiment: {last: runs[last]}})
    for item in ITEMS:
        assert all(note.endswith(".") for note in item.build(found).notes)
    verdicts = {claim.name: judge(claim, found).verdict for claim in CLAIMS}
    assert {*verdicts.values()} <= {Verdict.TOO_FEW, Verdict.INCONSISTENT}


@pytest.mark.parametrize("lacking", ["grokking", "norm", "fsd"])
def test_runs_that_learn_or_measure_nothing_raise_nothing(lacking: str) -> None:
    column = {"grokking": "validation_accuracy"}.get(lacking, lacking)

    def emptied(record: RunRecord) -> RunRecord:
        rows = len(record.evaluations["step"])
        return replace(
            record, evaluations=record.evaluations | {column: [0.0 if lacking == "grokking" else float("nan")] * rows}
        )

    experiments = ("fork", "crossprime", "spread", "threshold", "accelerator", "sensitivity", "open_questions")
    records = lifelike(None, experiments).records
    found = Evidence(
        {name: {} for name in EXPERIMENTS}
        | {name: {run: emptied(record) for run, record in runs.items()} for name, runs in records.items()}
    )
    for item in ITEMS:
        assert item.build(found).notes
    if lacking == "grokking":
        held = {"early-triggers-fail", "fork-10-fails", "law-131-fails"}  # that nothing groks is what they say
        reproduced = {claim.name for claim in CLAIMS if judge(claim, found).verdict is Verdict.REPRODUCED}
        assert reproduced <= held


def test_without_runs_no_claim_is_decided() -> None:
    assert {judge(claim, EMPTY).verdict for claim in CLAIMS} == {Verdict.TOO_FEW, Verdict.INCONSISTENT}
    assert all(judge(claim, EMPTY).n == 0 for claim in CLAIMS)
