"""The study of accelerators: its settings are the papers', its rules hold and fail on planted runs, all is shown."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

import pytest
from steering_runs import record

from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies import Evidence, Finding, Verdict, configuration, find_study, judge
from grokscope.studies.accelerators import STUDY, reported
from grokscope.studies.accelerators.comparisons import derive_best
from grokscope.studies.accelerators.events import outcome, read_events
from grokscope.studies.accelerators.experiments import OWN, SHARED
from grokscope.studies.accelerators.settings import AFTER_GROKKING, SETTINGS
from grokscope.studies.accelerators.speed import measure_speed
from grokscope.studies.message import write_message
from grokscope.studies.parts import parts_of
from grokscope.studies.steering import parts as steering_parts
from grokscope.studies.steering.arms import FAMILIES
from grokscope.studies.steering.experiments import BASES
from grokscope.tasks import named_task, reject_unsuited
from grokscope.training import cohort_key
from grokscope.view.charts.figure import Figure
from grokscope.view.table import Table

CLAIMS = {claim.name: claim for claim in STUDY.claims}
SEEDS = 2
Steps = Mapping[str, float]
"""By pattern of an arm's name, the step at which its runs grok; the last that is part of the name counts."""

PAPERS: Steps = {
    "Grokfast/Adam": 39_900,
    "Grokfast/Adam, decay alone": 8_000,
    "Grokfast/AdamW": 1_500,
    "Grokfast/Grokfast": 900,
    "Grokfast/Grokfast, window": 800,
    "MLP/AdamW": 2_000,
    "MLP/AdamW, λ": 600,
    "MLP/⊥AdamW": 200,
    "transformer/AdamW": 4_000,
    "transformer/⊥AdamW": 1_000,
    "StableMax/cross-entropy": inf,
    "StableMax/StableMax": 30_000,
    "mod97/AdamW": 2_000,
    "mod97/Muon": 1_375,
}
NOTHING: Steps = PAPERS | {
    "Grokfast/Adam": 1_000,
    "Grokfast/Adam, decay alone": 1_000,
    "Grokfast/Grokfast": 2_000,
    "Grokfast/Grokfast, window": 2_000,
    "MLP/⊥AdamW": 1_500,
    "transformer/⊥AdamW": 4_500,
    "StableMax/StableMax": inf,
    "mod97/AdamW": 500,
    "mod97/Muon": 550,
}


def step_of(steps: Steps, name: str) -> float:
    return [step for part, step in steps.items() if part in name][-1]


def run(spec: RunSpec, grok: float, memorised: int = 150) -> RunRecord:
    """A run that memorises early and groks at a step, or never."""
    found = record(spec, grok)
    train = [float(step >= memorised) for step in found.evaluations["step"]]
    return replace(found, evaluations={**found.evaluations, "train_accuracy": train})


def planted(steps: Steps, spread: Callable[[str, int], float] = lambda name, seed: 0.0) -> dict[str, Any]:
    """Every own run, grokking at its arm's step."""
    found: dict[str, dict[str, RunRecord]] = {}
    for experiment, runs in OWN.items():
        found[experiment] = {
            name: run(spec, step_of(steps, configuration(name)) + spread(name, spec.seeds.split))
            for name, spec in runs(SEEDS, "float32").items()
        }
    return found


@cache
def shared(own: float, plain: float) -> Mapping[str, RunRecord]:
    """Runs of the steering study, of three families and of AdamW."""
    times = {"AdamW": plain, "Grokfast": own, "orthogonal gradient": own, "Muon": own}
    found = {}
    for cell in BASES:
        for family, time in times.items():
            setting = next(iter(FAMILIES[family].values()))
            for seed in range(2):
                found[f"{cell.name}/{family}_s{seed}"] = record(setting.apply(cell.run(seed, "float32")), time)
    return found


def evidence(steps: Steps, published: Mapping[str, RunRecord], **options: Any) -> Evidence:
    return Evidence({**planted(steps, **options), SHARED: dict(published)})


