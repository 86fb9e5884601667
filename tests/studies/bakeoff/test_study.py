"""The bake-off as a study: its plans, its reduced version, and runs of it from a worker to a table."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from grokscope.jobs import run_all
from grokscope.runs import Store
from grokscope.specs import Membership, Plan
from grokscope.studies import find_study
from grokscope.studies.bakeoff import STUDY, bakeoff_study
from grokscope.studies.bakeoff.configurations import CONFIGURATIONS, TASKS

SOME = {"FSD trigger", "closed loop", "Grokfast", "orthogonal gradient"}


def test_it_is_found_by_its_name() -> None:
    assert find_study("bakeoff") is STUDY
    assert [*STUDY.items] == ["tab-bakeoff", "tab-tuning", "fig-bakeoff"]


def test_a_plan_has_the_places_of_its_runs_and_ends_grokked_runs_early() -> None:
    plan = STUDY.plan(["bakeoff"], "runs", n_seeds=1)
    assert (len(plan.runs), plan.keep, plan.stop_after_grokking) == (len(CONFIGURATIONS) * len(TASKS), "forks", 1000)
    assert plan.made_for[0] == (Membership("bakeoff", "bakeoff", "add_mod97/fixed λ = 1_s0"),)
    assert Plan.from_json(plan.to_json()) == plan
    assert len(STUDY.plan(["tuning"], "runs", n_seeds=1).runs) == 20


def test_other_tasks_and_budgets_are_another_version_of_the_same_study() -> None:
    plan = bakeoff_study(["A5"], 500).plan(["bakeoff"], "runs", n_seeds=2)
    assert {(run.task, run.training.steps) for run in plan.runs} == {("A5", 500)}
    assert {member.name.partition("/")[0] for places in plan.made_for for member in places} == {"A5"}


def test_the_reduced_version_is_small() -> None:
    plan = STUDY.plan(["bakeoff"], "runs", quick=True)
    assert len(plan.runs) == 2 * len(CONFIGURATIONS)
    assert {(run.task, run.training.steps) for run in plan.runs} == {("add_mod17", 300)}
    assert {member.study for places in plan.made_for for member in places} == {"bakeoff/quick"}


def test_a_plan_is_run_by_a_worker_with_the_core_packages_only(tmp_path: Path) -> None:
    whole = STUDY.plan(["bakeoff"], str(tmp_path / "runs"), quick=True)
    chosen = [
        (
            replace(run, training=replace(run.training, steps=10), measurements=replace(run.measurements, every=5)),
            places,
        )
        for run, places in zip(whole.runs, whole.made_for, strict=True)
        if places[0].name.partition("/")[2].removesuffix("_s0") in SOME
    ]
    runs, made_for = (tuple(part) for part in zip(*chosen, strict=True))
    plan = tmp_path / "plan.json"
    plan.write_text(replace(whole, runs=runs, made_for=made_for).to_json())
    block = "import sys; sys.modules.update(dict.fromkeys(('tyro', 'rich', 'scipy', 'tqdm', 'matplotlib')))"
    code = f"{block}; from grokscope.jobs.worker import main; sys.exit(main(['--spec', {str(plan)!r}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    places = {run.content_hash: own for run, own in zip(runs, made_for, strict=True)}
    records = [folder.record() for folder in Store(tmp_path / "runs")]
    found = STUDY.evidence(replace(one, made_for=places[one.spec.content_hash]) for one in records)
    table = STUDY.items["tab-bakeoff"].build(found)
    assert found.is_quick
    assert {row[1].ours for row in table.rows} == SOME
    assert table.notes[0].startswith("add_mod17: in no configuration")
    loop = found.records["bakeoff"]["add_mod17/closed loop_s0"]
    assert loop.outcome.control is not None
    assert loop.outcome.control["phase"] == "waiting"


def test_weights_are_not_kept(tmp_path: Path) -> None:
    plan = STUDY.plan(["bakeoff"], str(tmp_path), quick=True)
    short = replace(plan.runs[0], training=replace(plan.runs[0].training, steps=8))
    run_all([short], Store(tmp_path), keep=plan.keep, compiled=False)
    assert not list(tmp_path.glob("*/*.safetensors"))
