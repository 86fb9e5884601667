"""What a claim is, and what can be said of it."""

import inspect
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import isinf, isnan
from string import Formatter
from typing import Any, Literal

import numpy as np

from grokscope.errors import did_you_mean, shown
from grokscope.runs import records as record_module
from grokscope.stats import Estimate
from grokscope.studies import estimand as estimand_module
from grokscope.studies import reduction, resampling
from grokscope.studies import rule as rule_module
from grokscope.studies.estimand import Estimand, Sample
from grokscope.studies.evidence import Evidence
from grokscope.studies.quantity import Quantity
from grokscope.studies.resampling import effects_of, part_numbers, support_of
from grokscope.studies.rule import ENOUGH, Condition, Rule, Verdict
from grokscope.studies.selection import Selection, configuration

__all__ = ["Claim", "Contradiction", "Finding", "Template", "claim_rows", "format_part", "judge", "rules_digest"]

JUDGING = (rule_module, reduction, resampling, estimand_module)  # the code that judges every claim alike
# The methods by which all code reads a run: what is reached as a method is not in the digest of a function.
READING = ("seen_every", "at", "at_checkpoints", "first_checkpoint", "with_fsd", "timeline_by", "_events_columns")
FEWEST = 2  # units in every stratum without which nothing is said
FIRM = 0.95  # of bootstraps over units in which the verdict must be the same
FIRM_FROM = 32  # units in every stratum: with 16, verdicts that no bootstrap changed were changed by a rerun


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, the estimand it is about, and the rule by which it is judged."""

    name: str
    """Short and unique."""
    statement: str
    """What is claimed."""
    where: str
    """Section, table or figure of the paper."""
    reported: str
    """The paper's value."""
    estimand: Estimand | Quantity
    """Which runs, at which cadence, what is read of them, and how many the paper had. Or a quantity of all runs
    together, which has no design to draw, and is judged by its value and its interval."""
    rule: Rule
    """What a design must show, and which share of designs gives which verdict."""
    shown_in: str
    """The table or figure that shows the same events."""
    origin: Literal["paper", "new"] = "paper"
    """Whether the paper says so, or it is asked here for the first time."""

    def describe_rule(self) -> str:
        """Runs, cadence, design and thresholds in a sentence or two."""
        return f"{_describe(self.estimand)}. {self.rule.describe()}"

    @property
    def data(self) -> dict[str, Any]:
        """All that decides the verdict, as plain values."""
        return {
            "name": self.name,
            "statement": self.statement,
            "estimand": self.estimand.data,
            "rule": self.rule.data,
        }


@dataclass(frozen=True)
class Contradiction:
    """Two places of a paper of which at most one can hold, whatever runs give; no claim, and not counted as one."""

    name: str
    """Short and unique."""
    where: str
    """The places."""
    statement: str
    """What they say, and why both cannot be."""
    claims: tuple[str, ...] = ()
    """The claims that judge each reading for itself."""


@dataclass(frozen=True)
class Finding:
    """What was found of a claim."""

    verdict: Verdict
    """By the claim's rule."""
    why: str
    """One sentence."""
    n: int = 0
    """Units it rests on: runs, parents or seeds."""
    share: Estimate | None = None
    """The share of resampled designs that show it, with its interval."""
    is_firm: bool = False
    """Whether at least 95 % of bootstraps over units give the same verdict, and every stratum has 32 units."""
    is_provisional: bool = False
    """Whether it comes from the reduced version, or from fewer units than a firm verdict needs."""
    own: str = ""
    """The value over the paper's own units."""
    own_shown: bool | None = None
    """Whether these show it; None where the paper names none, or one is not there."""
    effects: Mapping[str, Estimate] = field(default_factory=dict)
    """The numbers over all units, with their intervals."""
    effect_text: str = "—"
    """The same as text."""


