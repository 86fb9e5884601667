"""Thinning keeps what happens: every event of a run is that of all its evaluations."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope.runs.logs import Columns
from grokscope.runs.packing import unpack_records
from grokscope.runs.records import RunRecord
from grokscope.timeline import dips_after, first_step, first_step_below, stability, timeline_of
from grokscope.timeline.thinning import BEGINNING, EVERY, LEVELS, RULE, kept_evaluations

STORED = sorted((Path(__file__).parents[2] / "results" / "synchronization").glob("*.records.gz"))[1]


def thinned(columns: Columns) -> Columns:
    places = kept_evaluations(columns)
    return {name: [values[i] for i in places] for name, values in columns.items()}


shares = st.lists(st.floats(0, 1) | st.sampled_from([0.949, 0.95, 0.5, 0.8, float("nan")]), min_size=1, max_size=80)


@given(shares)
def test_first_steps_and_dips_are_those_of_all_evaluations(values: list[float]) -> None:
    columns: Columns = {"step": [100 * i for i in range(len(values))], "validation_accuracy": values}
    few = thinned(columns)
    for level in LEVELS["validation_accuracy"]:
        whole = first_step(columns["step"], values, level)
        assert first_step(few["step"], few["validation_accuracy"], level) == whole
        below = first_step_below(columns["step"], values, level - 1e-9)
        assert first_step_below(few["step"], few["validation_accuracy"], level - 1e-9) == below
    grokked = first_step(columns["step"], values, 0.95)
    for below in (0.5, 0.95):
        expected = dips_after(grokked, columns["step"], values, below)
        assert dips_after(grokked, few["step"], few["validation_accuracy"], below) == expected
    ours, expected = stability(few["step"], few["validation_accuracy"]), stability(columns["step"], values)
    assert (ours.status, ours.dips) == (expected.status, expected.dips)


@given(shares)
def test_what_is_kept_is_what_the_rule_says(values: list[float]) -> None:
    columns: Columns = {"step": [100 * i for i in range(len(values))], "fsd": values}
    kept = kept_evaluations(columns)
    assert kept == sorted(set(kept))
    assert {0, len(values) - 1} <= set(kept)
    for i, step in enumerate(columns["step"]):
        if i not in kept:
            assert step % EVERY
            assert step > BEGINNING
            levels = [sum(value >= level for level in LEVELS["fsd"]) for value in values[i - 1 : i + 2]]
            assert len(set(levels)) == 1


def test_a_change_of_decay_is_kept() -> None:
    steps = list(range(0, 5001, 100))
    columns: Columns = {"step": steps, "weight_decay": [3.0 if step >= 2300 else 1.0 for step in steps]}
    assert {2200, 2300} <= {steps[i] for i in kept_evaluations(columns)}
    assert 2400 not in {steps[i] for i in kept_evaluations(columns)}


@pytest.fixture(scope="module")
def stored() -> list[RunRecord]:
    return unpack_records(STORED)[::9]


def test_the_events_of_stored_runs_stay(stored: list[RunRecord]) -> None:
    before = after = 0
    for record in stored:
        columns = {name: record.evaluations[name] for name in record.evaluations}
        few = thinned(columns)
        before, after = before + len(columns["step"]), after + len(few["step"])
        whole, ours = timeline_of(columns), timeline_of(few)
        for name in ("memorized", "grokked", "outcome", "first", "last"):
            assert getattr(ours, name) == getattr(whole, name), (record.name, name)
        assert ours.sync.step == whole.sync.step
        assert ours.sync.lead == whole.sync.lead
    assert after < 0.9 * before


def test_the_rule_names_every_level() -> None:
    for name, levels in LEVELS.items():
        assert name in RULE
        assert all(f"{level:g}" in RULE for level in levels)
