"""How a run ended, when it memorised and why it has no FSD, in the words that list, summary and page share."""

from typing import TYPE_CHECKING

from grokscope.errors import shown
from grokscope.specs.run import OWN_ROWS

if TYPE_CHECKING:
    from grokscope.runs.records import RunRecord

__all__ = ["BEFORE", "MARKS", "NOT_MEMORIZED", "NO_BASIS", "describe_ending", "memorized_before", "why_without_fsd"]

MARKS = " †‡"  # of the paper's tables
NOT_MEMORIZED = "not memorised"  # of a run that ended before it had learnt its training set
NO_BASIS = " has no basis to read activations in"
BEFORE = "before the fork"
# Those of `timeline.Outcome` without its marks; listing runs does not wait for numpy, which that needs.
WORDS = {"unstable_after": "grokked, then unstable", "never": "never within the budget"}


def describe_ending(outcome: str, memorized: int | None) -> str:
    """A stored outcome in words; a run that never memorised cannot have become unstable.

    >>> describe_ending("unstable", None), describe_ending("unstable", 200), describe_ending("never", 200)
    ('not memorised', 'unstable', 'never within the budget')
    """
    return NOT_MEMORIZED if outcome == "unstable" and memorized is None else WORDS.get(outcome, outcome)


def memorized_before(memorized: int | None, fork_step: int | None) -> bool:
    """Whether a fork had memorised already when it began."""
    return memorized is not None and fork_step is not None and memorized <= fork_step


def why_without_fsd(record: "RunRecord") -> str:
    """Why a run has no FSD and no rank; empty where it has them, or where its task has a basis."""
    if any(value == value for value in record.evaluations.get("fsd", [])):
        return ""
    from grokscope.runs.records import known_task

    name = record.spec.task
    task = known_task(name)
    if task is None:  # a file that has moved, or a function, which is not run to say this
        own = OWN_ROWS.fullmatch(name)
        return f"{shown(own[1].rpartition('/')[2])[1:-1]}{NO_BASIS}" if own else ""
    return "" if task.bases else f"{task.name}{NO_BASIS}"
