from dataclasses import replace
from pathlib import Path

import pytest

from grokscope.runs import Run, RunFolder, RunOutcome, Store
from grokscope.specs import Fork, RunSpec
from grokscope.view.page import source_of
from grokscope.view.page.laws import forks_of
from grokscope.view.summary import summarize, summarize_run

SPEC = RunSpec().with_seed(42)


def evaluated(folder: RunFolder, *rows: tuple[int, float, float, float]) -> RunFolder:
    for step, train, validation, fsd in rows:
        row = {"step": step, "train_accuracy": train, "validation_accuracy": validation, "fsd": fsd, "norm": 30.0}
        folder.append(row)
    return folder


def ended(folder: RunFolder, outcome: str = "grokked") -> Run:
    folder.finish(RunOutcome(outcome))
    return Run(folder)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def parent(store: Store, grokked: int = 4000) -> Run:
    way = (
        (0, 0.0, 0.0, 0.1),
        (300, 1.0, 0.06, 0.1),
        (1500, 1.0, 0.1, 0.85),
        (grokked - 100, 1.0, 0.5, 0.9),
        (grokked, 1.0, 0.99, 0.95),
    )
    return ended(evaluated(store.add(SPEC), *way))


def fork(store: Store, decay: float, grokked: int | None) -> Run:
    spec = replace(SPEC, fork=Fork(SPEC.content_hash, 1000), training=replace(SPEC.training, weight_decay=decay))
    rows = [
        (1000, 1.0, 0.1, 0.3),
        ((grokked or 6000) - 100, 1.0, 0.1, 0.8),
        (grokked or 6000, 1.0, 0.99 if grokked else 0.2, 0.9),
    ]
    return ended(evaluated(store.add(spec), *rows))


def test_a_run_that_synchronised_first(store: Store) -> None:
    assert summarize([parent(store)]) == (
        "add_mod97_s42 (λ = 1) memorised its training data at step 300, with a validation accuracy of 6 %. Its neurons "
        "synchronised (FSD) at step 1,500, 2,500 steps before it grokked. It grokked at step 4,000, 3,700 steps after "
        "memorising. Whether it was stable is not known: it was not evaluated over 2,000 steps after grokking."
    )


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            ((0, 0, 0, 0), (300, 1, 0, 0.1), (4000, 1, 1, 0.3)),
            "Its neurons have not synchronised (FSD) by step 4,000. It grokked at",
        ),
        (((0, 0, 0, 0), (300, 1, 0, 0.1), (4000, 1, 1, 0.9)), "at the same evaluation at which it grokked."),
        (((0, 0, 0, 0), (300, 1, 1, 0.1), (4000, 1, 1, 0.9)), "at step 4,000, 3,700 steps after it grokked."),
        (((0, 0, 0, 0), (300, 1, 0, 0.9)), "synchronised (FSD) at step 300. It has not grokked by step 300."),
        (((0, 0, 0, 0), (300, 0.5, 0, 0.1)), "has not memorised its training data by step 300."),
        (((0, 1, 0, 0.9), (300, 1, 1, 0.9)), "at step 0 (at the first evaluation), 300 steps before it grokked"),
        (((0, 0, 0, 0), (300, 1, 1, 0.1), (400, 1, 0.1, 0.1)), "Later its validation accuracy fell below one half."),
        ((), "add_mod97_s42 (λ = 1) has not begun."),
    ],
)
def test_what_did_not_happen_is_stated(
    rows: tuple[tuple[int, float, float, float], ...], words: str, store: Store
) -> None:
    assert words in summarize([ended(evaluated(store.add(SPEC), *rows))])


def test_an_unfinished_run_says_how_to_continue(store: Store) -> None:
    assert f"grokscope resume {store.path}" in summarize([Run(evaluated(store.add(SPEC), (0, 0.0, 0.0, 0.0)))])


