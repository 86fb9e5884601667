import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grokscope.errors import InputError
from grokscope.specs import ReadingSpec
from grokscope.timeline import (
    Flag,
    Lead,
    LeadStatus,
    Outcome,
    Phase,
    first_step,
    first_step_below,
    lead,
    level_step,
    liberation_step,
    outcome,
    phase_at,
    timeline_of,
)
from paper_tables import ADDITION, ARCH_ABLATION, CROSS, EXLOSS, RANK

shares = st.lists(st.floats(0, 1), min_size=1, max_size=12)
few = settings(max_examples=25, deadline=None)
unmeasured = Lead(LeadStatus.UNMEASURED)


def log(**columns: Sequence[float]) -> dict[str, Any]:
    """A log with looks every 500 steps; a run that memorises at once and never groks, where not said otherwise."""
    size = len(next(iter(columns.values())))
    usual = {
        "step": [500 * i for i in range(size)],
        "train_accuracy": [0.1, *[1.0] * (size - 1)],
        "validation_accuracy": [0.1] * size,
    }
    return usual | columns


@given(shares, st.floats(0, 1))
def test_first_step_equals_a_loop(values: list[float], at_least: float) -> None:
    steps = [100 * i for i in range(len(values))]
    expected = None
    for step, value in zip(steps, values, strict=True):
        if value >= at_least and expected is None:
            expected = step
    assert first_step(steps, values, at_least) == expected


def test_a_threshold_is_reached_by_being_met() -> None:
    assert first_step([0, 100, 200], [0.0, 0.95, 1.0], 0.95) == 100
    assert first_step([0, 100], [0.9499, 0.9499], 0.95) is None
    assert first_step([0, 100, 200], [0.2, 0.99, 0.1], 0.95) == 100  # that it falls again does not matter
    assert first_step([], [], 0.95) is None


def test_nan_reaches_nothing() -> None:
    assert first_step([0, 100, 200], [math.nan, math.nan, 1.0], 0.5) == 200
    assert first_step([0], [math.nan], -1.0) is None


def test_steps_and_values_must_pair() -> None:
    with pytest.raises(ValueError, match="zip"):
        first_step([0, 100], [0.1], 0.5)


@pytest.mark.parametrize(
    ("train", "validation", "failed_at", "expected"),
    [
        ([0.1, 1.0, 1.0], [0.1, 0.2, 0.95], None, Outcome.GROKKED),
        ([0.1, 1.0, 1.0], [0.1, 0.96, 0.5], None, Outcome.GROKKED),  # 0.5 is not below a half
        ([0.1, 1.0, 1.0], [0.1, 0.96, 0.4999], None, Outcome.UNSTABLE_AFTER),
        ([0.1, 1.0, 1.0, 1.0], [0.1, 0.96, 0.1, 1.0], None, Outcome.UNSTABLE_AFTER),  # at any later checkpoint
        ([0.1, 0.2, 0.1], [0.1, 0.97, 0.97], None, Outcome.GROKKED),  # ‡ is for those that never grokked
        ([0.1, 1.0, 0.9], [0.1, 0.2, 0.3], None, Outcome.NEVER),
        ([0.1, 1.0, 0.8999], [0.1, 0.2, 0.3], None, Outcome.UNSTABLE),
        ([0.1, 0.2, 1.0], [0.1, 0.2, 0.9499], None, Outcome.NEVER),
        ([0.1, 1.0, 1.0], [0.1, 1.0, 1.0], 150, Outcome.DIVERGED),
        ([0.1, 1.0, 1.0], [0.1, 1.0, 1.0], 0, Outcome.DIVERGED),
        ([1.0], [1.0], None, Outcome.GROKKED),
    ],
)
def test_outcomes_follow_the_audits_rules(
    train: list[float], validation: list[float], failed_at: int | None, expected: Outcome
) -> None:
    steps = [100 * i for i in range(len(train))]
    assert outcome(steps, train, validation, failed_at) == expected


def test_the_reading_sets_what_counts_as_grokked() -> None:
    lenient, early = ReadingSpec(grokked=0.6), ReadingSpec(grokked=0.4)
    assert outcome([0, 100], [1.0, 1.0], [0.1, 0.7], None) == Outcome.NEVER
    assert outcome([0, 100], [1.0, 1.0], [0.1, 0.7], None, lenient) == Outcome.GROKKED
    # Only what comes later can be a collapse, not the grokking itself.
    assert outcome([0, 100, 200], [1.0, 1.0, 1.0], [0.1, 0.45, 0.6], None, early) == Outcome.GROKKED


