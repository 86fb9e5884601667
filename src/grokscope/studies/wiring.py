"""Whether the parts of a study name each other rightly: a name that nothing has would be noticed after the runs."""

from collections.abc import Iterable, Mapping
from string import Formatter

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.studies.claim import Claim
from grokscope.studies.estimand import Estimand
from grokscope.studies.message import Sentence

__all__ = ["check_claims", "check_message"]


def check_claims(study: str, claims: Iterable[Claim], experiments: Iterable[str]) -> None:
    """Reject a claim about an experiment, a stratum or a part that is not there. What `derive` adds is not known yet.

    >>> check_claims("mine", [], ["runs"])
    """
    known = {*experiments}
    for claim in claims:
        whose = f"claim {claim.name} of {study}"
        estimand = claim.estimand
        if not isinstance(estimand, Estimand):
            _require(known, estimand.runs.experiments, f"{whose} is about the experiment")
            continue
        for stratum in estimand.strata:
            _require(known, stratum.runs.experiments, f"{whose} is about the experiment")
        strata = {one.name for one in estimand.strata}
        for name, part in estimand.parts.items():
            _require(strata, part.strata, f"part {name} of {whose} is of the stratum")
        _require_parts(estimand, claim.rule.shown.named_parts if claim.rule.shown else (), f"the rule of {whose}")
        _require_parts(estimand, estimand.effects, f"the effect of {whose}")
        _require_parts(estimand, _fields(estimand.text), f"the text of {whose}")


def check_message(study: str, message: Iterable[Sentence], claims: Mapping[str, Claim]) -> None:
    """Reject a sentence with a number of a claim that is not there, or that it does not list.

    >>> check_message("mine", [], {})
    """
    for sentence in message:
        whose = f"a sentence of {study}"
        _require(claims, sentence.claims, f"{whose} is about the claim")
        for condition, text in sentence.cases:
            named = {*_fields(text), *(condition.named_parts if condition else ())}
            for claim, found, part in (name.partition("|") for name in sorted(named)):
                _require(sentence.claims, [claim], f"{whose} has a number of the claim" if found else f"{whose} names")
                estimand = claims[claim].estimand
                if isinstance(estimand, Estimand):
                    _require_parts(estimand, [part], whose)


def _require_parts(estimand: Estimand, names: Iterable[str], whose: str) -> None:
    if estimand.derive is None:
        _require({*estimand.parts, "n"}, names, f"{whose} names the part")


def _require(known: Iterable[str], names: Iterable[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"{what} {shown(name)}, which is not there{did_you_mean(name, known)}")


def _fields(template: str) -> list[str]:
    """The names in a template.

    >>> _fields("{early:.0f} of {n:.0f}")
    ['early', 'n']
    """
    return [name for _, name, _, _ in Formatter().parse(template) if name]
