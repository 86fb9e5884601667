"""The runs of the paper: every fork has its parent, seeds only add, and nothing is listed twice."""

from collections import Counter

import pytest

from grokscope.studies.synchronization import STUDY
from grokscope.studies.synchronization.experiments import EXPERIMENTS, seeds_of
from grokscope.tasks import named_task


@pytest.mark.parametrize("n", [None, 6])
def test_every_fork_has_its_parent_and_a_state_to_begin_with(n: int | None) -> None:
    runs = [run for experiment in STUDY.runs(n).values() for run in experiment.values()]
    by_hash = {run.content_hash: run for run in runs}
    forks = [run for run in runs if run.fork is not None]
    assert forks
    for run in forks:
        parent = by_hash[run.fork.parent]
        assert run.fork.step in parent.checkpoints.at, run
        assert (parent.task, parent.architecture) == (run.task, run.architecture)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_grows_with_the_seeds_and_keeps_what_it_had(name: str) -> None:
    few, many = EXPERIMENTS[name](None, "float32"), EXPERIMENTS[name](20, "float32")
    assert few.items() <= many.items()
    assert len(many) > len(few)
    assert max(Counter(many.values()).values()) == 1  # no run twice under two names


def test_the_base_is_table_1_and_the_run_of_the_text() -> None:
    found = EXPERIMENTS["base"](None, "float32")
    reported = {
        *(f"add_mod97_s{seed}" for seed in (42, 123, 0, 1, 2)),
        *(f"add_mod{p}_s42" for p in (53, 71, 113, 131)),
        "mult_mod97_s42",
        "sub_mod97_s42",
        "sub_mod97_s123",
    }
    assert set(found) == reported
    assert {run.training.steps for run in found.values()} == {15_000}


def test_every_task_exists() -> None:
    for task in {run.task for runs in STUDY.runs().values() for run in runs.values()}:
        assert named_task(task).name == task


def test_reported_seeds_come_first() -> None:
    assert seeds_of((42, 1), 5) == (42, 1, 0, 2, 3)
    assert seeds_of((42, 1), None) == seeds_of((42, 1), 1) == (42, 1)


def test_the_quick_version_has_the_same_names_and_other_runs() -> None:
    quick, full = STUDY.runs(quick=True), STUDY.runs(40)
    assert set(quick) == set(full)
    for experiment, runs in quick.items():
        assert runs.keys() <= full[experiment].keys()
        assert not {run.content_hash for run in runs.values()} & {run.content_hash for run in full[experiment].values()}
