from collections import Counter

import pytest

from grokscope.errors import InputError
from grokscope.studies.bakeoff.configurations import (
    CHOSEN,
    CONFIGURATIONS,
    FAMILIES,
    TASKS,
    bakeoff_runs,
    quick_runs,
    tuning_runs,
)
from grokscope.training import cohort_key


def test_every_configuration_has_the_same_tasks_seeds_and_budget() -> None:
    runs = bakeoff_runs(3, "float32")
    assert len({run.content_hash for run in runs.values()}) == len(runs) == len(CONFIGURATIONS) * len(TASKS) * 3
    everywhere = {(run.task, run.seeds) for run in runs.values()}
    for name in CONFIGURATIONS:
        own = {(run.task, run.seeds) for key, run in runs.items() if key.partition("/")[2].startswith(f"{name}_s")}
        assert own == everywhere
    assert {run.training.steps for run in runs.values()} == {8000}
    assert {frozenset(run.evaluation_steps) for run in runs.values()} == {frozenset(range(0, 8001, 100))}
    assert {run.training.steps for run in bakeoff_runs(1, "float32", budget=500).values()} == {500}


def test_the_configurations_are_those_of_the_bake_off() -> None:
    runs = bakeoff_runs(1, "float32", ["add_mod97"])
    found = {name: runs[f"add_mod97/{name}_s0"] for name in CONFIGURATIONS}
    decays = [found[f"fixed λ = {decay}"].training.weight_decay for decay in (1, 2, 3, 5)]
    assert decays == [1.0, 2.0, 3.0, 5.0]
    for signal, name in (("fsd", "FSD trigger"), ("train_accuracy", "memorisation trigger")):
        run = found[name]
        assert (run.trigger.signal, run.trigger.weight_decay, run.training.weight_decay) == (signal, 3.0, 1.0)
    assert found["closed loop"].control == FAMILIES["closed loop"][CHOSEN["closed loop"]].control
    grokfast = found["Grokfast"].training
    assert (grokfast.gradient, grokfast.grokfast_alpha, grokfast.grokfast_lamb) == ("grokfast", 0.98, 2.0)
    assert found["orthogonal gradient"].training.gradient == "orthogonal"
    kinds = Counter(cohort_key(run).gradient for run in runs.values())
    assert kinds == {"plain": 7, "grokfast": 1, "orthogonal": 1}


def test_a_trigger_on_a_group_waits_for_the_groups_threshold() -> None:
    runs = bakeoff_runs(1, "float32", ["S5", "mult_mod97"]).values()
    at_least = {(run.task, run.trigger.threshold) for run in runs if run.trigger and run.trigger.signal == "fsd"}
    assert at_least == {("S5", 0.5), ("mult_mod97", 0.8)}
    assert {run.train_fraction for run in runs if run.task == "S5"} == {0.7}


def test_every_family_has_the_same_tuning() -> None:
    assert {len(settings) for settings in FAMILIES.values()} == {4}
    assert {*CHOSEN} == {*FAMILIES} - {"fixed"}
    known = [one for settings in FAMILIES.values() for one in settings.values()]
    assert len({*known}) == len(known)
    decays = {name: [one.weight_decay for one in FAMILIES[name].values()] for name in FAMILIES}
    assert 0.0 in decays["Grokfast"], "as published, or nearly: without weight decay"
    assert 0.0 in decays["orthogonal gradient"]


def test_tuning_never_sees_the_seeds_of_the_bake_off() -> None:
    tuned, tested = tuning_runs(None, "float32"), bakeoff_runs(4, "float32", ["add_mod97"])
    seeds = [{seed for run in runs.values() for seed in run.seeds.to_dict().values()} for runs in (tuned, tested)]
    assert seeds == [set(range(10_000, 10_016)), set(range(4))]
    assert {run.task for run in tuned.values()} == {"add_mod97"}
    assert len(tuned) == len({run.content_hash for run in tuned.values()}) == 5 * 4 * 16
    assert {run.training.steps for run in tuned.values()} == {8000}
    assert "closed loop/λ up to 10, train loss 0.5_s10000" in tuned


def test_a_configuration_replaces_another() -> None:
    spec = next(iter(quick_runs()["bakeoff"].values()))
    triggered = CONFIGURATIONS["FSD trigger"].apply(spec)
    assert CONFIGURATIONS["fixed λ = 1"].apply(triggered) == spec


@pytest.mark.parametrize(
    ("n_seeds", "tasks", "sentence"),
    [
        (0, TASKS, r"n_seeds must lie in \[1, 10000\), got 0"),
        (10_000, TASKS, r"n_seeds must lie in \[1, 10000\)"),
        (1, [], "at least one task"),
        (1, ["ad_mod97"], "did you mean 'add_mod97'"),
    ],
)
def test_runs_that_make_no_sense_are_rejected(n_seeds: int, tasks: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        bakeoff_runs(n_seeds, "float32", tasks)