def test_summary_and_page_give_one_law(store: Store) -> None:
    runs = [parent(store, 3700), fork(store, 2.0, 2800), fork(store, 3.0, 2200)]
    found = summarize(runs)
    assert "Forks of add_mod97_s42 at step 1,000:" in found
    assert "λ = 1 (the parent): time to grok Δt = 2,700 steps, at step 3,700; λ·Δt = 2,700" in found
    assert "λ = 2: time to grok Δt = 1,800 steps, at step 2,800; λ·Δt = 3,600" in found
    (law,) = forks_of(source_of(store.path).runs)["laws"]
    assert f"({law['size']}): C = {law['constant'][0]:,.0f} by maximum likelihood; λ·Δt of its runs" in found
    assert law["constant"][0] == pytest.approx(3169, abs=1)
    assert "ranges from 2,700 to 3,600. The exponent is not fitted; 4 points are needed to test 2" in found


def test_forks_that_do_not_grok_and_forks_without_their_parent(store: Store) -> None:
    parent(store)
    found = summarize([fork(store, 10.0, None), fork(store, 2.0, 2500)])
    assert "λ = 10: not grokked by step 6,000" in found
    assert f"Forks of {SPEC.content_hash} at step 1,000" in found
    assert "not fitted; one value of λ: nothing to compare." in found


def test_an_empty_folder_has_a_summary_too() -> None:
    assert summarize([]) == "Nothing has been trained here yet."


def test_one_sentence_for_a_run(store: Store) -> None:
    assert summarize_run(parent(store)).endswith(
        "memorised at step 300 (‖W‖ 30.0, FSD 0.10), grokked at step 4,000 (‖W‖ 30.0, FSD 0.95), not seen for "
        "long enough to be stable, ended at step 4,000, λ = 1"
    )


def test_a_run_that_dipped_is_not_called_stable(store: Store) -> None:
    rows = [(step, 1.0, 0.3 if step in (0, 1500) else 1.0, 0.1) for step in (0, 1000, 1500, 2000, 4000)]
    run = ended(evaluated(store.add(SPEC), *rows), "unstable_after")
    assert "not stable (1 dip below 95 %, again grokked from step 2,000)" in summarize_run(run)
    assert "From step 2,000 on it stayed so for 2,000 steps." in summarize([run])


def test_runs_that_were_stopped_early_are_counted_once_at_the_end_with_what_a_lead_is(store: Store) -> None:
    runs = [parent(store), fork(store, 2.0, 2500)]
    assert "lead" not in summarize(runs) + summarize_run(runs[0])
    for run in runs:
        run.folder.finish(RunOutcome("grokked", stopped_early=True))
    found = summarize(runs)
    assert found.count("stopped") == found.count("A lead is") == 1
    assert found.rpartition("\n\n")[2].startswith("2 runs were stopped soon after grokking (--stop-after-grokking).")
    assert ", stopped early at step 4,000, λ = 1" in summarize_run(runs[0])


@pytest.mark.parametrize(
    ("outcome", "rows", "end"),
    [
        ("unstable", ((0, 0, 0, 0), (10, 0.5, 0, 0)), ": not memorised, ended at step 10, λ = 1"),
        ("unstable", ((0, 1, 0, 0), (10, 0.5, 0, 0)), ", not grokked, unstable, ended at step 10, λ = 1"),
        (
            "unstable_after",
            ((0, 1, 1, 0), (10, 1, 0, 0)),
            "FSD 0.00), not stable (1 dip below 95 %), then unstable, ended at step 10, λ = 1",
        ),
        ("never", ((0, 1, 0, 0), (10, 1, 0, 0)), ", not grokked, ended at step 10, λ = 1"),
        ("diverged", ((0, 1, 0, 0), (10, 1, 0, 0)), ", not grokked, diverged at step 10, λ = 1"),
    ],
)
def test_the_end_of_a_run_is_said_once(
    outcome: str, rows: tuple[tuple[int, float, float, float], ...], end: str, store: Store
) -> None:
    assert summarize_run(ended(evaluated(store.add(SPEC), *rows), outcome)).endswith(end)


def test_a_fork_that_had_memorised_did_so_before_it(store: Store) -> None:
    parent(store)
    assert ": memorised before the fork, grokked at step 2,500 (" in summarize_run(fork(store, 2.0, 2500))


def test_a_parent_that_the_law_leaves_out_is_no_branch(store: Store) -> None:
    runs = [parent(store, 3700), fork(store, 1.0, 2800), fork(store, 2.0, 2200)]
    assert "(the parent)" not in summarize(runs)
