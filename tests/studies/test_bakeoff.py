import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from grokscope.studies.reproduction import records_in

from grokscope.errors import InputError
from grokscope.jobs import run_all
from grokscope.runs import Store, packing
from grokscope.runs.records import unpacked
from grokscope.specs import Plan, RunSpec
from grokscope.studies.bakeoff.configurations import (
    ARMS,
    CHOSEN,
    FAMILIES,
    TASKS,
    Arm,
    arm_of,
    bakeoff_plan,
    quick_plan,
    tuning_plan,
)
from grokscope.studies.bakeoff.speed import measured_speed, read_speed, save_speed
from grokscope.training import cohort_key

SOME = {"FSD trigger", "closed loop", "Grokfast", "orthogonal gradient"}


def test_every_arm_has_the_same_tasks_seeds_and_budget() -> None:
    plan = bakeoff_plan("runs", n_seeds=3)
    assert len(plan.runs) == len({run.content_hash for run in plan.runs}) == len(ARMS) * len(TASKS) * 3
    by_arm = {name: {(run.task, run.seeds) for run in plan.runs if arm_of(run) == name} for name in ARMS}
    assert set(map(frozenset, by_arm.values())) == {frozenset((run.task, run.seeds) for run in plan.runs)}
    assert {run.training.steps for run in plan.runs} == {8000}
    assert {frozenset(run.evaluation_steps) for run in plan.runs} == {frozenset(range(0, 8001, 100))}
    assert plan.stop_after_grokking == 1000


def test_the_arms_are_those_of_the_bake_off() -> None:
    plan = bakeoff_plan("runs", ["add_mod97"], n_seeds=1)
    found = {arm_of(run): run for run in plan.runs}
    decays = [found[f"fixed λ = {decay}"].training.weight_decay for decay in (1, 2, 3, 5)]
    assert decays == [1.0, 2.0, 3.0, 5.0]
    for signal, name in (("fsd", "FSD trigger"), ("train_accuracy", "memorisation trigger")):
        run = found[name]
        assert (run.trigger.signal, run.trigger.weight_decay, run.training.weight_decay) == (signal, 3.0, 1.0)
    assert found["closed loop"].control == FAMILIES["closed loop"][CHOSEN["closed loop"]].control
    grokfast = found["Grokfast"].training
    assert (grokfast.gradient, grokfast.grokfast_alpha, grokfast.grokfast_lamb) == ("grokfast", 0.98, 2.0)
    assert found["orthogonal gradient"].training.gradient == "orthogonal"
    kinds = Counter(cohort_key(run).gradient for run in plan.runs)
    assert kinds == {"plain": 7, "grokfast": 1, "orthogonal": 1}


def test_a_trigger_on_a_group_waits_for_the_groups_threshold() -> None:
    plan = bakeoff_plan("runs", ["S5", "mult_mod97"], n_seeds=1)
    at_least = {(run.task, run.trigger.threshold) for run in plan.runs if run.trigger and run.trigger.signal == "fsd"}
    assert at_least == {("S5", 0.5), ("mult_mod97", 0.8)}
    assert {run.train_fraction for run in plan.runs if run.task == "S5"} == {0.7}


def test_every_family_has_the_same_tuning() -> None:
    assert {len(settings) for settings in FAMILIES.values()} == {4}
    assert {*CHOSEN} == {*FAMILIES} - {"fixed"}
    known = [arm for settings in FAMILIES.values() for arm in settings.values()]
    assert len({*known}) == len(known)
    decays = {name: [arm.weight_decay for arm in FAMILIES[name].values()] for name in FAMILIES}
    assert 0.0 in decays["Grokfast"], "as published, or nearly: without weight decay"
    assert 0.0 in decays["orthogonal gradient"]


