"""Stored verdicts: those that `grokscope reproduce --list` prints are of claims that the studies have."""

import re
from typing import Any

import pytest

from grokscope.studies import Verdict, find_study, verdicts
from grokscope.studies.verdicts import compare_verdicts, count_verdicts, describe_stored, stored_verdicts


def row(name: str, verdict: str, firm: bool = False) -> dict[str, Any]:
    return {"name": name, "verdict": verdict, "firm": firm, "provisional": not firm}


def test_stored_verdicts_are_verdicts_of_as_many_claims_as_the_study_has() -> None:
    for name, counts in stored_verdicts().items():
        assert {*counts} <= {str(verdict) for verdict in Verdict}
        assert sum(counts.values()) == len(find_study(name).claims)


def test_counts_are_ordered_and_sum_to_the_rows() -> None:
    rows = [{"verdict": word} for word in ("unlikely", "refuted", "refuted", "not testable", "refuted")]
    assert next(iter(count_verdicts(rows).items())) == ("refuted", 3)
    assert sum(count_verdicts(rows).values()) == len(rows)


STORED = [row("early", "refuted", firm=True), row("late", "reproduced", firm=True), row("open", "refuted")]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (["refuted", "reproduced", "refuted"], "of 3 claims of 3, 3 of them provisional; 3 are those .*: none$"),
        (["unlikely", "not testable", "reproduced"], "of 2 claims of 3, 2 of them provisional; 0 are those .*: none$"),
        (["reproduced", "reproduced", "reproduced"], "1 are those of the stored results, and firm ones .*: early$"),
        (["not testable", "refuted", "refuted"], "1 are those of the stored results, and firm ones .*: late$"),
    ],
)
def test_a_firm_verdict_that_is_reversed_is_named(
    found: list[str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "_stored", lambda: {"mine": describe_stored(STORED)})
    said = compare_verdicts("mine", [row(one["name"], verdict) for one, verdict in zip(STORED, found, strict=True)])
    assert re.search(expected, said), said