@cache
def as_reported() -> Evidence:
    # Muon's seeds are closer together than AdamW's.
    return evidence(PAPERS, shared(400.0, 3200.0), spread=lambda name, seed: seed * (25 if "Muon, s" in name else 75))


@cache
def otherwise() -> Evidence:
    return evidence(NOTHING, shared(900.0, 700.0), spread=lambda name, seed: seed * (75 if "/Muon" in name else 25))


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_reproduced_where_the_paper_is_right_and_not_where_it_is_not(name: str) -> None:
    assert judge(CLAIMS[name], as_reported()).verdict is Verdict.REPRODUCED
    assert judge(CLAIMS[name], otherwise()).verdict in (Verdict.UNLIKELY, Verdict.REFUTED)
    assert judge(CLAIMS[name], Evidence({one: {} for one in STUDY.experiments})).verdict is Verdict.NOT_TESTABLE


def test_what_is_not_seen_never_speaks_for_the_accelerator() -> None:
    never = as_reported().experiment("grokfast") | {
        name: record(one.spec, inf) for name, one in as_reported().experiment("grokfast").items() if "/Adam_s" in name
    }
    found = judge(CLAIMS["grokfast-factor"], Evidence({**as_reported().records, "grokfast": never}))
    assert found.effects["ratio"].value == pytest.approx(60_000 / 950), "a baseline that never groks has its budget"
    lost = {name: record(one.spec, inf) if "/Grokfast_s" in name else one for name, one in never.items()}
    for name in ("grokfast-factor", "grokfast-beats-decay", "grokfast-beyond-its-decay"):
        finding = judge(CLAIMS[name], Evidence({**as_reported().records, "grokfast": lost}))
        assert finding.effects["ratio"].value == 0
        assert finding.verdict is not Verdict.REPRODUCED


def test_a_run_that_falls_at_once_is_grokked_and_not_stable() -> None:
    spec = SETTINGS["Grokfast"].run("Grokfast", 0, "float32")
    events = read_events(record(spec, 900, falls_at=1500))
    assert (events["grok"], events["stable"], events["stable wait"]) == (900, inf, spec.training.steps)
    name = "Grokfast/Grokfast"
    runs = {f"{name}_s{seed}": record(spec.with_seed(seed), 900, falls_at=1500) for seed in range(3)}
    found = Evidence({**as_reported().records, "grokfast": runs}).measure(outcome("grokfast", name))
    assert (found.number("grokked"), found.number("stable"), found.number("grokked steps")) == (1, 0, 900)


def test_the_better_decay_counts_and_settings_count_alike() -> None:
    parts = {"a/x": 400.0, "a/y": 800.0, "a/own": 100.0, "b/x": 900.0, "b/y": 100.0, "b/own": 100.0, "n": 12}
    assert derive_best(parts)["ratio"] == pytest.approx(2.0)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_arm_can_be_trained_and_differs_from_the_others(name: str) -> None:
    setting = SETTINGS[name]
    runs = [setting.run(arm, 0, "tf32") for arm in setting.arms]
    assert len({run.content_hash for run in runs}) == len(runs)
    for run in runs:
        reject_unsuited(run, named_task(run.task))
        assert cohort_key(run).precision == ("float32" if setting.is_exact else "tf32")
        assert run.training.steps % setting.every == 0


def test_it_has_sixteen_seeds_of_each_arm_and_at_most_so_many_run_steps() -> None:
    parts = parts_of(STUDY, "tf32")
    assert [part.title for part in parts] == [*OWN]
    assert sum(part.steps for part in parts) < 5e6
    runs = {name: spec for own in OWN.values() for name, spec in own(None, "tf32").items()}
    counts = [sum(configuration(name) == arm for name in runs) for arm in {*map(configuration, runs)}]
    assert set(counts) == {16}
    assert {part.plan.stop_after_grokking for part in parts} == {AFTER_GROKKING}