@given(shares, st.lists(st.floats(0, 1), min_size=12, max_size=12))
def test_every_run_ends_in_one_way(validation: list[float], train: list[float]) -> None:
    steps = [500 * i for i in range(len(validation))]
    train = train[: len(validation)]
    found = outcome(steps, train, validation, None)
    reached = [i for i, value in enumerate(validation) if value >= 0.95]
    if not reached:
        assert found == (Outcome.UNSTABLE if train[-1] < 0.9 else Outcome.NEVER)
    elif any(value < 0.5 for value in validation[reached[0] :]):
        assert found == Outcome.UNSTABLE_AFTER
    else:
        assert found == Outcome.GROKKED


def test_outcomes_are_sentences() -> None:
    assert [str(kind) for kind in Outcome] == [
        "grokked",
        "grokked, then unstable †",
        "unstable ‡",
        "never within the budget",
        "diverged",
    ]


def test_a_last_measurement_that_is_no_number_means_diverged() -> None:
    assert outcome([0, 100], [0.1, float("nan")], [0.1, float("nan")], None) is Outcome.DIVERGED


# Crossings


@given(shares, st.floats(0, 1), st.integers(0, 4))
@few
def test_a_lasting_crossing_equals_a_loop(values: list[float], at_least: float, persistence: int) -> None:
    steps = [100 * i for i in range(len(values))]
    expected = None
    for i in range(len(values)):
        stays = all(j < len(values) and values[j] >= at_least for j in range(i, i + persistence + 1))
        if stays and expected is None:
            expected = steps[i]
    assert first_step(steps, values, at_least, persistence) == expected
    if persistence == 0:
        assert expected == first_step(steps, values, at_least)


@given(shares, st.floats(0, 1))
@few
def test_asking_for_more_persistence_never_makes_a_crossing_earlier(values: list[float], at_least: float) -> None:
    steps = [100 * i for i in range(len(values))]
    found = [first_step(steps, values, at_least, persistence) for persistence in range(5)]
    late = [math.inf if step is None else step for step in found]
    assert late == sorted(late)


def test_what_was_not_seen_to_last_has_not_lasted() -> None:
    assert first_step([0, 100, 200], [0.1, 0.2, 0.9], 0.8, persistence=1) is None
    assert first_step([0, 100, 200], [0.9, math.nan, 0.9], 0.8, persistence=1) is None
    with pytest.raises(InputError, match="persistence must be at least 0, got -1"):
        first_step([0], [1.0], 0.5, persistence=-1)


@given(shares, st.floats(0, 1), st.integers(0, 2))
@few
def test_falling_to_a_threshold_is_rising_to_it_upside_down(
    values: list[float], at_most: float, persistence: int
) -> None:
    steps = [100 * i for i in range(len(values))]
    below = [1.0 if value <= at_most else 0.0 for value in values]
    assert first_step_below(steps, values, at_most, persistence) == first_step(steps, below, 1.0, persistence)


def test_nan_falls_to_nothing() -> None:
    assert first_step_below([0, 100], [math.nan, 0.5], 0.5) == 100


def test_the_post_grokking_level_is_a_share_of_the_later_mean() -> None:
    steps = [0, 500, 1000, 1500, 2000]
    # After 1,000 the mean is 0.9: the level is 0.855.
    assert level_step(steps, [0.1, 0.86, 0.85, 0.8, 1.0], 1000) == 500
    assert level_step(steps, [0.1, 0.85, 0.854, 0.8, 1.0], 1000) == 2000
    assert level_step(steps, [0.1, 0.85, 0.9, math.nan, 0.9], 1000) == 1000
    assert level_step(steps, [0.1, 0.86, 0.9, 0.8, 1.0], None) is None
    assert level_step(steps, [0.1, 0.86, 0.9, 0.8, 1.0], 2000) is None


def test_the_level_may_be_below_the_threshold_of_synchronisation() -> None:
    columns = log(validation_accuracy=[0.1, 0.2, 0.3, 1.0, 1.0], fsd=[0.1, 0.2, 0.6, 0.62, 0.62])
    found = timeline_of(columns)
    assert (found.sync.step, found.level.step) == (None, 1000)
    assert found.level.lead.steps == 500


# Leads


@pytest.mark.parametrize("name", CROSS)
def test_the_printed_leads_and_precursors(name: str) -> None:
    row = CROSS[name]
    found = lead(row.grok, row.sync, last=15_000)
    assert found.steps == row.lead
    assert found.is_precursor == (name != "mult_mod97_s42")
    assert found.sign == (-1 if name == "mult_mod97_s42" else 1)


def test_the_printed_ties_and_architectures() -> None:
    ties = [lead(grok, sync, 15_000).status for grok, _, _, sync, _ in EXLOSS.values()]
    assert ties.count(LeadStatus.TIES) == 8
    assert ties.count(LeadStatus.LAGS) == 1
    found = {name: lead(grok, sync, 15_000) for name, (grok, sync, _) in ARCH_ABLATION.items()}
    assert [found[name].steps for name in ARCH_ABLATION] == [printed for *_, printed in ARCH_ABLATION.values()]
    assert found["2-layer MLP-only"] == Lead(LeadStatus.NO_GROKKING)
    # One run, two sync steps: Table 2 and Table 8 differ about it.
    assert ADDITION["add_mod97_s42"].lead != found["2-layer standard"].steps


