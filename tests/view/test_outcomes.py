"""The words for outcomes."""

from math import nan

import pytest

from grokscope.runs import RunOutcome, RunRecord
from grokscope.specs import RunSpec
from grokscope.timeline import stability
from grokscope.view.outcomes import describe_stability, memorized_before, why_without_fsd


def test_a_dip_that_has_not_ended_has_no_length() -> None:
    found = stability([0, 1000, 3000], [0.0, 1.0, 0.5])
    assert describe_stability(found).endswith("it fell below 95 % in 1 dip, at the last evaluation of these.")


def test_a_fork_memorised_before_it_if_not_after() -> None:
    assert memorized_before(1000, 1000)
    assert not memorized_before(1100, 1000)
    assert not memorized_before(None, 1000)
    assert not memorized_before(0, None)


@pytest.mark.parametrize(
    ("task", "named"),
    [
        ("latin7", "latin7"),
        ("gone/mine.npz#0123456789abcdef", "mine.npz"),  # the file is elsewhere
        ("gone/mine.py:rows#0123456789abcdef", "mine.py:rows"),
    ],
)
def test_what_has_no_basis_says_so(task: str, named: str) -> None:
    record = RunRecord(RunSpec(task), RunOutcome(), {"step": [0, 1], "fsd": [nan, nan]}, {})
    assert why_without_fsd(record) == f"{named} has no basis to read activations in"
    seen = RunRecord(RunSpec(task), RunOutcome(), {"step": [0, 1], "fsd": [nan, 0.5]}, {})
    assert why_without_fsd(seen) == ""


@pytest.mark.parametrize("task", ["add_mod7", "parity_n4_k2", "table:gone.json#0123456789abcdef"])
def test_what_has_a_basis_needs_no_reason(task: str) -> None:
    assert why_without_fsd(RunRecord(RunSpec(task), RunOutcome(), {"step": [0], "fsd": [nan]}, {})) == ""
