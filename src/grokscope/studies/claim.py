"""What a claim is, and what can be said of it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from grokscope.stats import Estimate
from grokscope.studies.evidence import Evidence
from grokscope.studies.quantity import Quantity
from grokscope.studies.rule import Rule, Verdict

__all__ = ["Claim", "Finding", "claim_rows", "judge", "rules_digest"]


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, the quantity it is about, and the rule by which it is judged."""

    name: str
    """Short and unique."""
    statement: str
    """What is claimed."""
    where: str
    """Section, table or figure of the paper."""
    reported: str
    """The paper's value."""
    quantity: Quantity
    """Our value: over the reported runs, or over all that the claim is about."""
    rule: Rule
    """Which values give which verdict."""
    shown_in: str
    """The table or figure that shows the same quantity."""
    all_seeds: Quantity | None = None
    """The same over all seeds, where the paper has fewer."""
    over: str = " over {n} runs"
    """What follows the value over all seeds; `{n}` is the number of runs."""

    def describe_rule(self) -> str:
        """Runs, cadence and thresholds in one sentence or two."""
        cadence = f", evaluations every {self.quantity.cadence} steps" if self.quantity.cadence else ""
        return f"{self.quantity.name} of {self.quantity.runs.describe()}{cadence}. {self.rule.describe()}"

    @property
    def data(self) -> dict[str, Any]:
        """All that decides the verdict, as plain values."""
        return {
            "name": self.name,
            "statement": self.statement,
            "quantity": self.quantity.data,
            "rule": self.rule.data,
            "all_seeds": None if self.all_seeds is None else self.all_seeds.data,
        }


@dataclass(frozen=True)
class Finding:
    """Our value of a claim, and the verdict its rule gives."""

    value: str
    """What was found, as text."""
    verdict: Verdict
    """By the claim's rule, over the runs it names."""
    why: str
    """One sentence."""
    n: int = 0
    """Runs it rests on."""
    estimate: Estimate | None = None
    """The number with its interval, where the quantity has one."""
    all_seeds: str = ""
    """The value over all seeds, where there are more than the reported ones."""
    all_seeds_verdict: Verdict | None = None
    """What the rule says of that value."""


def judge(claim: Claim, evidence: Evidence) -> Finding:
    """Our value of a claim over the runs it names, and over all seeds, with what the rule says of each.

    >>> from grokscope.runs.outcome import RunOutcome
    >>> from grokscope.runs.records import RunRecord
    >>> from grokscope.specs import RunSpec
    >>> from grokscope.studies.quantity import Measured
    >>> from grokscope.studies.rule import Rule, at_least
    >>> from grokscope.studies.selection import Selection
    >>> def count_runs(runs):
    ...     return Measured.of(len(runs))
    >>> quantity = Quantity("number of runs", Selection(("base",)), count_runs)
    >>> claim = Claim("enough", "There are two runs.", "here", "2", quantity, Rule(at_least(2)), "tab-runs")
    >>> evidence = Evidence({"base": {"first": RunRecord(RunSpec(), RunOutcome(), {}, {})}})
    >>> str(judge(claim, evidence).verdict)
    'not reproduced'
    """
    measured = evidence.measure(claim.quantity)
    verdict = claim.rule.judge(measured)
    decided = verdict not in (Verdict.INCONSISTENT, Verdict.NOT_TESTABLE)
    why = measured.missing or measured.note if decided else claim.rule.contradiction or claim.rule.untestable
    value = measured.text if not measured.missing else "—" if decided else "not measured"
    found = Finding(value, verdict, why, measured.n, measured.estimate)
    if measured.missing or claim.all_seeds is None:
        return found
    found = _with_all_seeds(claim, evidence, found, decided)
    if decided and evidence.is_quick and _seeds_contradict(claim, evidence):
        return replace(found, verdict=Verdict.TOO_FEW, why="Its seeds contradict each other: one run does not decide.")
    return found


def _with_all_seeds(claim: Claim, evidence: Evidence, found: Finding, decided: bool) -> Finding:
    """The finding with the value over all seeds; over the grokked ones where only they have it."""
    assert claim.all_seeds is not None
    runs = claim.all_seeds.runs.select(evidence.records)
    if len(runs) <= len(claim.quantity.runs.select(evidence.records)):
        return found
    other = evidence.measure(claim.all_seeds)
    grokked = tuple(name for name, record in runs.items() if record.timeline.grokked is not None)
    if other.missing and grokked:
        other = evidence.measure(replace(claim.all_seeds, runs=replace(claim.all_seeds.runs, names=grokked)))
    if other.missing:
        return found
    text = other.text + claim.over.format(n=other.n)
    return replace(found, all_seeds=text, all_seeds_verdict=claim.rule.judge(other) if decided else None)


def _seeds_contradict(claim: Claim, evidence: Evidence) -> bool:
    """Whether a claim rests on one run and other seeds, each alone, would decide otherwise.

    Training is chaotic: another device's rounding makes another run of the same seed. So the quick version, which is
    for any machine, lets one run decide only what no other seed contradicts.
    """
    if len(claim.quantity.runs.names) != 1 or claim.all_seeds is None:
        return False
    return {Verdict.REPRODUCED, Verdict.NOT} <= {
        *[
            claim.rule.judge(
                evidence.measure(replace(claim.all_seeds, runs=replace(claim.all_seeds.runs, names=(name,))))
            )
            for name in claim.all_seeds.runs.select(evidence.records)
        ]
    }


def rules_digest(claims: Iterable[Claim]) -> str:
    """SHA-256 over all that decides the verdicts: who knows it knows that no rule was changed after a result.

    >>> rules_digest([])[:12]
    '4f53cda18c2b'
    """
    return sha256(json.dumps([claim.data for claim in claims], sort_keys=True).encode()).hexdigest()


def claim_rows(claims: Iterable[Claim], findings: Mapping[str, Finding] | None = None) -> list[dict[str, Any]]:
    """Each claim, with what was found where that is known, as plain values."""
    return [
        {name: getattr(claim, name) for name in ("name", "statement", "where", "reported", "shown_in")}
        | {"rule": claim.describe_rule(), "quantity": claim.quantity.key}
        | ({} if findings is None else _plain(findings[claim.name]))
        for claim in claims
    ]


def _plain(found: Finding) -> dict[str, Any]:
    ends = None if found.estimate is None else (found.estimate.low, found.estimate.high)
    return {
        "value": found.value,
        "why": found.why,
        "n": found.n,
        "all_seeds": found.all_seeds,
        "all_seeds_verdict": None if found.all_seeds_verdict is None else str(found.all_seeds_verdict),
        "interval": None if ends is None else [float(f"{end:.10g}") if end - end == 0 else None for end in ends],
        "verdict": str(found.verdict),
    }
