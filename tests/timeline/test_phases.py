"""The two phases."""

import math

import pytest

from grokscope.timeline import Phase, first_step, liberation_step, phase_at, rank_one_step
from paper_tables import RANK


def test_table_5s_phases() -> None:
    steps, rank = [row[0] for row in RANK], [float(row[2]) for row in RANK]
    grokked = first_step(steps, [row[1] for row in RANK], 0.95)
    liberated = liberation_step(steps, rank, grokked)
    assert (liberated, grokked) == (2500, 4000)
    assert rank_one_step(steps, rank) == 2500
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