def judge(claim: Claim, evidence: Evidence) -> Finding:
    """How often the paper's design would have shown a claim, if all our runs are the world, and the effect over them.

    >>> from grokscope.runs.outcome import RunOutcome
    >>> from grokscope.runs.records import RunRecord
    >>> from grokscope.specs import RunSpec
    >>> from grokscope.studies import Selection, Stratum, rule
    >>> from grokscope.studies.reduction import mean
    >>> def read_seed(record):
    ...     return {"seed": float(record.spec.seeds.split)}
    >>> runs = Stratum("a task", Selection(("base",)), drawn=1)
    >>> seeds = Estimand("seeds", (runs,), read_seed, {"seed": mean("seed")}, "{seed:.0f}", ("seed", ".1f"))
    >>> claim = Claim("large", "Seeds are large.", "here", "2", seeds, Rule(rule.at_least(2, "seed")), "tab-seeds")
    >>> records = {f"r_s{i}": RunRecord(RunSpec().with_seed(i), RunOutcome(), {}, {}) for i in range(4)}
    >>> found = judge(claim, Evidence({"base": records}))
    >>> str(found.verdict), found.n, found.share.value.__round__(1), found.effect_text
    ('reproduced', 4, 0.5, '1.5 [0.5, 2.5]')
    """
    if claim.rule.shown is None:
        return Finding(Verdict.NOT_TESTABLE, claim.rule.untestable)
    if isinstance(claim.estimand, Quantity):
        return _judge_quantity(claim.estimand, claim.rule, claim.rule.shown, evidence)
    sample = evidence.sample(claim.estimand)
    if missing := _missing(claim.estimand, sample):
        return Finding(Verdict.NOT_TESTABLE, missing, sample.n)
    shown = claim.rule.shown
    if undefined := _undefined(claim.estimand, sample, shown):
        return Finding(Verdict.NOT_TESTABLE, undefined, sample.n)
    support = support_of(claim.estimand, sample, shown)
    fewest = min(map(len, sample.units.values()))
    verdict = claim.rule.judge(support.share.value, fewest, support.share.low)
    same = np.mean([claim.rule.judge(share, fewest) is verdict for share in support.worlds])
    own = sample.only({one.name: one.reported for one in claim.estimand.strata})
    has_own = own is not None and all(one.reported for one in claim.estimand.strata)
    parts = claim.estimand.compute(own.values) if own is not None and has_own else None
    effects = effects_of(claim.estimand, sample, claim.estimand.effects)
    is_provisional = evidence.is_quick or fewest < ENOUGH
    return Finding(
        verdict,
        f"{format_part(support.share.value, '.1%')} of {resampling.DESIGNS:,} resampled designs show it.",
        sample.n,
        support.share,
        is_firm=bool(same >= FIRM) and fewest >= FIRM_FROM and not is_provisional,
        is_provisional=is_provisional,
        own="" if parts is None else format_parts(claim.estimand.text, parts),
        own_shown=None if parts is None else bool(shown.holds(parts)),
        effects=effects,
        effect_text=_format_effects(effects, claim.estimand.effect[1]),
    )


def _judge_quantity(quantity: Quantity, rule: Rule, shown: Condition, evidence: Evidence) -> Finding:
    """A claim about a quantity of all runs together, which has no design to draw: by its value and its interval."""
    measured = evidence.measure(quantity)
    if measured.missing:
        return Finding(Verdict.NOT_TESTABLE, measured.missing, measured.n)
    groups = Counter(map(configuration, quantity.runs.select(evidence.records)))
    fewest, numbers = min(groups.values(), default=0), part_numbers(measured)
    is_shown = shown.named_parts <= numbers.keys() and bool(shown.holds(numbers))
    value = measured.parts.get("value")
    return Finding(
        rule.judge(float(is_shown), fewest),
        f"Judged by its value and interval over all runs: {shown.describe()} is {'true' if is_shown else 'false'}.",
        measured.n,
        is_provisional=evidence.is_quick or fewest < ENOUGH,
        effects={"value": value} if isinstance(value, Estimate) else {},
        effect_text=measured.text,
    )


def _describe(estimand: Estimand | Quantity) -> str:
    if isinstance(estimand, Estimand):
        return estimand.describe()
    cadence = f", evaluations every {estimand.cadence} steps" if estimand.cadence else ""
    return f"{estimand.name} of {estimand.runs.describe()}{cadence}; all runs together"


def _missing(estimand: Estimand, sample: Sample) -> str:
    """Which units are not there; nothing where there are enough."""
    for stratum in estimand.strata:
        found, needed = len(sample.units[stratum.name]), max(FEWEST, stratum.drawn or 0)
        if found < needed:
            if sample.unmeasured:
                return f"What it is about was measured in {found} of the {needed} {estimand.unit}s of {stratum.name}."
            return (
                f"{found} of the {needed} {estimand.unit}s of {stratum.name} that it needs are stored."
                if found
                else f"No runs stored yet: {stratum.runs.describe()}."
            )
    read = {column for columns in sample.values.values() for column in columns}
    wanted = {column for part in estimand.parts.values() for column in (part.column, part.other) if column}
    if unread := sorted(wanted - read):
        return f"{shown(unread[0])} is read of no run{did_you_mean(unread[0], read) or '.'}"
    return ""


