"""All events of one run."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from timeline_cases import few, log

from grokscope.errors import InputError
from grokscope.specs import ReadingSpec
from grokscope.timeline import Flag, Lead, LeadStatus, Outcome, Phase, first_step, timeline_of

unmeasured = Lead(LeadStatus.UNMEASURED)


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
    assert (found.grokked, found.evaluated_before) == (2000, 1500)
    assert (found.sync.step, found.sync.lead.steps, found.sync.flags) == (1000, 1000, ())
    assert (found.level.step, found.level.lead.steps) == (2000, 0)  # 0.95 × 0.98 is above 0.9
    assert (found.restricted.step, found.restricted.lead.steps) == (2500, -500)
    assert (found.liberated, found.norm_at_first, found.norm_at_grok) == (1500, 80.0, 23.5)
    assert found.phase_2 == (1500, found.grokked)
    assert replace(found, liberated=found.grokked).phase_2 is replace(found, grokked=None).phase_2 is None
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


def test_a_timeline_rejects_logs_it_cannot_read() -> None:
    with pytest.raises(InputError, match="needs the column validation_accuracy"):
        timeline_of({"step": [0], "train_accuracy": [1.0]})
    with pytest.raises(InputError, match="distinct steps"):
        timeline_of(log(step=[0, 0, 500]))
    with pytest.raises(InputError, match="distinct steps"):
        timeline_of({"step": [], "train_accuracy": [], "validation_accuracy": []})
    with pytest.raises(InputError, match="fsd has 2 rows for 3 steps"):
        timeline_of(log(step=[0, 500, 1000], fsd=[0.1, 0.2]))
