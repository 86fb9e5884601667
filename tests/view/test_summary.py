from dataclasses import replace
from pathlib import Path

import pytest

from grokscope.runs import Run, RunFolder, Store, open_runs
from grokscope.specs import Fork, RunSpec
from grokscope.view.summary import sentence, story

SPEC = RunSpec().with_seed(42)


def looks(folder: RunFolder, *rows: tuple[int, float, float, float]) -> RunFolder:
    for step, train, validation, fsd in rows:
        row = {"step": step, "train_accuracy": train, "validation_accuracy": validation, "fsd": fsd, "norm": 30.0}
        folder.append(row)
    return folder


def ended(folder: RunFolder, outcome: str = "grokked") -> Run:
    folder.finish({"outcome": outcome, "failed_at": None})
    return Run(folder)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def parent(store: Store) -> Run:
    way = ((0, 0.0, 0.0, 0.1), (300, 1.0, 0.06, 0.1), (1500, 1.0, 0.1, 0.85), (4000, 1.0, 0.99, 0.95))
    return ended(looks(store.add(SPEC), *way))


def fork(store: Store, decay: float, grokked: int | None) -> Run:
    spec = replace(SPEC, fork=Fork(SPEC.content_hash, 1000), training=replace(SPEC.training, weight_decay=decay))
    rows = [(1000, 1.0, 0.1, 0.3), (grokked or 6000, 1.0, 0.99 if grokked else 0.2, 0.9)]
    return ended(looks(store.add(spec), *rows))


def test_a_run_that_synchronised_first(store: Store) -> None:
    told = story([parent(store)])
    assert told == (
        "add_mod97_s42 (weight decay λ = 1) had memorised its training data by step 300, when it got 6% of the pairs "
        "right that it had not seen. Its neurons agreed on one frequency (FSD) at step 1,500, 2,500 steps before it "
        "grokked at step 4,000, 3,700 steps after memorising."
    )


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (((0, 0, 0, 0), (300, 1, 0, 0.1), (4000, 1, 1, 0.3)), "had not synchronised when it grokked. It grokked at"),
        (((0, 0, 0, 0), (300, 1, 0, 0.1), (4000, 1, 1, 0.9)), "agree on one frequency at the very look at which it"),
        (((0, 0, 0, 0), (300, 1, 0, 0.9)), "Its neurons synchronised at step 300. It has not grokked by step 300."),
        (((0, 0, 0, 0), (300, 0.5, 0, 0.1)), "has not memorised its training data by step 300."),
        (((0, 1, 0, 0.9), (300, 1, 1, 0.9)), "at step 0 (at the first look), 300 steps before it grokked"),
        (((0, 0, 0, 0), (300, 1, 1, 0.1), (400, 1, 0.1, 0.1)), "Later it fell apart again."),
        ((), "add_mod97_s42 has not begun."),
    ],
)
def test_what_did_not_happen_is_said(
    rows: tuple[tuple[int, float, float, float], ...], words: str, store: Store
) -> None:
    assert words in story([ended(looks(store.add(SPEC), *rows))])


def test_an_unfinished_run_says_how_to_go_on(store: Store) -> None:
    assert f"grokscope resume {store.path}" in story([Run(looks(store.add(SPEC), (0, 0.0, 0.0, 0.0)))])


def test_forks_are_compared_with_the_law(store: Store) -> None:
    runs = [parent(store), fork(store, 2.0, 2500), fork(store, 3.0, 2000)]
    told = story(runs)
    assert "Forked add_mod97_s42 at step 1,000, changing nothing but λ:" in told
    assert "λ = 1 (the run itself): grokked 3,000 steps after the fork, at 4,000; λ·Δt = 3,000" in told
    assert "λ = 2: grokked 1,500 steps after the fork, at 2,500; λ·Δt = 3,000" in told
    assert "here it is 3,000 on average,\nand its values differ by 0% of that. 3 runs" in told
    assert story(list(reversed(runs))).count("λ·Δt = 3,000") == 3


def test_forks_that_do_not_grok_and_forks_without_their_parent(store: Store) -> None:
    parent(store)
    told = story([fork(store, 10.0, None), fork(store, 2.0, 2500)])
    assert "λ = 10: not grokked by step 6,000" in told
    assert f"Forked {SPEC.content_hash} at step 1,000" in told
    assert "on average" not in told, "one number has no spread"


def test_an_empty_folder_has_a_story_too(tmp_path: Path) -> None:
    assert story(list(open_runs(tmp_path))) == "Nothing has been trained here yet."


def test_one_sentence_for_a_run(store: Store) -> None:
    assert sentence(parent(store)).endswith(
        "memorised at step 300 (‖W‖ 30.0, FSD 0.10), grokked at step 4,000 (‖W‖ 30.0, FSD 0.95), grokked at step "
        "4,000, λ = 1"
    )


def test_a_run_that_was_stopped_early_is_marked(store: Store) -> None:
    folder = parent(store).folder
    assert "early" not in story([Run(folder)]) + sentence(Run(folder))
    folder.finish({"outcome": "grokked", "failed_at": None, "stopped_early": True})
    assert "It was stopped early after grokking, so leads of runs like it are biased." in story([Run(folder)])
    assert "grokked, stopped early at step 4,000" in sentence(Run(folder))
