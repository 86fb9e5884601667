"""A plan before it is trained."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from grokscope.errors import InputError
from grokscope.jobs import preparation, prepare_plan, run_all
from grokscope.runs import Store, kept_plans, run_name
from grokscope.specs import Plan, RunSpec
from short_runs import tiny
from tiny_runs import TINY

OTHER = TINY.with_seed(1)


def test_it_is_kept_and_its_runs_have_folders(tmp_path: Path) -> None:
    plan, store = Plan(str(tmp_path), (TINY, OTHER)), Store(tmp_path)
    run_all([TINY], store, compiled=False)
    store.cancel()
    assert prepare_plan(plan) == [run_name(OTHER)], "what is finished does not wait"
    assert kept_plans(store) == [plan]
    assert not store.is_cancelled
    assert store.names() == sorted(map(run_name, plan.runs))


def test_of_very_many_runs_folders_are_made_as_they_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "MOST_FOLDERS", 1)
    assert len(prepare_plan(Plan(str(tmp_path), (TINY, OTHER)))) == 2
    assert Store(tmp_path).names() == []


def test_what_cannot_be_trained_leaves_nothing_behind(tmp_path: Path) -> None:
    plan = Plan(str(tmp_path / "runs"), (TINY,), measures=("fds",))
    with pytest.raises(InputError, match="did you mean 'fsd'"):
        prepare_plan(plan)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("specs", "options", "sentence"),
    [
        ([tiny(), replace(tiny(), task="ad_mod7")], {}, "did you mean 'add_mod7'"),
        ([tiny(), replace(tiny(), train_fraction=0.001)], {}, "leaves no training row"),
        ([tiny()], {"device": "banana"}, "device 'banana' is not available"),
        ([tiny()], {"device": "cudax"}, "device 'cudax' is not available"),
    ],
    ids=["task", "fraction", "device", "nearly a device"],
)
def test_what_cannot_be_trained_is_rejected_before_anything_is_written(
    specs: list[RunSpec], options: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=sentence):
        run_all(specs, Store(tmp_path / "runs"), compiled=False, **options)
    assert not (tmp_path / "runs").exists()


HUGE = replace(TINY, architecture=replace(TINY.architecture, width=2**16, heads=2, mlp_width=2**22))


def test_a_run_that_no_memory_holds_is_rejected_before_it_is_taken(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"one run of add_mod7 takes about [0-9,]+ GiB of memory, and cpu has [0-9]+"):
        prepare_plan(Plan(str(tmp_path / "runs"), (TINY, HUGE)))
    with pytest.raises(InputError, match="use a smaller model or batch"):
        run_all([HUGE], Store(tmp_path / "runs"), compiled=False)
    assert not (tmp_path / "runs").exists()


def test_the_memory_of_a_machine_elsewhere_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "total_memory", lambda device: 0)
    with pytest.raises(InputError, match="and cpu has 0 GiB"):
        prepare_plan(Plan(str(tmp_path), (TINY,)))
    assert prepare_plan(Plan(str(tmp_path), (TINY,)), is_here=False) == [run_name(TINY)]


def test_what_is_finished_needs_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_all([TINY], Store(tmp_path), compiled=False)
    monkeypatch.setattr(preparation, "total_memory", lambda device: 0)
    assert prepare_plan(Plan(str(tmp_path), (TINY,))) == []


def test_where_there_is_no_cuda_it_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="device 'cuda' is not available; use cpu"):
        run_all([tiny()], Store(tmp_path / "runs"), device="cuda")
    assert not (tmp_path / "runs").exists()
