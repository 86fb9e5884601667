"""How a run ended, as a type: for finished, running, packed and monitored runs alike."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from grokscope.errors import shown
from grokscope.runs.logs import Columns
from grokscope.specs import ReadingSpec

__all__ = ["ENDINGS", "EVENTS", "NOT_MEMORIZED", "RunOutcome", "describe_ending", "stable_columns"]

EVENTS = ("failed_at", "memorized", "grokked")  # of every outcome: a step, or None
READING = ReadingSpec()  # the paper's thresholds, by which every outcome names its events
CODES = ("unfinished", "grokked", "unstable_after", "unstable", "never", "diverged")  # as stored
NOT_MEMORIZED = "not memorised"  # of a run that ended before it had learnt its training set
# Those of `timeline.Outcome` without its marks; listing runs does not wait for numpy, which that needs.
WORDS = {"unstable_after": "grokked, then unstable", "never": "not grokked"}
ENDINGS = (*(WORDS.get(code, code) for code in CODES), NOT_MEMORIZED)
"""How a run ended, in the words that tables, summaries, SQL and the page share."""
FIRED = ("fired_at", "restored_at")  # of a trigger: a step, or None
LARGEST_STEP = 2**63
MAPPINGS = ("stability", "trigger", "control", "layout", "weights", "undefined")  # or None
OPTIONAL = ("stability", "control", "layout", "weights", "undefined")  # written only where there is something to write


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended, with its layout and provenance."""

    outcome: str = "unfinished"
    """As it is stored: the name of a `timeline.Outcome`, in lower case; `unfinished` while the run trains or waits."""
    failed_at: int | None = None
    """The step at which its loss stopped being a finite number."""
    stopped_early: bool = False
    """Whether it was ended some time after grokking, before its budget."""
    memorized: int | None = None
    """The first evaluation with the memorisation threshold reached."""
    grokked: int | None = None
    """The first evaluation with the grokking threshold reached."""
    stability: Mapping[str, Any] | None = None
    """Whether it stayed grokked, as `timeline.Stability` says; None of a run that never grokked, and in outcomes of
    earlier versions."""
    trigger: Mapping[str, int | None] | None = None
    """When its trigger fired and restored λ, where it has one."""
    control: Mapping[str, Any] | None = None
    """What its closed loop did, where it has one."""
    layout: Mapping[str, Any] | None = None
    """Its slot in the stack of runs it was trained in; None of a monitored run."""
    weights: Mapping[str, str] | None = None
    """SHA-256 of its weights by step, where a plan has signals: at its last step, and at its forks'."""
    undefined: Mapping[str, str] | None = None
    """Why a monitored run's measures were undefined, by step."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Commit, device and versions."""

    @property
    def ending(self) -> str:
        """How it ended, in the words of `ENDINGS`."""
        return describe_ending(self.outcome, self.memorized)

    @property
    def is_finished(self) -> bool:
        """Whether it has ended."""
        return self.outcome != "unfinished"

    @property
    def fired_at(self) -> int | None:
        """When its trigger fired; None if it never did, or there is none."""
        return self.trigger["fired_at"] if self.trigger else None

    def to_dict(self) -> dict[str, Any]:
        """As it is stored."""
        parts = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: value for name, value in parts.items() if value is not None or name not in OPTIONAL}

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any]) -> Self:
        """From what is stored; rejects what names no known ending, and a field of another type."""
        if not isinstance(ending := parts.get("outcome"), str):
            raise ValueError("an outcome does not name how the run ended")
        if ending not in CODES:
            raise ValueError(f"an outcome is one of {', '.join(CODES)}, got {shown(ending)}")
        for name in EVENTS:
            if not _is_step(parts.get(name)):
                raise ValueError(f"an outcome's {name!r} is not a step")
        if not isinstance(parts.get("stopped_early", False), bool):
            raise ValueError("an outcome's 'stopped_early' is neither true nor false")
        if wrong := [name for name in MAPPINGS if not isinstance(parts.get(name), Mapping | None)]:
            raise ValueError(f"an outcome's {wrong[0]!r} is not an object with named fields")
        stays = parts.get("stability") or {"status": ""}
        if not isinstance(stays.get("status"), str) or not _is_step(stays.get("step")):
            raise ValueError("an outcome's 'stability' does not say whether and from which step on it was stable")
        trigger = parts.get("trigger") or {"fired_at": None}
        if "fired_at" not in trigger or not all(_is_step(trigger.get(name)) for name in FIRED):
            raise ValueError("an outcome's 'trigger' does not say at which steps it fired and restored")
        if not isinstance(parts.get("provenance", {}), Mapping):
            raise ValueError("an outcome's 'provenance' is not an object with named fields")
        return cls(**{name: parts[name] for name in cls.__dataclass_fields__ if name in parts})

    @classmethod
    def from_evaluations(cls, evaluations: Columns, failed_at: int | None = None, **facts: Any) -> Self:
        """How a run ended by its evaluations and the step at which it failed; `facts` are the other fields."""
        # What listing runs does not wait for.
        from grokscope.timeline import first_step, judged_columns, outcome, stability

        judged = judged_columns(evaluations)
        steps, train, validation = (judged[name] for name in ("step", "train_accuracy", "validation_accuracy"))
        taken = [int(step) for step in steps]
        grokked = first_step(taken, validation, READING.grokked)
        stays = None if grokked is None else stability(taken, validation, READING, failed_at).to_dict()
        return cls(
            outcome=outcome(taken, train, validation, failed_at).name.lower(),
            failed_at=failed_at,
            memorized=first_step(taken, train, READING.memorized),
            grokked=grokked,
            stability=stays,
            **facts,
        )


def describe_ending(outcome: str, memorized: int | None) -> str:
    """A stored outcome in words; a run that never memorised cannot have become unstable.

    >>> describe_ending("unstable", None), describe_ending("unstable", 200), describe_ending("never", 200)
    ('not memorised', 'unstable', 'not grokked')
    """
    return NOT_MEMORIZED if outcome == "unstable" and memorized is None else WORDS.get(outcome, outcome)


def stable_columns(stays: Mapping[str, Any]) -> dict[str, Any]:
    """What tables say of a stored stability: *stable* is the step of grokking of a run that stayed so, else None.

    `stable_from` is the step from which on a run stayed grokked for 2,000 steps, later if it recovered from dips.

    >>> stable_columns({"status": "not_stable", "step": 600})
    {'stable': None, 'stability': 'not_stable', 'stable_from': 600}
    """
    status, stable_from = stays.get("status"), stays.get("step")
    return {"stable": stable_from if status == "stable" else None, "stability": status, "stable_from": stable_from}


def _is_step(value: Any) -> bool:
    return value is None or (type(value) is int and 0 <= value < LARGEST_STEP)
