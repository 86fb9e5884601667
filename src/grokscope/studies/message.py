"""What a study says, in plain sentences: what holds, what does not, what is not specific, what acts, what is open.

A sentence's numbers are parts of claims over all runs, with their intervals and n; which of its wordings is used is
decided by conditions on the same numbers, so that no sentence says more than its quantity.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, Literal

import numpy as np

from grokscope.stats import Estimate
from grokscope.studies.claim import Claim, Finding, Template, format_part
from grokscope.studies.estimand import Estimand, Sample
from grokscope.studies.evidence import Evidence
from grokscope.studies.quantity import Quantity
from grokscope.studies.resampling import effects_of
from grokscope.studies.rule import Condition, Verdict

__all__ = ["TOPICS", "Sentence", "Topic", "write_message"]

Topic = Literal[
    "What holds", "What does not hold", "What is not specific", "What acts", "What is open", "How sure this is"
]
TOPICS: tuple[Topic, ...] = (
    "What holds",
    "What does not hold",
    "What is not specific",
    "What acts",
    "What is open",
    "How sure this is",
)


@dataclass(frozen=True)
class Sentence:
    """One sentence of a study's message."""

    topic: Topic
    """Under which heading."""
    claims: tuple[str, ...]
    """The claims whose numbers it states; without runs for one of them it is not said."""
    cases: tuple[tuple[Condition | None, str], ...]
    """Wordings, and on which numbers each is right; the first that is right is used, None always is. A number is
    `{claim|part:format}`, which is given with its interval, `{claim|part:n}`, the units that this part rests on, or
    `{claim|n}`, those of the whole claim."""
    is_headline: bool = False
    """Whether it is one of the few that a short summary has."""


def write_message(
    sentences: Sequence[Sentence], claims: Sequence[Claim], findings: Mapping[str, Finding], evidence: Evidence
) -> list[dict[str, Any]]:
    """Each sentence with its topic and its claims, in the order of the topics; those without runs are left out.

    >>> write_message([], [], {}, Evidence({}))
    []
    """
    by_name = {claim.name: claim for claim in claims}
    found = [
        {"topic": one.topic, "text": text, "claims": list(one.claims), "headline": one.is_headline}
        for one in sentences
        if (text := _say(one, by_name, evidence))
    ]
    found += _what_is_open(claims, findings)
    found += _how_sure(claims, findings)
    return sorted(found, key=lambda row: TOPICS.index(row["topic"]))


def _say(sentence: Sentence, claims: Mapping[str, Claim], evidence: Evidence) -> str:
    """The wording that its numbers allow; nothing where a number is not known."""
    numbers: dict[str, Any] = {}
    for name in sentence.claims:
        estimand = claims[name].estimand
        if isinstance(estimand, Quantity):
            measured = evidence.measure(estimand)
            if measured.missing:
                return ""
            numbers |= {f"{name}|{part}": one for part, one in measured.parts.items()} | {f"{name}|n": measured.n}
            continue
        sample = evidence.sample(estimand)
        wanted = _parts_named(sentence, name)
        if not all(sample.units.values()):
            return ""
        numbers[f"{name}|n"] = sample.n
        numbers |= {
            f"{name}|{part}": replace(found, items=_units_of(estimand, sample, part))
            for part, found in effects_of(estimand, sample, wanted).items()
        }
    values = {name: one.value if isinstance(one, Estimate) else one for name, one in numbers.items()}
    if any(isnan(value) for value in values.values()):
        return ""
    for condition, text in sentence.cases:
        if condition is None or bool(condition.holds(values)):
            return _Numbers().vformat(text, (), numbers)
    return ""


def _parts_named(sentence: Sentence, claim: str) -> tuple[str, ...]:
    """The parts of a claim that a sentence's wordings and conditions name."""
    pattern = re.compile(rf"\{{{re.escape(claim)}\|([^:}}]+)")
    found = {part for _, text in sentence.cases for part in pattern.findall(text)}
    for condition, _ in sentence.cases:
        names = condition.named_parts if condition is not None else set()
        found |= {name.partition("|")[2] for name in names if name.startswith(f"{claim}|")}
    return tuple(sorted(found - {"n"}))


def _units_of(estimand: Estimand, sample: Sample, part: str) -> int:
    """Units that a part rests on: those of its strata of which it is defined; of a derived part all."""
    reduction = estimand.parts.get(part)
    if reduction is None:
        return sample.n
    return sum(
        int((~np.isnan(columns[reduction.column])).sum())
        for stratum, columns in sample.values.items()
        if reduction.column in columns and (not reduction.strata or stratum in reduction.strata)
    )


class _Numbers(Template):
    def format_field(self, value: Any, format_spec: str) -> str:
        if not isinstance(value, Estimate):
            return format(value, ",")
        if format_spec == "n":
            return f"{value.items:,}"
        shown, low, high = (format_part(end, format_spec) for end in (value.value, value.low, value.high))
        return shown if isnan(value.low) else f"{shown} [{low}, {high}]"


def _what_is_open(claims: Sequence[Claim], findings: Mapping[str, Finding]) -> list[dict[str, Any]]:
    """The questions of which no runs are stored."""
    waiting = [
        claim
        for claim in claims
        if claim.rule.shown is not None and findings[claim.name].verdict is Verdict.NOT_TESTABLE
    ]
    return [
        {
            "topic": "What is open",
            "text": f"Not decided yet: {claim.statement}",
            "claims": [claim.name],
            "headline": False,
        }
        for claim in waiting
    ]


def _how_sure(claims: Sequence[Claim], findings: Mapping[str, Finding]) -> list[dict[str, Any]]:
    """How many verdicts there are, and how many hang on which seeds were trained."""
    judged = [findings[claim.name] for claim in claims if findings[claim.name].share is not None]
    if not judged:
        return []
    firm, provisional = sum(one.is_firm for one in judged), sum(one.is_provisional for one in judged)
    text = (
        f"{firm} of {len(judged)} verdicts are firm: at least 95 % of bootstraps over our runs give the same one, "
        "and each configuration has at least 32 runs. The others are open"
        f"{f'; {provisional} rest on fewer than 16 runs' if provisional else ''}."
    )
    own = [one for one in judged if one.own_shown is not None]
    agree = sum(one.own_shown == (one.verdict is Verdict.REPRODUCED) for one in own)
    more = (
        f"Of {len(own)} claims that also have the paper's own seeds, these alone would have said the same of {agree}: "
        f"training is chaotic, and few seeds decide little."
    )
    found = [{"topic": "How sure this is", "text": text, "claims": [], "headline": False}]
    return found + ([{"topic": "How sure this is", "text": more, "claims": [], "headline": False}] if own else [])
