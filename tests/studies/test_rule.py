"""Rules: every condition can hold and fail, for one design or many, says what it asks, and is part of the digest."""

from math import nan
from typing import Any

import numpy as np
import pytest

from grokscope.errors import InputError
from grokscope.studies import Rule, Verdict, rule
from grokscope.studies.rule import Condition

Parts = dict[str, Any]
CASES: list[tuple[Condition, Parts, Parts]] = [
    (rule.above(4), {"value": 5}, {"value": 4}),
    (rule.at_least(5), {"value": 5}, {"value": 4.9}),
    (rule.below(9), {"value": 8}, {"value": 9}),
    (rule.at_most(5), {"value": 5}, {"value": 5.1}),
    (rule.equals(5), {"value": 5}, {"value": 6}),
    (rule.between(4, 6), {"value": 5}, {"value": 7}),
    (rule.within(0.2, of=6), {"value": 5}, {"value": 4.7}),
    (rule.more_than(1 / 2, "grokked"), {"grokked": 6, "n": 10}, {"grokked": 6, "n": 12}),
    (rule.more_than(1, "grokked", operator="="), {"grokked": 6, "n": 6}, {"grokked": 6, "n": 10}),
    (rule.falling("a", "b"), {"a": 2, "b": 1}, {"a": 1, "b": 1}),
    (rule.every(rule.above(0), "a", "b"), {"a": 2, "b": 1}, {"a": 1, "b": 0}),
    (rule.all_of(rule.above(0), rule.above(4)), {"value": 5}, {"value": 3}),
    (rule.any_of(rule.above(9), rule.above(4)), {"value": 5}, {"value": 3}),
]


@pytest.mark.parametrize(("condition", "holds", "fails"), CASES, ids=lambda one: getattr(one, "kind", ""))
def test_every_condition_can_hold_and_fail_and_nothing_is_true_of_nan(
    condition: Condition, holds: Parts, fails: Parts
) -> None:
    assert condition.holds(holds)
    assert not condition.holds(fails)
    assert not condition.holds(dict.fromkeys(holds, nan))


@pytest.mark.parametrize(("condition", "holds", "fails"), CASES, ids=lambda one: getattr(one, "kind", ""))
def test_many_designs_are_decided_at_once_as_each_alone(condition: Condition, holds: Parts, fails: Parts) -> None:
    both = {name: np.array([[holds[name]], [fails[name]], [nan]], dtype=float) for name in holds}
    assert condition.holds(both).tolist() == [[True], [False], [False]]


def test_conditions_that_differ_are_described_differently() -> None:
    assert len({condition.describe() for condition, _, _ in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("share", "fewest", "verdict"),
    [
        (0.2, 32, Verdict.REPRODUCED),
        (0.1999, 32, Verdict.UNLIKELY),
        (0.01, 32, Verdict.UNLIKELY),
        (0.0099, 32, Verdict.REFUTED),
        (0.0, 16, Verdict.REFUTED),
        (0.0, 15, Verdict.UNLIKELY),  # so few runs cannot exclude that often enough others would show it
        (0.5, 2, Verdict.REPRODUCED),
    ],
)
def test_the_share_of_designs_gives_the_verdict(share: float, fewest: int, verdict: Verdict) -> None:
    assert Rule(rule.above(2)).judge(share, fewest) is verdict


def test_thresholds_are_part_of_the_rule_and_in_order() -> None:
    assert Rule(rule.above(2), reproduced=0.5).judge(0.3, 32) is Verdict.UNLIKELY
    with pytest.raises(InputError, match="must be in order"):
        Rule(rule.above(2), reproduced=0.01, refuted=0.2)


def test_text_and_data_follow_the_thresholds() -> None:
    one, other = Rule(rule.above(2)), Rule(rule.above(3))
    assert one.describe() == (
        "A design shows it if the value > 2. Reproduced if at least 20 % of resampled designs show it, refuted if "
        "fewer than 1 %, else unlikely."
    )
    assert one.describe() != other.describe()
    assert one.data != other.data != Rule(rule.above(3), reproduced=0.3).data
    assert Rule(untestable="Nothing could make it false.").describe() == "Not testable: Nothing could make it false."


def test_every_part_is_judged_with_the_number_of_units_and_the_other_parts() -> None:
    parts = {"a": 3, "b": 3, "whole": 3, "n": 3}
    assert rule.every(rule.more_than(1, "value", operator="="), "a", "b").holds(parts)
    assert rule.every(rule.more_than(1, "value", of="whole", operator="="), "a", "b").holds(parts)


def test_a_part_that_is_not_there_is_rejected() -> None:
    misspelt = rule.all_of(rule.above(0, "mean"), rule.every(rule.above(0), "medain"))
    with pytest.raises(InputError, match="names the part 'medain', which is not there; did you mean 'median'"):
        misspelt.holds({"mean": -1, "median": 1})
