"""Speed and time left."""

import pytest

from grokscope.runs import RunOutcome
from grokscope.runs.following import FollowedRun
from grokscope.runs.pace import Pace, Progress
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec, Training

LONG = RunSpec(training=Training(steps=1000))


def seen(step: int, written: float, outcome: str = "unfinished") -> FollowedRun:
    """A run as it stood when its log was written."""
    record = RunRecord(LONG, RunOutcome(outcome), {"step": [0, step]}, {})
    return FollowedRun("one", record, began=0.0, written=written)


def test_speed_is_that_since_the_run_began_and_later_that_of_the_last_minute() -> None:
    pace = Pace()
    pace.note(seen(100, 10.0))
    assert pace.progress([seen(100, 10.0)], 11.0) == Progress(pytest.approx(0.1), pytest.approx(10), pytest.approx(90))
    for step, written in ((200, 40.0), (300, 80.0), (400, 90.0)):
        pace.note(seen(step, written))
    assert pace.progress([seen(400, 90.0)], 91.0).rate == pytest.approx((400 - 200) / (90 - 40))


def test_a_quiet_run_has_no_speed_and_one_that_ended_early_is_done() -> None:
    pace = Pace()
    pace.note(seen(100, 10.0))
    assert pace.progress([seen(100, 10.0)], 100.0) == Progress(pytest.approx(0.1), None, None)
    assert pace.progress([seen(100, 10.0, "grokked")], 11.0) == Progress(1.0, None, None)


def test_a_rewound_run_is_timed_from_where_it_continues() -> None:
    pace = Pace()
    for step, written in ((100, 10.0), (200, 20.0), (100, 30.0), (150, 40.0)):
        pace.note(seen(step, written))
    assert pace.progress([seen(150, 40.0)], 41.0).rate == pytest.approx(50 / 10)
