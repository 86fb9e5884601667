"""Which claims wait for which part: a claim waits for the last of all its runs, and for no others."""

import pytest
import small_study

from grokscope.studies import Estimand, find_study
from grokscope.studies.estimand import unit_of
from grokscope.studies.part_claims import claims_by_part, planned_records
from grokscope.studies.parts import Part, parts_of
from grokscope.studies.study import Study


@pytest.fixture(scope="module")
def paper() -> Study:
    return find_study("synchronization")


@pytest.fixture(scope="module")
def parts(paper: Study) -> list[Part]:
    return parts_of(paper, "tf32")


@pytest.fixture(scope="module")
def decided(paper: Study, parts: list[Part]) -> dict[int, tuple[str, ...]]:
    return claims_by_part(paper, parts)


def test_a_claim_is_in_the_part_that_has_its_last_run(decided: dict[int, tuple[str, ...]], parts: list[Part]) -> None:
    experiments = {
        part.number: {member.experiment for own in part.plan.made_for for member in own if member.experiment != "clock"}
        for part in parts
    }
    place = {name: number for number, names in decided.items() for name in names}
    for name, experiment in {
        "no-false-alarms": "negatives",
        "norm-led-down": "norms",
        "set-ups-rescue": "sensitivity",
    }.items():
        assert place[name] == max(number for number, own in experiments.items() if experiment in own)


def test_every_claim_that_runs_decide_is_in_one_part(decided: dict[int, tuple[str, ...]], paper: Study) -> None:
    found = [name for names in decided.values() for name in names]
    assert sorted(found) == sorted(claim.name for claim in paper.claims if claim.rule.shown is not None)


def test_the_plan_has_32_units_of_every_stratum_that_a_claim_rests_on(paper: Study, parts: list[Part]) -> None:
    records = planned_records(parts)
    for claim in paper.claims:
        if claim.rule.shown is not None:
            assert isinstance(claim.estimand, Estimand)
            for stratum in claim.estimand.strata:
                units = {unit_of(name, claim.estimand.unit)[0] for name in stratum.runs.select(records)}
                assert len(units) >= 32, (claim.name, stratum.name)


def test_the_first_half_hour_has_most_claims_and_no_part_takes_nine_minutes(
    decided: dict[int, tuple[str, ...]], parts: list[Part]
) -> None:
    assert max(part.seconds for part in parts) < 540
    spent, early = 0.0, 0
    for part in parts:
        spent += part.seconds
        early += len(decided[part.number]) * (spent <= 30 * 60)
    assert early > 0.85 * sum(map(len, decided.values()))


def test_a_small_study_has_its_claim_in_its_only_part() -> None:
    assert claims_by_part(small_study.STUDY, parts_of(small_study.STUDY, "float32")) == {1: ("norm-positive",)}
