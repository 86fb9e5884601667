"""How a run ended, when it memorised and why it has no FSD, in the words that list, summary and page share."""

from typing import TYPE_CHECKING

from grokscope.errors import plural, shown
from grokscope.specs import ReadingSpec
from grokscope.specs.run import OWN_ROWS

if TYPE_CHECKING:
    from grokscope.runs.records import RunRecord
    from grokscope.timeline import Stability

__all__ = [
    "BEFORE",
    "MARKS",
    "NOT_MEMORIZED",
    "NO_BASIS",
    "describe_ending",
    "describe_stability",
    "memorized_before",
    "why_without_fsd",
]

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


def describe_stability(found: "Stability") -> str:
    """In a sentence, whether a run that had grokked stayed so; empty of one that had not.

    >>> from grokscope.timeline import stability
    >>> describe_stability(stability([0, 500, 1000, 1500, 2000, 2500], [0.0, 1.0, 1.0, 0.2, 1.0, 1.0]))
    'It was not stable: within 2,000 steps after grokking it fell below 95 % in 1 dip of 500 steps.'
    """
    reading = ReadingSpec()
    span, level = f"{reading.stable_steps:,} steps", f"{100 * reading.grokked:g} %"
    again = "" if found.step is None else f" It was stable from step {found.step:,} on."
    which = ", the longest of" if found.dips > 1 else " of"
    fell = f"within {span} after grokking it fell below {level} in {plural(found.dips, 'dip')}{which}"
    return {
        "STABLE": f"It was stable: it had {level} at every evaluation of the next {span}, made at least every "
        f"{found.cadence or 0:,} steps.",
        "NOT_STABLE": f"It was not stable: {fell} {found.longest_dip:,} steps.{again}"
        if found.dips
        else f"It was not stable: it failed within {span} after grokking.",
        "CENSORED": f"Whether it was stable is not known: it was not evaluated over {span} after grokking.{again}",
        "NO_GROKKING": "",
    }[found.status.name]


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
