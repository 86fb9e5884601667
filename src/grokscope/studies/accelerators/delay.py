"""How long after memorisation an arm's runs grok."""

from collections.abc import Mapping

from grokscope.runs.records import RunRecord
from grokscope.studies import Estimand
from grokscope.studies.accelerators.comparisons import stratum
from grokscope.studies.accelerators.events import read_events
from grokscope.studies.reduction import median

__all__ = ["delay"]


def delay(setting: str, arm: str) -> Estimand:
    """The median of steps to grokking over steps to memorisation (train accuracy ≥ 0.99), both counted from 0.

    >>> delay("⊥Grad, MLP", "⊥AdamW").effects
    ('times',)
    """
    return Estimand(
        "steps to grokking over steps to memorisation",
        (stratum(setting, arm, 1),),
        read_delay,
        {"times": median("times")},
        "{times:.1f} times",
        ("times", ".1f"),
    )


def read_delay(record: RunRecord) -> Mapping[str, float]:
    """Of a run that has memorised; infinite where it never grokked."""
    events = read_events(record)
    at = max(events["memorised"], float(record.spec.measurements.every or 1))  # no earlier than the first evaluation
    return {"times": events["grok"] / at} if at < float("inf") else {"times": float("nan")}