def test_shared_runs_are_those_of_steering_and_are_packed_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    assert STUDY.experiments[SHARED] is find_study("steering").experiments[SHARED]
    some = {"add mod71, base/Muon_s0": BASES[0].run(0, "float32")}
    monkeypatch.setitem(find_study("steering").experiments, SHARED, lambda n_seeds, precision: some)
    (members,) = steering_parts.plan_of("published", "runs").made_for
    assert {("steering", SHARED), ("accelerators", SHARED)} <= {(one.study, one.experiment) for one in members}


def test_a_run_that_the_final_has_is_trained_there_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (BASES[0].run(seed, "float32") for seed in (0, 1))
    steering, name = find_study("steering").experiments, f"{BASES[0].name}/Muon"
    monkeypatch.setitem(steering, SHARED, lambda n_seeds, precision: {f"{name}_s0": one, f"{name}_s1": other})
    monkeypatch.setitem(steering, "final", lambda n_seeds, precision: {f"{name}_s0": one})
    assert steering_parts.plan_of("published", "runs").runs == (other,)
    (members,) = steering_parts.plan_of("final-1", "runs").made_for
    assert {("steering", "final"), ("accelerators", SHARED)} <= {(each.study, each.experiment) for each in members}


def test_every_number_is_shown_and_names_its_quantity() -> None:
    table, carried, assumed = (item.build(as_reported()) for item in STUDY.tables)
    assert all(isinstance(one, Table) for one in (table, carried, assumed))
    assert len(table.rows) == sum(len(one.arms) for one in SETTINGS.values())
    assert all(cell.quantity for row in table.rows for cell in row[3:] if isinstance(cell.ours, float))
    assert {row[1].ours for row in assumed.rows} == {f"arXiv:{number}" for number in STUDY.papers}
    (figure,) = (item.build(as_reported()) for item in STUDY.figures)
    assert isinstance(figure, Figure)
    assert len(figure.panels) == len(SETTINGS)
    for found in (as_reported(), Evidence({one: {} for one in STUDY.experiments})):
        for item in (*STUDY.tables, *STUDY.figures):
            item.build(found)


def test_the_message_follows_the_runs() -> None:
    nothing = Evidence({one: {} for one in STUDY.experiments})
    findings = dict.fromkeys(CLAIMS, Finding(Verdict.UNLIKELY, ""))  # sentences read numbers, not verdicts
    right, wrong, none = (
        [row["text"] for row in write_message(STUDY.message, STUDY.claims, findings, found)]
        for found in (as_reported(), otherwise(), nothing)
    )
    assert "and is sooner than" in right[0]
    assert "but is not sooner than" in wrong[0]
    assert not {*none} & {*right}


def test_reported_factors_are_those_of_the_reported_steps() -> None:
    assert pytest.approx(reported.ADAM_STEPS / reported.GROKFAST_STEPS, abs=0.01) == reported.GROKFAST_FACTOR
    assert {*reported.ASSUMED} == {*reported.PAPERS} == {*STUDY.papers}


def test_the_page_names_papers_settings_claims_and_what_is_assumed() -> None:
    page = " ".join((Path(__file__).parents[3] / "docs" / "studies" / "accelerators.md").read_text("utf-8").split())
    assert all(f"arXiv:{number}" in page for number in STUDY.papers)
    assert all(claim.statement in page for claim in STUDY.claims)
    assert all(" ".join(one.split()) in page for sentences in reported.ASSUMED.values() for one in sentences)


def test_speed_is_measured_by_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = STUDY.runs(quick=True)["grokfast"]
    monkeypatch.setattr(
        type(SETTINGS["Grokfast"]), "run", lambda self, arm, seed, precision: next(iter(quick.values()))
    )
    found = measure_speed(["Grokfast"], "cpu", "float32", slots=2, steps=1)
    assert {*found.seconds_per_step} == {f"Grokfast/{arm}" for arm in SETTINGS["Grokfast"].arms}
