"""Which came first: a crossing or grokking."""

from dataclasses import dataclass
from enum import StrEnum
from math import nan

__all__ = ["Lead", "LeadStatus", "lead"]


class LeadStatus(StrEnum):
    """How a crossing stands to grokking; each value is the sentence a person reads."""

    LEADS = "before grokking"
    """The crossing came first: a precursor."""
    TIES = "at the same evaluation as grokking"
    """Both were first seen at one evaluation; which came first is not known."""
    LAGS = "after grokking"
    """Grokking came first: not a precursor."""
    NEVER = "grokked without it"
    """Not a precursor; the time of the crossing is right-censored at the last evaluation."""
    NO_GROKKING = "not grokked"
    """There is nothing to lead."""
    UNMEASURED = "not measured"
    """It was not measured, so nothing is known."""


SIGNS = {LeadStatus.LEADS: 1, LeadStatus.TIES: 0, LeadStatus.LAGS: -1, LeadStatus.NEVER: -1}


@dataclass(frozen=True)
class Lead:
    """Steps from a crossing to grokking."""

    status: LeadStatus
    """Which came first."""
    steps: int | None = None
    """Grok step − crossing step, each known to its evaluation; None unless both were reached."""
    less_than: int | None = None
    """Where there was no crossing: the lead is below grok step − last evaluation."""

    @property
    def is_precursor(self) -> bool:
        """Whether the crossing came first. The denominator of a share is all grokked runs, crossed or not."""
        return self.status is LeadStatus.LEADS

    @property
    def sign(self) -> int | None:
        """What a sign test counts; grokking without the crossing is negative. None where there is no lead."""
        return SIGNS.get(self.status)

    @property
    def lag(self) -> tuple[int, bool] | None:
        """(−lead, whether it was observed): a right-censored time. None where there is no lead.

        >>> lead(3000, None, last=15000).lag
        (12000, False)
        """
        if self.steps is not None:
            return -self.steps, True
        return None if self.less_than is None else (-self.less_than, False)

    @property
    def bound(self) -> float:
        """The lead, or without a crossing the highest that it can be; NaN where there is no lead.

        >>> lead(3000, None, last=15000).bound
        -12000.0
        """
        return nan if self.lag is None else float(-self.lag[0])


def lead(grokked: int | None, crossed: int | None, last: int) -> Lead:
    """Grok step − crossing step (§5.1, Table 2), or why there is none; `last` is the last evaluation of the measure.

    A run that groks without crossing is never dropped: where it is, only precursors are left to be counted.

    >>> lead(4000, 1500, last=15000).steps
    2500
    """
    if grokked is None:
        return Lead(LeadStatus.NO_GROKKING)
    if crossed is None:
        return Lead(LeadStatus.NEVER, less_than=grokked - last)
    steps = grokked - crossed
    return Lead(LeadStatus.LEADS if steps > 0 else LeadStatus.LAGS if steps < 0 else LeadStatus.TIES, steps)
