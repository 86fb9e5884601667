"""Planted runs of every arm, and what the table, the verdict and the choice of a setting make of them."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isnan
from typing import Any

import numpy as np
import pytest
import scipy.stats

from grokscope.errors import InputError
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies.bakeoff.configurations import ARMS, FAMILIES, bakeoff_plan, tuning_runs
from grokscope.studies.bakeoff.tables import bakeoff_results, bakeoff_table, tuned, verdict
from grokscope.view.render import csv_of, latex_of, markdown_of

SEEDS = 8


def record(
    spec: RunSpec, grok: int | None, collapse: float = 1.0, learnt: bool = True, failed: int | None = None
) -> RunRecord:
    last = spec.training.steps if grok is None else min(spec.training.steps, grok + 1000)
    steps = list(range(0, last + 1, 100))
    validation = [1.0 if grok is not None and step >= grok else 0.1 for step in steps]
    validation[-1] = min(validation[-1], collapse)
    outcome = {
        "outcome": "diverged" if failed is not None else "never" if grok is None else "grokked",
        "failed_at": failed,
        "memorized": 300 if learnt else None,
        "grokked": grok,
    }
    log: dict[str, Any] = {
        "step": steps,
        "train_accuracy": [1.0 if learnt else 0.1] * len(steps),
        "validation_accuracy": validation,
    }
    return RunRecord(spec, RunOutcome.from_dict(outcome), log, {})


def runs_of(task: str = "add_mod97") -> dict[str, list[RunSpec]]:
    plan = bakeoff_plan("runs", [task], n_seeds=SEEDS)
    return {name: [run for run in plan.runs if arm.of(run) == run] for name, arm in ARMS.items()}


def planted(median: dict[str, int | None], task: str = "add_mod97", **options: Any) -> list[RunRecord]:
    """Each arm's runs grok around its step, spread over 700; those with None do not."""
    return [
        record(run, None if median[name] is None else median[name] + 100 * seed, **options)
        for name, runs in runs_of(task).items()
        for seed, run in enumerate(runs)
        if name in median
    ]


FIXED = {"fixed λ = 1": 4000, "fixed λ = 2": 2000, "fixed λ = 3": 1500, "fixed λ = 5": None}


