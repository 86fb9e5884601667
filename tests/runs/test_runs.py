from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stored_runs import ADD, FORK, STEPS

import grokscope
from grokscope.errors import InputError
from grokscope.runs import run_name


def test_the_table_has_a_row_for_every_run(path: Path) -> None:
    opened = grokscope.open(path)
    rows = {row["run"]: row for row in opened.table()}
    assert len(opened) == len(rows) == 4
    assert [run.name for run in opened] == sorted(rows)
    add, fork, waiting = (rows[run_name(spec)] for spec in (ADD, FORK, ADD.with_seed(10)))
    assert (add["task"], add["seed"], add["weight_decay"], add["fork_step"]) == ("add_mod11", 3, 1.0, None)
    assert (fork["weight_decay"], fork["fork_step"]) == (2.0, 4)
    assert (waiting["outcome"], waiting["memorized"], waiting["grokked"]) == ("unfinished", None, None)
    assert add["outcome"] == opened[ADD.content_hash].folder.outcome.ending


def test_a_run_tells_what_it_is_and_where_its_weights_are(path: Path) -> None:
    run = grokscope.open(path)[run_name(ADD)]
    assert run.spec == ADD
    assert run.steps == (0, 4, STEPS)
    log = run.log()
    assert log["step"].tolist() == [0, 4, STEPS]
    assert log["train_accuracy"].dtype == float
    row = run.summary()
    assert (run.outcome, run.grokked, run.memorized) == (row["outcome"], row["grokked"], row["memorized"])
    waiting = grokscope.open(path)["add_mod11_s10"]
    assert (waiting.log(), waiting.steps) == ({}, ())


@pytest.mark.parametrize(
    ("read", "sentence"),
    [
        (lambda path: grokscope.open(path)[run_name(ADD)].at(5), r"has no weights at step 5; stored steps: 0, 4, 8"),
        (lambda path: grokscope.open(path)["add_mod11_s4"], r"no run 'add_mod11_s4' in .*did you mean 'add_mod11_s"),
        (lambda path: grokscope.open(path)["add_mod11_"], r"'add_mod11_' names 3 runs"),
        (
            lambda path: grokscope.open(path.with_name(f"{path.name}x")),
            r"there is no folder .*; did you mean 'runs[0-9]+'",
        ),
        (lambda path: grokscope.open("no/such/folder"), r"there is no folder 'no/such/folder'$"),
        (lambda path: grokscope.open("a\0b"), r"there is no folder"),
        (
            lambda path: grokscope.open(path)[run_name(ADD)].at(0).activations("blocks.0.mlp.hook_pst"),
            r"no site 'blocks.0.mlp.hook_pst'; did you mean 'blocks.0.mlp.hook_post'",
        ),
    ],
    ids=["step", "run", "ambiguous", "folder", "no folder near", "NUL", "site"],
)
def test_what_is_not_there_is_said_in_one_sentence(read: Callable[[Path], object], sentence: str, path: Path) -> None:
    with pytest.raises(InputError, match=sentence):
        read(path)


def test_opening_only_reads(path: Path) -> None:
    def times() -> Iterator[tuple[str, int]]:
        return ((str(p), p.stat().st_mtime_ns) for p in sorted(path.rglob("*")))

    before = list(times())
    for run in grokscope.open(path):
        run.summary()
        run.log()
        for step in run.steps:
            run.module(step)
    assert list(times()) == before