def test_grokking_without_the_crossing_is_a_negative_of_unknown_size() -> None:
    found = lead(3000, None, last=15_000)
    assert (found.status, found.steps, found.less_than) == (LeadStatus.NEVER, None, -12_000)
    assert (found.is_precursor, found.sign, found.lag) == (False, -1, (12_000, False))
    assert lead(3000, 2000, 15_000).lag == (-1000, True)
    nothing = lead(None, 500, 15_000)
    assert (nothing.is_precursor, nothing.sign, nothing.lag, nothing.steps) == (False, None, None, None)


# Phases


def test_table_5s_phases() -> None:
    steps, rank = [row[0] for row in RANK], [float(row[2]) for row in RANK]
    grokked = first_step(steps, [row[1] for row in RANK], 0.95)
    liberated = liberation_step(steps, rank, grokked)
    assert (liberated, grokked) == (2500, 4000)
    named = {"1": Phase.FORMATION, "2": Phase.LIBERATION, "Grokking": Phase.GROKKING, "post-grokking": Phase.AFTER}
    assert [phase_at(step, liberated, grokked) for step in steps] == [named[row[4]] for row in RANK]


def test_a_rank_that_never_reaches_1_starts_phase_2_at_its_later_value() -> None:
    steps = [0, 500, 1000, 1500, 2000, 2500]
    assert liberation_step(steps, [7.0, 5.0, 2.0, 3.0, 2.0, 2.0], 1500) == 1000  # as p = 113 does
    assert liberation_step(steps, [7.0, 5.0, 2.0, 3.0, 2.0, 2.0], None) is None
    assert liberation_step(steps, [7.0, 5.0, 2.0, 3.0, 2.0, 2.0], 2500) is None  # nothing was seen later
    assert liberation_step(steps, [7.0, 5.0, 2.0, 1.0, 2.0, 2.0], None) == 1500
    assert liberation_step(steps, [7.0, 3.0, 4.0, 3.0, 2.0, 3.0], 1000) == 500  # the median later, not the least
    assert liberation_step(steps, [math.nan] * 6, 1500) is None


@pytest.mark.parametrize("liberated", [None, 1500, 2000])
def test_without_a_start_before_grokking_there_is_no_phase_2(liberated: int | None) -> None:
    found = [phase_at(step, liberated, 1500) for step in (0, 1000, 1500, 2000)]
    assert found == [Phase.FORMATION, Phase.FORMATION, Phase.GROKKING, Phase.AFTER]


def test_a_run_that_never_groks_stays_in_phase_2() -> None:
    assert [phase_at(step, 500, None) for step in (0, 500, 9000)] == [
        Phase.FORMATION,
        Phase.LIBERATION,
        Phase.LIBERATION,
    ]


# The whole timeline


def test_a_timeline_reads_every_event_of_a_log() -> None:
    found = timeline_of(
        log(
            train_accuracy=[0.1, 1.0, 1.0, 1.0, 1.0, 1.0],
            validation_accuracy=[0.0, 0.1, 0.2, 0.3, 0.97, 1.0],
            fsd=[0.2, 0.5, 0.81, 0.9, 0.96, 0.98],
            rank=[6.0, 4.0, 2.0, 1.0, 1.0, 1.0],
            norm=[80.0, 60.0, 40.0, 30.0, 23.5, 23.0],
            restricted_loss=[4.6, 4.0, 3.0, 1.0, 0.6, 0.5],
        )
    )
    assert found.outcome is Outcome.GROKKED
    assert (found.first, found.last, found.memorized) == (0, 2500, 500)
    assert (found.grokked, found.looked_before) == (2000, 1500)
    assert (found.sync.step, found.sync.lead.steps, found.sync.flags) == (1000, 1000, ())
    assert (found.level.step, found.level.lead.steps) == (2000, 0)  # 0.95 × 0.98 is above 0.9
    assert (found.restricted.step, found.restricted.lead.steps) == (2500, -500)
    assert (found.liberated, found.norm_at_first, found.norm_at_grok) == (1500, 80.0, 23.5)
    phases = [found.phase(step) for step in (1000, 1500, 2000, 2500)]
    assert phases == [Phase.FORMATION, Phase.LIBERATION, Phase.GROKKING, Phase.AFTER]
    assert found.phase(1000, by="fsd") is Phase.LIBERATION