def test_medians_shares_and_p_values_are_those_of_scipy() -> None:
    rivals = {**FIXED, "closed loop": 500, "Grokfast": 1600, "orthogonal gradient": 3500}
    task = bakeoff_results(planted(rivals))[0]
    assert task.best_fixed == "fixed λ = 3"
    raw = {}
    for name, first in rivals.items():
        arm = task.arm(name)
        steps = [8000] * SEEDS if first is None else [first + 100 * seed for seed in range(SEEDS)]
        data = scipy.stats.CensoredData.right_censored(steps, [first is None] * SEEDS)
        known = scipy.stats.CensoredData([1500 + 100 * seed for seed in range(SEEDS)])
        if name != "fixed λ = 3":
            raw[name] = scipy.stats.logrank(data, known).pvalue
        assert arm.grokked.value == (0.0 if first is None else 1.0)
        assert arm.grokked.items == SEEDS
        assert arm.steps.value == (inf if first is None else sorted(steps)[SEEDS // 2 - 1])
    order = sorted(raw, key=raw.__getitem__)
    adjusted = np.maximum.accumulate([raw[name] * (len(raw) - place) for place, name in enumerate(order)])
    for name, expected in zip(order, adjusted, strict=True):
        assert task.arm(name).p_value == pytest.approx(min(expected, 1.0), rel=1e-9)
    assert isnan(task.arm("fixed λ = 3").p_value)


def test_a_failed_run_is_later_than_everything_and_not_merely_unwatched() -> None:
    runs = runs_of()
    grokked = [record(run, 1500) for run in runs["fixed λ = 3"]]
    failed = [record(run, None, failed=200) for run in runs["Grokfast"][:5]]
    rest = [record(run, 1000) for run in runs["Grokfast"][5:]]
    arm = bakeoff_results([*grokked, *failed, *rest])[0].arm("Grokfast")
    assert arm.steps.value == inf
    assert (arm.failed, arm.grokked.value) == (5, 3 / 8)


def test_failures_and_collapses_are_counted() -> None:
    runs = runs_of()["fixed λ = 5"]
    records = [
        record(runs[0], None, learnt=False),
        record(runs[1], 1000, collapse=0.89),
        record(runs[2], 1000, collapse=0.9),
        record(runs[3], 1000, collapse=0.2),
        record(runs[4], None, failed=50, learnt=False),
        record(runs[5], 1000, failed=1250),
    ]
    arm = bakeoff_results(records)[0].arm("fixed λ = 5")
    assert (arm.unlearnt, arm.failed, arm.collapsed, arm.grokked.items) == (2, 2, 3, 6)


def test_tuning_runs_do_not_enter_the_table_and_arms_that_lack_runs_are_told() -> None:
    records = planted(dict.fromkeys(ARMS, 1000))
    assert not any("missing" in note for note in bakeoff_table(records).notes)
    assert any("some are missing" in note for note in bakeoff_table(records[1:]).notes)
    both = bakeoff_table([*records, *tuning([900, 800, 700, 600])])
    assert both.rows == bakeoff_table(records).rows


@pytest.mark.parametrize(
    ("medians", "sentence"),
    [
        (
            {**FIXED, "closed loop": 500},
            "add_mod97: closed loop wins with a median of 800 steps against 1,800 of fixed λ = 3, a difference (p = ",
        ),
        (
            {**FIXED, "closed loop": 1700},
            "add_mod97: fixed λ = 3 wins with a median of 1,800 steps, so no rule beats a fixed λ; the closed loop "
            "does not win, with 2,000.",
        ),
        (
            {**FIXED, "Grokfast": 1400, "closed loop": None},
            "add_mod97: Grokfast comes first with a median of 1,700 steps against 1,800 of fixed λ = 3, no clear "
            "difference (p = 0.38); the closed loop does not win: fewer than half of its runs grok.",
        ),
        (
            {**dict.fromkeys(FIXED), "Grokfast": 500},
            "Grokfast wins with a median of 800 steps, where with no fixed λ half of the runs grok, a difference (p = ",
        ),
        (dict.fromkeys(FIXED), "add_mod97: nobody wins, for in no arm did half of the runs grok within the budget."),
        (FIXED, "the closed loop was not run."),
    ],
)
def test_the_verdict_says_who_wins_and_whether_it_is_the_closed_loop(medians: dict, sentence: str) -> None:
    found = verdict(bakeoff_results(planted(medians))[0])
    assert sentence in found
    assert found.endswith(".")


def test_a_winner_whose_runs_do_not_all_grok_is_told_from_those_whose_do() -> None:
    own = runs_of()
    fast = [record(run, 500 if place else None) for place, run in enumerate(own["Grokfast"])]
    slow = [record(run, 900) for run in own["fixed λ = 2"]]
    said = verdict(bakeoff_results([*fast, *slow])[0])
    missed = f"though only {len(fast) - 1} of its {len(fast)} runs grok"
    assert f"{missed} (of the arms in which all did, fixed λ = 2 is first with 900);" in said
    assert f"{missed} (in no arm did all of them);" in verdict(bakeoff_results(fast)[0])


def test_seconds_are_steps_times_speed_and_without_speed_the_table_says_so() -> None:
    records = planted({**FIXED, "Grokfast": 1000})
    task = bakeoff_results(records, {"Grokfast": 0.5})[0]
    assert task.arm("Grokfast").seconds.value == 650.0
    assert task.arm("fixed λ = 1").seconds is None
    assert any("No speed was measured" in note for note in bakeoff_table(records).notes)
    timed = bakeoff_table(records, {"Grokfast": 0.5}, "an abacus")
    assert any("in a full stack on an abacus" in note for note in timed.notes)


def test_the_table_has_a_row_for_every_task_and_arm_and_can_be_written() -> None:
    medians = dict.fromkeys(ARMS, 1000)
    table = bakeoff_table([*planted(medians, "S5"), *planted(medians)])
    assert [(row[0].ours, row[1].ours) for row in table.rows] == [
        (task, arm) for task in ("add_mod97", "S5") for arm in ARMS
    ]
    assert len(table.notes[0]) > 20
    for render in (csv_of, markdown_of, latex_of):
        assert render(table) == render(table)
    assert b"closed loop" in csv_of(table)


def test_runs_of_no_arm_are_left_out_and_counted() -> None:
    run = runs_of()["fixed λ = 1"][0]
    other = replace(run, training=replace(run.training, weight_decay=1.7))
    table = bakeoff_table([record(run, 1000), record(other, 100)])
    assert len(table.rows) == 1
    assert "Runs of no arm, left out: 1." in table.notes
    assert bakeoff_table([]).rows == ()


def tuning(medians: Sequence[int | None], collapsed: Sequence[float] = (1.0,) * 4) -> list[RunRecord]:
    """The closed loop's settings do this; those of all other families grok sooner the further down they stand."""
    return [
        record(run, medians[place], collapsed[place]) if family == "closed loop" else record(run, 900 - 100 * place)
        for (family, setting), runs in tuning_runs(4).items()
        for place in [list(FAMILIES[family]).index(setting)]
        for run in runs
    ]


def test_the_setting_with_fewest_failures_is_chosen_and_among_those_the_fastest() -> None:
    names = list(FAMILIES["closed loop"])
    assert tuned(tuning([900, 800, 700, 600]))[0]["closed loop"] == names[3]
    assert tuned(tuning([900, 800, 700, None]))[0]["closed loop"] == names[2]
    chosen, table = tuned(tuning([900, 800, 700, 600], [1.0, 1.0, 0.5, 0.5]))
    assert chosen == {
        "FSD trigger": "λ = 10",
        "memorisation trigger": "λ = 10",
        "closed loop": names[1],
        "Grokfast": "λ = 5",
        "orthogonal gradient": "λ = 5",
    }
    assert [row[1].ours for row in table.rows][8:12] == [f"closed loop, {name}" for name in names]
    assert f"closed loop: {names[1]}" in table.notes[0]
    uneven = tuned(tuning([900, 800, 700, 600])[1:])[1]
    assert "different numbers of runs" in uneven.notes[1]


def test_nothing_is_chosen_from_nothing() -> None:
    with pytest.raises(InputError, match="no finished tuning run"):
        tuned(planted(FIXED))
