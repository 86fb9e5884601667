"""Forked runs and how they ended."""

from dataclasses import replace

import pytest
from law_cases import intervention, late, noisy_runs, values

from grokscope.errors import InputError
from grokscope.law import Ending, ForkedRun, fit_censored, fit_law, forked_run, outcomes_by_decay
from grokscope.specs import Fork, RunSpec, Seeds, Training
from grokscope.timeline import Outcome, timeline_of


def test_failures_are_counted_and_change_no_fit() -> None:
    runs = noisy_runs(8)
    failed = [ForkedRun(10.0, None, Outcome.UNSTABLE, 100, 7000, draw) for draw in range(3)]
    failed += [ForkedRun(5.0, None, Outcome.DIVERGED, 100, 7000, 0), ForkedRun(1.0, 0, Outcome.GROKKED, 100, 7000, 0)]
    assert fit_law([*runs, *failed]).parameters == fit_law(runs).parameters
    with_them, without = (fit_censored(r) for r in ([*runs, *failed], runs))
    assert values(with_them) == values(without)
    assert with_them.endings[Ending.FAILED] == 4
    assert with_them.endings[Ending.BEFORE] == 1
    table = {row.weight_decay: row for row in outcomes_by_decay([*runs, *failed])}
    assert (table[10.0].failure.value, table[10.0].failure.items) == (1.0, 3)
    assert (table[5.0].failure.value, table[5.0].failure.items) == (1 / 6, 6)
    assert (table[1.0].failure.value, table[1.0].failure.items) == (0, 6)


def test_endings_of_the_papers_branches() -> None:
    table = {row.weight_decay: row for row in outcomes_by_decay(intervention())}
    assert [table[decay].unstable_after for decay in (1.0, 4.0, 5.0)] == [0, 1, 1]
    assert table[4.0].endings[Ending.GROKKED] == 1  # † grokked all the same
    assert table[10.0].endings[Ending.FAILED] == 1
    assert table[10.0].failure.low == pytest.approx(0.025)  # one run of one says little


def test_a_run_must_not_contradict_itself() -> None:
    with pytest.raises(InputError, match="weight_decay must be positive"):
        late(0.0, 7000)
    with pytest.raises(InputError, match="has steps_to_grok None"):
        ForkedRun(1.0, None, Outcome.GROKKED, 100, 7000)
    with pytest.raises(InputError, match="has steps_to_grok 500"):
        ForkedRun(1.0, 500, Outcome.NEVER, 100, 7000)


def test_a_stored_run_becomes_a_forked_run() -> None:
    spec = RunSpec(
        task="add_mod53",
        training=Training(steps=8000, weight_decay=3.0),
        seeds=Seeds(0, 0, 7),
        fork=Fork("0123456789abcdef", 2000),
    )
    log = {
        "step": [2000, 2100, 2300, 2600],
        "train_accuracy": [1.0, 1.0, 1.0, 1.0],
        "validation_accuracy": [0.1, 0.2, 0.97, 1.0],
        "norm": [50.0, 45.0, 30.0, 25.0],
    }
    assert forked_run(spec, timeline_of(log)) == ForkedRun(
        3.0, 300, Outcome.GROKKED, 200, 600, draw=7, task="add_mod53", norm_at_fork=50.0, norm_at_grok=30.0
    )
    never = forked_run(spec, timeline_of(log | {"validation_accuracy": [0.1, 0.2, 0.3, 0.3]}))
    assert (never.ending, never.watched) == (Ending.CENSORED, 600)
    before = forked_run(spec, timeline_of(log | {"validation_accuracy": [1.0, 1.0, 1.0, 1.0]}))
    assert before.ending is Ending.BEFORE
    assert forked_run(replace(spec, fork=None), timeline_of(log)).steps_to_grok == 2300
