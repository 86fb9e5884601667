"""Stored verdicts: those that `grokscope reproduce --list` prints are of claims that the studies have."""

from grokscope.studies import Verdict, find_study
from grokscope.studies.verdicts import count_verdicts, stored_verdicts


def test_stored_verdicts_are_verdicts_of_as_many_claims_as_the_study_has() -> None:
    for name, counts in stored_verdicts().items():
        assert {*counts} <= {str(verdict) for verdict in Verdict}
        assert sum(counts.values()) == len(find_study(name).claims)


def test_counts_are_ordered_and_sum_to_the_rows() -> None:
    rows = [{"verdict": word} for word in ("unlikely", "refuted", "refuted", "not testable", "refuted")]
    assert next(iter(count_verdicts(rows).items())) == ("refuted", 3)
    assert sum(count_verdicts(rows).values()) == len(rows)
