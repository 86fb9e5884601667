"""Every rule can hold and can fail: planted runs exist on which a claim is reproduced, and others on which not."""

import re
from dataclasses import replace
from math import nan

import pytest
from lifelike import lifelike
from paper_runs import evidence
from planted_claims import world

from grokscope.runs.records import RunRecord
from grokscope.studies import Evidence, Finding, Verdict, judge, resampling
from grokscope.studies.synchronization import STUDY

CLAIMS = {claim.name: claim for claim in STUDY.claims}
TESTABLE = [name for name, claim in CLAIMS.items() if claim.rule.shown is not None]


@pytest.fixture(autouse=True)
def few_designs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as tell a fifth of the designs from none."""
    for name, number in {"DESIGNS": 200, "WORLDS": 20, "WITHIN": (10, 20), "EFFECTS": 20}.items():
        monkeypatch.setattr(resampling, name, number)


def finding(name: str, follows: bool) -> Finding:
    return judge(CLAIMS[name], world(name, follows))


@pytest.mark.parametrize("name", TESTABLE)
def test_planted_runs_exist_that_show_a_claim_and_others_that_do_not(name: str) -> None:
    shown, other = finding(name, True), finding(name, False)
    assert shown.share is not None
    assert other.share is not None
    enough = CLAIMS[name].rule.reproduced  # from so many designs on; a small world may be too small for the verdict
    assert shown.share.value >= enough, (shown.why, shown.own, shown.effect_text)
    assert other.share.value < enough, (other.why, other.own, other.effect_text)
    assert other.verdict in (Verdict.UNLIKELY, Verdict.REFUTED)


@pytest.mark.parametrize("name", TESTABLE)
def test_without_runs_no_claim_is_decided(name: str) -> None:
    found = judge(CLAIMS[name], Evidence({}))
    assert (found.verdict, found.n, found.share) == (Verdict.NOT_TESTABLE, 0, None)
    assert found.why.startswith("No runs stored yet")


@pytest.mark.parametrize("name", sorted(CLAIMS.keys() - {*TESTABLE}))
def test_what_no_run_decides_is_not_testable_whatever_the_runs(name: str) -> None:
    for follows in (True, False):
        found = finding(name, follows)
        assert (found.verdict, found.why) == (Verdict.NOT_TESTABLE, CLAIMS[name].rule.untestable)


def test_contradictions_are_listed_apart_and_their_readings_are_claims() -> None:
    assert len(STUDY.contradictions) > 5
    assert {name for one in STUDY.contradictions for name in one.claims} <= CLAIMS.keys()
    assert not any("contradict" in claim.rule.untestable for claim in CLAIMS.values())


@pytest.mark.parametrize("hollow", ["fsd", "rank", "norm", "answer_share", "validation_accuracy"])
def test_runs_that_measured_nothing_raise_nothing_and_show_nothing_of_it(hollow: str) -> None:
    value = 0.0 if hollow == "validation_accuracy" else nan  # of which nothing groks

    def emptied(record: RunRecord) -> RunRecord:
        return replace(record, evaluations=record.evaluations | {hollow: [value] * len(record.evaluations["step"])})

    records = evidence(True).records
    found = Evidence({name: {run: emptied(one) for run, one in runs.items()} for name, runs in records.items()})
    judged = {name: judge(claim, found) for name, claim in CLAIMS.items()}
    assert all(one.why.endswith(".") for one in judged.values())
    about = {"fsd": "lead-signs", "rank": "rank-collapse", "norm": "norm-minimum"}
    about |= {"answer_share": "amplitude", "validation_accuracy": "fork-order"}
    assert judged[about[hollow]].verdict is not Verdict.REPRODUCED


def test_one_run_of_everything_decides_nothing() -> None:
    records = lifelike(None).records
    one = Evidence({name: dict(list(runs.items())[:1]) for name, runs in records.items()})
    assert {judge(claim, one).verdict for claim in CLAIMS.values()} == {Verdict.NOT_TESTABLE}


def test_a_minus_is_a_minus_and_not_a_hyphen() -> None:
    for name, claim in CLAIMS.items():
        found = finding(name, False)
        texts = [claim.describe_rule(), found.effect_text, found.why, found.own]
        assert not re.search(r"(?<![a-z0-9])-[0-9]", " ".join(texts)), name


def test_every_rule_says_its_runs_its_cadence_and_its_thresholds() -> None:
    for claim in CLAIMS.values():
        described = claim.describe_rule()
        assert "design: " in described
        if claim.rule.shown is not None:
            share = 20 if any(one.drawn for one in claim.estimand.strata) else 50
            assert f"at least {share} %" in described
            assert "fewer than 1 %" in described
        assert claim.estimand.cadence is None or f"every {claim.estimand.cadence} steps" in described
