"""Names within a study: one that nothing has is told apart before there are runs, and not after."""

from dataclasses import replace
from typing import Any

import pytest
from small_study import LAST_NORM, STUDY

from grokscope.errors import InputError
from grokscope.studies import Claim, Rule, Selection, Stratum, Study, find_study, judge, made_up, rule, study_names
from grokscope.studies.message import Sentence, write_message
from grokscope.studies.reduction import mean

CLAIM = STUDY.claims[0]


def with_claim(**changes: Any) -> Study:
    return replace(STUDY, claims=(replace(CLAIM, **changes),))


def with_sentence(text: str, claims: tuple[str, ...] = ("norm-positive",), condition: Any = None) -> Study:
    return replace(STUDY, message=(Sentence("What holds", claims, ((condition, text),)),))


@pytest.mark.parametrize("name", study_names())
def test_the_studies_of_the_package_name_what_they_have(name: str) -> None:
    assert find_study(name).name == name


@pytest.mark.parametrize(
    ("estimand", "sentence"),
    [
        (
            {"strata": (Stratum("all", Selection(("tniy",))),)},
            "claim norm-positive of small is about the experiment 'tniy', which is not there; did you mean 'tiny'?",
        ),
        (
            {"parts": {"norm": mean("norm", "tiny run")}},
            "part norm of claim norm-positive of small is of the stratum 'tiny run', which is not there; did you mean",
        ),
        ({"effect": ("nrom", ".1f")}, "the effect of claim norm-positive of small names the part 'nrom'"),
        ({"text": "{nrom:.1f} of {n}"}, "the text of claim norm-positive of small names the part 'nrom'"),
    ],
)
def test_a_claim_with_a_name_that_nothing_has_is_rejected(estimand: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence.replace("?", r"\?")):
        with_claim(estimand=replace(LAST_NORM, **estimand))


def test_a_rule_names_parts_unless_more_are_derived() -> None:
    other = Rule(rule.all_of(rule.above(0, "norm"), rule.above(0, "ratio")))
    with pytest.raises(InputError, match="the rule of claim norm-positive of small names the part 'ratio'"):
        with_claim(rule=other)
    derived = replace(LAST_NORM, derive=lambda parts: {"ratio": parts["norm"]})
    assert with_claim(rule=other, estimand=derived).claims[0].rule == other
    assert with_claim(rule=Rule(untestable="why")).claims[0].rule.shown is None


def test_a_sentence_with_a_number_that_nothing_has_is_rejected() -> None:
    assert with_sentence("{norm-positive|norm:.1f} of {norm-positive|n}, {norm-positive|norm:n}")
    with pytest.raises(InputError, match="a sentence of small is about the claim 'norm-postive', which is not there"):
        with_sentence("", ("norm-postive",))
    with pytest.raises(InputError, match="a sentence of small has a number of the claim 'other'"):
        with_sentence("{other|norm:.1f}")
    with pytest.raises(InputError, match="a sentence of small names the part 'nrom', which is not there"):
        with_sentence("", condition=rule.above(0, "norm-positive|nrom"))


def test_names_with_dots_are_names() -> None:
    dotted = replace(LAST_NORM, parts={"at 0.5": mean("norm")}, text="{at 0.5:.0f}", effect=("at 0.5", ".0f"))
    claim: Claim = replace(CLAIM, name="held-at-0.5", estimand=dotted, rule=Rule(rule.above(0, "at 0.5")))
    sentence = Sentence("What holds", ("held-at-0.5",), ((None, "It is {held-at-0.5|at 0.5:.0f}."),))
    study = replace(STUDY, claims=(claim,), message=(sentence,))
    evidence = made_up(study, {"*": (3, None)}, norm=30.0)
    rows = write_message(study.message, study.claims, {claim.name: judge(claim, evidence)}, evidence)
    assert rows[0]["text"] == "It is 30 [30, 30]."