def test_the_reading_and_the_group_threshold_are_obeyed() -> None:
    columns = log(validation_accuracy=[0.1, 0.6, 0.7, 1.0], fsd=[0.1, 0.55, 0.4, 0.9])
    assert timeline_of(columns).sync.step == 1500
    assert timeline_of(columns, sync_at=ReadingSpec().fsd_gen_sync).sync.step == 500
    assert timeline_of(columns, ReadingSpec(fsd_sync=0.4)).sync.step == 500
    assert timeline_of(columns, ReadingSpec(fsd_sync=0.4), persistence=2).sync.step == 500
    assert timeline_of(columns, ReadingSpec(fsd_sync=0.5), persistence=1).sync.step is None
    assert timeline_of(columns, ReadingSpec(grokked=0.6)).grokked == 500
    assert timeline_of(columns, failed_at=1600).outcome is Outcome.DIVERGED


def test_early_crossings_are_flagged() -> None:
    at_start = timeline_of(log(fsd=[0.9, 0.9, 0.9]))
    assert at_start.sync.flags == (Flag.AT_START, Flag.BEFORE_MEMORIZED)
    early = timeline_of(log(train_accuracy=[0.1, 0.5, 1.0], fsd=[0.1, 0.9, 0.9]))
    assert early.sync.flags == (Flag.BEFORE_MEMORIZED,)
    with_it = timeline_of(log(train_accuracy=[0.1, 1.0, 1.0], fsd=[0.1, 0.9, 0.9]))
    assert with_it.sync.flags == ()
    never_learnt = timeline_of(log(train_accuracy=[0.1, 0.1, 0.1], fsd=[0.1, 0.1, 0.9]))  # MLP-only's artefact
    assert (never_learnt.sync.flags, never_learnt.outcome) == ((Flag.BEFORE_MEMORIZED,), Outcome.UNSTABLE)
    forked = timeline_of(log(step=[1000, 1100, 1200], train_accuracy=[1.0] * 3, fsd=[0.84, 0.9, 0.9]))
    assert (forked.first, forked.sync.flags) == (1000, (Flag.AT_START,))


def test_what_was_not_measured_is_not_said_to_have_failed() -> None:
    bare = timeline_of(log(validation_accuracy=[0.1, 0.2, 1.0, 1.0]))
    assert [bare.sync.lead, bare.level.lead, bare.restricted.lead] == [unmeasured] * 3
    assert (unmeasured.sign, unmeasured.lag, unmeasured.is_precursor) == (None, None, False)
    assert math.isnan(bare.norm_at_first)
    assert math.isnan(bare.norm_at_grok)
    # Grokked at its last look: the level after grokking is not known.
    ended = timeline_of(log(validation_accuracy=[0.1, 0.2, 1.0], fsd=[0.1, 0.9, 0.9]))
    assert (ended.sync.lead.steps, ended.level.lead) == (500, unmeasured)


def test_a_measure_that_ends_as_nan_is_censored_at_its_last_number() -> None:
    found = timeline_of(log(validation_accuracy=[0.1, 1.0, 1.0, 1.0, 1.0], fsd=[0.1, 0.2, 0.3, math.nan, math.nan]))
    assert found.sync.lead == Lead(LeadStatus.NEVER, less_than=-500)
    undefined = timeline_of(log(validation_accuracy=[0.1, 1.0, 1.0], fsd=[math.nan] * 3))
    assert undefined.sync.lead == Lead(LeadStatus.NEVER, less_than=500)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8),
    st.permutations(range(8)),
)
@few
def test_a_timeline_does_not_know_the_order_of_rows(rows: list[tuple[float, float, float]], order: list[int]) -> None:
    train, validation, fsd = (list(column) for column in zip(*rows, strict=True))
    columns = log(train_accuracy=train, validation_accuracy=validation, fsd=fsd, norm=[1.0] * len(rows))
    shuffled = [i for i in order if i < len(rows)]
    arrays = {name: np.array(values)[shuffled] for name, values in columns.items()}
    reading = ReadingSpec(grokked=0.6, fsd_sync=0.5)
    plain, other = timeline_of(columns, reading), timeline_of(arrays, reading)
    assert repr(other) == repr(plain)  # NaN equals itself in writing only
    assert plain.grokked == first_step(columns["step"], validation, 0.6)


def test_a_timeline_refuses_logs_it_cannot_read() -> None:
    with pytest.raises(InputError, match="needs the column validation_accuracy"):
        timeline_of({"step": [0], "train_accuracy": [1.0]})
    with pytest.raises(InputError, match="distinct steps"):
        timeline_of(log(step=[0, 0, 500]))
    with pytest.raises(InputError, match="distinct steps"):
        timeline_of({"step": [], "train_accuracy": [], "validation_accuracy": []})
    with pytest.raises(InputError, match="fsd has 2 rows for 3 steps"):
        timeline_of(log(step=[0, 500, 1000], fsd=[0.1, 0.2]))
