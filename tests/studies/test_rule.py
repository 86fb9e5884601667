"""Rules: every condition can hold and fail, says what it asks, and is part of the digest."""

from dataclasses import asdict
from math import nan

import pytest

from grokscope.errors import InputError
from grokscope.stats import Estimate
from grokscope.studies import Measured, Rule, Verdict, rule
from grokscope.studies.rule import Condition

ESTIMATE = Measured.of(Estimate(5.0, 2.0, 8.0, 10), n=10, grokked=6)
CASES: list[tuple[Condition, Measured, Measured]] = [
    (rule.above(4), ESTIMATE, Measured.of(4)),
    (rule.above(1, end="low"), ESTIMATE, Measured.of(5)),
    (rule.at_least(5), ESTIMATE, Measured.of(4.9)),
    (rule.below(9, end="high"), ESTIMATE, Measured.of(Estimate(5.0, 2.0, 9.0, 3))),
    (rule.at_most(5), ESTIMATE, Measured.of(5.1)),
    (rule.equals(5), ESTIMATE, Measured.of(6)),
    (rule.between(4, 6), ESTIMATE, Measured.of(7)),
    (rule.within(0.2, of=6), ESTIMATE, Measured.of(4.7)),
    (rule.contains(7), ESTIMATE, Measured.of(7)),
    (rule.more_than(1 / 2, "grokked"), ESTIMATE, Measured.of(1, n=12, grokked=6)),
    (rule.more_than(1, "grokked", operator="="), Measured.of(1, n=6, grokked=6), ESTIMATE),
    (rule.falling("a", "b"), Measured({"a": 2, "b": 1}), Measured({"a": 1, "b": 1})),
    (rule.every(rule.above(0), "a", "b"), Measured({"a": 2, "b": 1}), Measured({"a": 1, "b": 0})),
    (rule.all_of(rule.above(0), rule.above(4)), ESTIMATE, Measured.of(3)),
    (rule.any_of(rule.above(9), rule.above(4)), ESTIMATE, Measured.of(3)),
]


@pytest.mark.parametrize(("condition", "holds", "fails"), CASES, ids=lambda one: getattr(one, "kind", ""))
def test_every_condition_can_hold_and_fail_and_nothing_is_true_of_nan(
    condition: Condition, holds: Measured, fails: Measured
) -> None:
    assert condition.holds(holds)
    assert not condition.holds(fails)
    assert not condition.holds(Measured({"value": nan, "a": nan, "b": nan, "grokked": nan}, n=1))
    assert not condition.holds(Measured({}, n=1))


def test_conditions_that_differ_are_described_differently() -> None:
    assert len({condition.describe() for condition, _, _ in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        (Measured.of(3), Verdict.REPRODUCED),
        (Measured.of(1), Verdict.PARTLY),
        (Measured.of(-1), Verdict.NOT),
        (Measured.of(nan), Verdict.NOT),
        (Measured.lacking(1, 2, "runs"), Verdict.TOO_FEW),
    ],
)
def test_a_rule_gives_the_first_verdict_whose_condition_holds(measured: Measured, verdict: Verdict) -> None:
    assert Rule(rule.above(2), rule.above(0)).judge(measured) is verdict


def test_what_no_run_can_decide_is_never_decided() -> None:
    for measured in (Measured.of(3), Measured.lacking(0, 1, "runs")):
        assert Rule(contradiction="It says two things.").judge(measured) is Verdict.INCONSISTENT
        assert Rule(untestable="Nothing could make it false.").judge(measured) is Verdict.NOT_TESTABLE
    assert "two things" in Rule(contradiction="It says two things.").describe()


def test_text_and_data_follow_the_thresholds() -> None:
    one, other = Rule(rule.above(2), rule.above(0)), Rule(rule.above(3), rule.above(0))
    assert one.describe() == "Reproduced if the value > 2; partly if the value > 0; else not reproduced."
    assert one.describe() != other.describe()
    assert one.data != other.data
    assert one.data == asdict(one)


def test_every_part_is_judged_with_the_number_of_runs_and_the_other_parts() -> None:
    measured = Measured({"a": 3, "b": 3, "whole": 3}, n=3)
    assert rule.every(rule.more_than(1, "value", operator="="), "a", "b").holds(measured)
    assert rule.every(rule.more_than(1, "value", of="whole", operator="="), "a", "b").holds(measured)


def test_a_part_that_the_quantity_does_not_have_is_rejected() -> None:
    misspelt = Rule(rule.all_of(rule.above(0, "mean"), rule.every(rule.above(0), "medain")))
    with pytest.raises(
        InputError, match="names the part 'medain', which the quantity does not have; did you mean 'med"
    ):
        misspelt.judge(Measured({"mean": -1, "median": 1}))
    assert misspelt.judge(Measured(note="undefined")) is Verdict.NOT