def test_tuning_never_sees_the_seeds_of_the_bake_off() -> None:
    tuned, tested = tuning_plan("tuning"), bakeoff_plan("runs", n_seeds=4, tasks=["add_mod97"])
    seeds = [{seed for run in plan.runs for seed in run.seeds.to_dict().values()} for plan in (tuned, tested)]
    assert seeds == [set(range(10_000, 10_016)), set(range(4))]
    assert {run.task for run in tuned.runs} == {"add_mod97"}
    assert len(tuned.runs) == len({run.content_hash for run in tuned.runs}) == 5 * 4 * 16
    assert {run.training.steps for run in tuned.runs} == {8000}
    assert {arm_of(run) for run in tuned.runs} == {None}, "tuning runs never enter the table"


def test_a_run_of_no_arm_has_none() -> None:
    run = ARMS["fixed λ = 2"].of(RunSpec())
    assert arm_of(run) == "fixed λ = 2"
    assert arm_of(Arm(4.0).of(run)) is None
    assert arm_of(replace(run, trigger=ARMS["FSD trigger"].of(RunSpec()).trigger)) is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_seeds": 0}, r"n_seeds must lie in \[1, 10000\), got 0"),
        ({"n_seeds": 10_000}, r"n_seeds must lie in \[1, 10000\)"),
        ({"tasks": []}, "at least one task"),
        ({"tasks": ["ad_mod97"]}, "did you mean 'add_mod97'"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(options: dict, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        bakeoff_plan("runs", **options)


def test_a_plan_is_run_by_a_worker_with_the_core_packages_only(tmp_path: Path) -> None:
    whole = quick_plan(str(tmp_path / "runs"))
    short = {"measurements": {"every": 5}}
    runs = [
        RunSpec.from_dict(run.to_dict() | short | {"training": {**run.training.to_dict(), "steps": 10}})
        for run in whole.runs[: len(ARMS)]
        if arm_of(run) in SOME
    ]
    plan = tmp_path / "plan.json"
    plan.write_text(replace(whole, runs=tuple(runs)).to_json())
    block = "import sys; sys.modules.update(dict.fromkeys(('tyro', 'rich', 'scipy', 'tqdm', 'matplotlib')))"
    code = f"{block}; from grokscope.jobs.worker import main; sys.exit(main(['--spec', {str(plan)!r}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    records = records_in(Store(tmp_path / "runs"))
    assert {arm_of(record.spec) for record in records} == SOME
    assert packing.main(["--spec", str(plan), "--out", str(tmp_path / "some.gz")]) == 0
    assert {record.spec for record in unpacked(tmp_path / "some.gz")} == {*runs}
    assert packing.main(["--spec", str(tmp_path / "none.json"), "--out", str(tmp_path / "other.gz")]) == 2
    assert not (tmp_path / "other.gz").exists()
    loop = next(record for record in records if arm_of(record.spec) == "closed loop")
    assert loop.outcome.control["phase"] == "waiting"


def test_a_plan_is_written_and_read_exactly() -> None:
    plan = bakeoff_plan("runs", n_seeds=1)
    assert Plan.from_json(plan.to_json()) == plan


def test_weights_are_not_kept_but_a_stopped_run_can_go_on(tmp_path: Path) -> None:
    plan = quick_plan(str(tmp_path))
    run = plan.runs[0]
    short = replace(run, training=replace(run.training, steps=8))
    run_all([short], Store(tmp_path), keep=plan.keep, compiled=False)
    assert not list(tmp_path.glob("*/*.safetensors"))


def test_seconds_are_measured_for_every_arm(tmp_path: Path) -> None:
    speed = measured_speed(quick_plan("runs"), slots=2, steps=3, compiled=False)
    found = speed.seconds_per_step
    assert set(found) == set(ARMS)
    assert all(seconds > 0 for seconds in found.values())
    assert len({found[name] for name, arm in ARMS.items() if arm.gradient == "plain"}) == 1
    assert "2 runs at once, float32" in speed.place
    assert read_speed(tmp_path / "speed.json") is None
    save_speed(speed, tmp_path / "speed.json")
    assert read_speed(tmp_path / "speed.json") == speed
    (tmp_path / "speed.json").write_text('{"place": 1}')
    with pytest.raises(InputError, match="cannot be read"):
        read_speed(tmp_path / "speed.json")
