"""What a claim is, and what can be said of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isinf, isnan

from grokscope.runs.records import RunRecord
from grokscope.stats import Estimate, SignTest
from grokscope.studies.evidence import Evidence

__all__ = [
    "Claim",
    "Finding",
    "Verdict",
    "graded",
    "inconsistent",
    "near",
    "number",
    "of_runs",
    "percent",
    "signed",
    "spoken",
    "too_few",
]

TOLERANCE = 0.2  # of a printed number, where a single run gives it and no interval can
Records = Mapping[str, RunRecord]


class Verdict(StrEnum):
    """What became of a claim; each value is what a person reads."""

    REPRODUCED = "reproduced"
    """Its rule is met."""
    PARTLY = "partly"
    """The weaker half of its rule is met."""
    NOT = "not reproduced"
    """It is not."""
    INCONSISTENT = "paper inconsistent"
    """The paper says two things of which one at most can hold."""
    NOT_TESTABLE = "not testable as written"
    """What is said cannot come out false, or names nothing that can be measured."""
    TOO_FEW = "too few runs"
    """The runs its rule asks for are not there."""


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
    """The number with its interval, where the rule has one."""
    beside: str = ""
    """The value over all seeds of the study, where there are more than the printed ones."""
    beside_verdict: Verdict | None = None
    """What the rule says of that value, where it judges one."""


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and the rule by which it is judged."""

    name: str
    """Short and unique."""
    statement: str
    """What is claimed."""
    where: str
    """Section, table or figure."""
    printed: str
    """The paper's value."""
    rule: str
    """Which runs, which number, and which thresholds give which verdict."""
    table: str
    """The table or figure beside which it is shown."""
    judge: Callable[[Evidence], Finding]
    """The rule as code."""


def too_few(found: int, needed: int, what: str) -> Finding:
    """The finding where runs are missing.

    >>> too_few(2, 9, "addition runs").why
    '2 of the 9 addition runs that the rule needs are there.'
    """
    return Finding("—", Verdict.TOO_FEW, f"{found} of the {needed} {what} that the rule needs are there.", found)


def graded(full: bool, part: bool) -> Verdict:
    """Reproduced, partly, or not."""
    return Verdict.REPRODUCED if full else Verdict.PARTLY if part else Verdict.NOT


def near(value: float | int, printed: float | int) -> bool:
    """Within 20 % of a printed number; NaN is near nothing."""
    return abs(value - printed) <= TOLERANCE * abs(printed)


def number(value: float | int | None, digits: int = 0) -> str:
    """A number as the text shows it.

    >>> number(-1722.2), number(0.4999, 2), number(None)
    ('−1,722', '0.50', 'never')
    """
    if value is None or isinf(value):
        return "never"
    return "undefined" if isnan(value) else f"{value:,.{digits}f}".replace("-", "−")


def percent(value: float | int | None, digits: int = 0) -> str:
    """A share as the text shows it.

    >>> percent(-0.7059, 1), percent(0.09)
    ('−70.6 %', '9 %')
    """
    shown = number(None if value is None else 100 * value, digits)
    return shown if shown in ("never", "undefined") else f"{shown} %"


def spoken(estimate: Estimate, digits: int = 0, shown: Callable[[float, int], str] = number) -> str:
    """An estimate with its interval.

    >>> spoken(Estimate(1722.0, 1111.0, 2333.0, 9))
    '1,722 [1,111, 2,333]'
    """
    low, high = (shown(end, digits) for end in (estimate.low, estimate.high))
    return f"{shown(estimate.value, digits)} [{low}, {high}]"


def of_runs(
    printed: Records,
    everyone: Records,
    needed: int,
    what: str,
    score: Callable[[Sequence[RunRecord]], Finding],
    of: str = "",
) -> Finding:
    """A finding over the printed runs, all of which must be there, with that over every seed of the study beside it.

    What only grokked runs have is shown beside it over those; where it is missing still, nothing is. `of` says which
    runs those beside it are, where they are not more seeds of the same.
    """
    if len(printed) < needed:
        return too_few(len(printed), needed, what)
    found = score(list(printed.values()))
    if len(everyone) <= len(printed):
        return found
    other = score(list(everyone.values()))
    groks = [record for record in everyone.values() if record.timeline.grokked is not None]
    if other.verdict is Verdict.TOO_FEW and groks:
        other = score(groks)
    if other.verdict is Verdict.TOO_FEW:
        return found
    return replace(found, beside=f"{other.value} over {other.n} runs{of}", beside_verdict=other.verdict)


def inconsistent(finding: Finding, why: str) -> Finding:
    """Our value under a claim on which the paper contradicts itself, whatever that value is."""
    value = "not measured" if finding.verdict is Verdict.TOO_FEW else finding.value
    return replace(finding, value=value, verdict=Verdict.INCONSISTENT, why=why, beside_verdict=None)


def signed(test: SignTest, runs: int) -> str:
    """How many leads of so many runs are positive; runs that never grok have none, and no part in p."""
    left_out = runs - test.positive - test.negative - test.zero
    never = f" ({left_out} never grok)" if left_out else ""
    return f"{test.positive} of {runs} positive{never}, p = {test.p_value:.2g}"