def _undefined(estimand: Estimand, sample: Sample, shown: Condition) -> str:
    """The number that would decide the rule and that nobody knows over all units: too few came to what it counts."""
    whole = estimand.compute(sample.values, shown.named_parts)
    unknown = [part for part in sorted(shown.named_parts) if np.isnan(whole[part])]
    if not unknown or shown.holds(whole) or not shown.could_hold(whole):
        return ""
    return f"Over all {estimand.unit}s that are there its {unknown[0]} is not defined."


class Template(Formatter):
    """A text whose fields are names of numbers; a dot in a name, as of `held at 0.8`, looks nothing up."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        """The number of that name."""
        return kwargs[field_name], field_name


class _Parts(Template):
    def format_field(self, value: Any, format_spec: str) -> str:
        return format_part(float(np.asarray(value)), format_spec)


def format_parts(template: str, parts: Mapping[str, Any]) -> str:
    """A template with its parts filled in.

    >>> format_parts("{early:.0f} of {n:.0f}, lead at λ = {at 0.5:+,.0f}", {"early": 4, "n": 9, "at 0.5": -56.0})
    '4 of 9, lead at λ = −56'
    """
    return _Parts().vformat(template, (), parts)


def format_part(value: float | int, spec: str) -> str:
    """A number by Python's format, with a true minus; "never" for infinity, "undefined" for NaN.

    >>> format_part(-1722.2, "+,.0f"), format_part(float("inf"), ".0f"), format_part(0.425, ".1%")
    ('−1,722', 'never', '42.5 %')
    """
    if isnan(value):
        return "undefined"
    if isinf(value):
        return "never"
    text = format(value, spec).replace("-", "−").replace("%", " %")
    return text if any(digit in text for digit in "123456789") else text.lstrip("+−")  # no −0


def _format_effects(effects: Mapping[str, Estimate], spec: str) -> str:
    """Each with its interval; of several, each with its name, or what its name has in brackets."""
    shown = []
    same = f"{next(iter(effects)).partition(' ')[0]} "  # "share" of "share add_mod53" and "share add_mod97"
    same = same if all(part.startswith(same) for part in effects) else ""
    for part, found in effects.items():
        value, low, high = (format_part(one, spec) for one in (found.value, found.low, found.high))
        label = part.partition(" (")[2].removesuffix(")") or part.removeprefix(same)
        text = value if isnan(found.low) else f"{value} [{low}, {high}]"
        shown.append(text if len(effects) == 1 else f"{label}: {text}")
    return ", ".join(shown)


def rules_digest(claims: Iterable[Claim]) -> str:
    """SHA-256 over all that decides the verdicts: who knows it knows that no rule was changed after a result.

    It covers the claims as data, the code that selects and reads the runs, and the code that draws, reduces and judges.

    >>> len(rules_digest([]))
    64
    """
    functions = (judge, _judge_quantity, _missing, Selection, record_module.thinned)
    methods = (getattr(record_module.RunRecord, name) for name in READING)
    code = [inspect.getsource(inspect.unwrap(part)) for part in (*JUDGING, *functions, *methods)]
    data = {"claims": [claim.data for claim in claims], "code": code, "fewest": FEWEST, "firm": [FIRM, FIRM_FROM]}
    return sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def claim_rows(claims: Iterable[Claim], findings: Mapping[str, Finding] | None = None) -> list[dict[str, Any]]:
    """Each claim, with what was found where that is known, as plain values."""
    return [
        {name: getattr(claim, name) for name in ("name", "origin", "statement", "where", "reported", "shown_in")}
        | {"rule": claim.describe_rule(), "quantity": claim.estimand.key}
        | ({} if findings is None else _plain(findings[claim.name]))
        for claim in claims
    ]


def _plain(found: Finding) -> dict[str, Any]:
    return {
        "verdict": str(found.verdict),
        "firm": found.is_firm,
        "provisional": found.is_provisional,
        "why": found.why,
        "n": found.n,
        "share": _ends(found.share),
        "value": found.effect_text,
        "effects": {part: _ends(one) for part, one in found.effects.items()},
        "own": found.own,
        "own_shown": found.own_shown,
    }


def _ends(found: Estimate | None) -> list[float | None] | None:
    """Value, lower and upper end; None where one is not finite."""
    if found is None:
        return None
    return [float(f"{end:.10g}") if end - end == 0 else None for end in (found.value, found.low, found.high)]
