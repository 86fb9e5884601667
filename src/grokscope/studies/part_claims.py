"""Which claims can be judged once which parts of a study are there."""

from collections.abc import Mapping, Sequence

from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies.claim import Claim
from grokscope.studies.estimand import Estimand
from grokscope.studies.parts import Part
from grokscope.studies.quantity import Records
from grokscope.studies.study import Study

__all__ = ["claims_by_part", "planned_records"]


def claims_by_part(study: Study, parts: Sequence[Part]) -> dict[int, tuple[str, ...]]:
    """Of each part the claims whose last runs it has: all their others are in earlier ones.

    >>> from grokscope.studies import find_study
    >>> from grokscope.studies.parts import parts_of
    >>> study = find_study("bakeoff")
    >>> claims_by_part(study, parts_of(study, "tf32"))[1]  # which has no claims
    ()
    """
    planned = planned_records(parts)
    place = {spec: part.number for part in reversed(parts) for spec in part.plan.runs}  # the first that has it
    last = {
        claim.name: max((place[spec] for spec in _runs_of(claim, planned)), default=None)
        for claim in study.claims
        if claim.rule.shown is not None
    }
    return {part.number: tuple(name for name, number in last.items() if number == part.number) for part in parts}


def planned_records(parts: Sequence[Part]) -> Mapping[str, Records]:
    """Every planned run as a record of which nothing is known but its spec, by experiment and name.

    Example::

        planned_records(parts_of(study, "tf32"))["base"]["add_mod97_s42"].spec
    """
    found: dict[str, dict[str, RunRecord]] = {}
    for part in parts:
        for spec, members in part.plan.memberships.items():
            for member in members:
                found.setdefault(member.experiment, {})[member.name] = RunRecord(spec, RunOutcome(), {}, {})
    return found


def _runs_of(claim: Claim, planned: Mapping[str, Records]) -> set[RunSpec]:
    """The runs that a claim is about."""
    about = (
        [one.runs for one in claim.estimand.strata] if isinstance(claim.estimand, Estimand) else [claim.estimand.runs]
    )
    return {record.spec for runs in about for record in runs.select(planned).values()}
