from collections import Counter

import pytest

from grokscope.errors import InputError
from grokscope.studies.synchronization.experiments import STUDIES, seeds_of, studies
from grokscope.tasks import named_task


@pytest.mark.parametrize("n", [None, 6])
def test_every_fork_has_its_parent_and_a_state_to_begin_with(n: int | None) -> None:
    runs = [run for study in studies(STUDIES, n).values() for run in study.values()]
    by_hash = {run.content_hash: run for run in runs}
    forks = [run for run in runs if run.fork is not None]
    assert forks
    for run in forks:
        parent = by_hash[run.fork.parent]
        assert run.fork.step in parent.checkpoints.at, run
        assert (parent.task, parent.architecture) == (run.task, run.architecture)


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_grows_with_the_seeds_and_keeps_what_it_had(name: str) -> None:
    few, many = STUDIES[name](None, "float32"), STUDIES[name](20, "float32")
    assert few.items() <= many.items()
    assert len(many) > len(few)
    assert max(Counter(many.values()).values()) == 1  # no run twice under two names


def test_the_base_is_table_1_and_the_run_of_the_text() -> None:
    found = studies(["base"])["base"]
    printed = {
        *(f"add_mod97_s{seed}" for seed in (42, 123, 0, 1, 2)),
        *(f"add_mod{p}_s42" for p in (53, 71, 113, 131)),
        "mult_mod97_s42",
        "sub_mod97_s42",
        "sub_mod97_s123",
    }
    assert set(found) == printed
    assert {run.training.steps for run in found.values()} == {15_000}


def test_every_task_of_the_catalogue_exists() -> None:
    for task in {run.task for study in studies(STUDIES).values() for run in study.values()}:
        assert named_task(task).name == task


def test_printed_seeds_come_first() -> None:
    assert seeds_of((42, 1), 5) == (42, 1, 0, 2, 3)
    assert seeds_of((42, 1), None) == seeds_of((42, 1), 1) == (42, 1)


def test_an_unknown_study_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="there is no study 'bass'; did you mean 'base'"):
        studies(["bass"])
