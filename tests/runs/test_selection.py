"""Runs of a folder chosen by place, by name, and by what they are."""

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from stored_runs import ADD, FORK, S3

from grokscope.errors import InputError
from grokscope.runs import Run, RunOutcome, Runs, Store, index, open_runs, run_name
from grokscope.runs.index import PAYS_FROM
from grokscope.specs import RunSpec


def specs(runs: Runs) -> set[RunSpec]:
    return {run.spec for run in runs}


WAITING = ADD.with_seed(10)


def test_a_run_is_chosen_by_its_place_and_runs_by_a_slice(path: Path) -> None:
    runs = open_runs(path)
    names = [run.name for run in runs]
    assert [runs[place].name for place in range(len(runs))] == names
    assert runs[-1].name == names[-1]
    assert [run.name for run in runs[1:3]] == names[1:3] == list(runs[1:3].names)
    assert [run.name for run in runs[::-1]] == names[::-1]
    assert len(runs[9:]) == 0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"weight_decay": 2}, {FORK}),
        ({"weight_decay": [1, 2.0], "task": "add_mod11"}, {ADD, FORK, WAITING}),
        ({"task": "add_mod11", "fork_step": None}, {ADD, WAITING}),
        ({"seed": range(4, 11)}, {WAITING}),
        ({"outcome": "unfinished"}, {WAITING}),
        ({"last_step": None}, {WAITING}),
        ({"activation": "relu"}, {S3}),
        ({"learning_rate": ADD.training.learning_rate, "steps": 8, "layers": 2}, {ADD, FORK, S3, WAITING}),
        ({"shuffled_labels": True}, set()),
        ({"seeds.split": ADD.seeds.split, "fork.step": 4}, {FORK}),
        ({"fork.step": None, "task": "add_mod11"}, {ADD, WAITING}),
        ({"task": "add_mod97"}, set()),
        ({"run": run_name(S3)}, {S3}),
        ({}, {ADD, FORK, S3, WAITING}),
    ],
)
def test_runs_are_chosen_by_what_they_are(values: dict[str, object], expected: set[RunSpec], path: Path) -> None:
    assert specs(open_runs(path).where(**values)) == expected


def test_choices_can_be_combined_and_name_runs_that_are_ambiguous_in_the_folder(path: Path) -> None:
    forks = open_runs(path).where(task="add_mod11").where(weight_decay=2)
    assert forks["add_mod11_s3"].spec == forks[0].spec == FORK
    assert forks[FORK.content_hash].spec == FORK
    assert [row["run"] for row in forks.table()] == [run_name(FORK)]
    assert "add_mod11_s3" in forks
    assert forks[0] in forks
    assert "S3" not in forks
    assert forks.columns()["fork_step"] == [4]


@pytest.mark.parametrize(
    ("read", "error", "sentence"),
    [
        (
            lambda runs: runs.where(weight_deacy=2),
            InputError,
            r"no field 'weight_deacy'; did you mean 'weight_decay'\?$",
        ),
        (lambda runs: runs.where(spec="x"), InputError, r"runs have no field 'spec'"),
        (lambda runs: runs.where(weight_decay="2"), InputError, r"^weight_decay is a number, got '2'$"),
        (lambda runs: runs.where(task=["S3", 3]), InputError, r"^task is a text, got 3$"),
        (lambda runs: runs.where(outcome="groked"), InputError, r"got 'groked'; did you mean 'grokked'\?$"),
        (lambda runs: runs[4], IndexError, r"^there is no run 4 among 4 runs$"),
        (lambda runs: runs[1.5], InputError, r"^a run is chosen by its place or its name, got 1.5$"),
        (
            lambda runs: runs.where(weight_decay=2)["S3"],
            InputError,
            r"^there is no run 'S3' in the 1 run chosen of '.*'$",
        ),
        (lambda runs: runs.where(weight_decay=1)[S3.content_hash[:-1] + "x"], InputError, "there is no run"),
    ],
)
def test_what_cannot_be_chosen_is_said_in_one_sentence(
    read: Callable[[Runs], object], error: type[Exception], sentence: str, path: Path
) -> None:
    with pytest.raises(error, match=sentence):
        read(open_runs(path))


def test_an_unfinished_run_is_chosen_by_what_its_log_says(tmp_path: Path) -> None:
    row = {"train_accuracy": 1.0, "validation_accuracy": 1.0, "fsd": 0.1, "norm": 1.0}
    store = Store(tmp_path)
    for step in (0, 300):
        store.add(ADD).append({"step": step, **row})
    store.add(WAITING)
    assert specs(open_runs(tmp_path).where(grokked=0, last_step=300)) == {ADD}


def test_choosing_many_leaves_the_index_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "SETTLED", -(10**12))  # files count as settled at once
    store = Store(tmp_path)
    for seed in range(PAYS_FROM + 2):
        store.add(ADD.with_seed(seed)).finish(RunOutcome("never"))
    chosen = open_runs(tmp_path)[1:-1]
    assert [facts["run"] for facts in chosen.facts()] == list(chosen.names)
    with sqlite3.connect(f"file:{tmp_path / index.INDEX}?mode=ro", uri=True) as database:
        assert database.execute("select count(*) from runs").fetchone() == (PAYS_FROM + 2,)
    database.close()


def test_runs_and_a_run_print_on_one_line(path: Path, tmp_path: Path) -> None:
    runs = open_runs(path)
    assert repr(runs) == f"<4 runs of {str(path)!r}>"
    assert repr(runs[:1]) == f"<1 run of {str(path)!r}>"
    assert repr(runs.where(weight_decay=2)[0]) == (
        f"<run {run_name(FORK)}: λ = 2, 8 steps, {runs[FORK.content_hash].record.outcome.ending}>"
    )
    assert repr(runs.where(outcome="unfinished")[0]) == f"<run {run_name(WAITING)}: λ = 1, 8 steps, unfinished>"
    monitored = replace(ADD, model="MLP", training=replace(ADD.training, weight_decay=None))
    folder = Store(tmp_path / "a\nb").add(monitored)
    assert "λ unknown" in repr(Run(folder))
    assert "\n" not in repr(open_runs(tmp_path / "a\nb"))
    (folder.path / "outcome.json").write_text("{")
    assert repr(Run(folder)).endswith("its outcome is damaged>")
