"""Whether a run stayed grokked, when it memorised and why it has no FSD, in the words that list and page share."""

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
    "NO_BASIS",
    "describe_stability",
    "memorized_before",
    "why_without_fsd",
]

MARKS = " †‡"  # of the paper's tables
NO_BASIS = " has no basis to read activations in"
BEFORE = "before the fork"


def describe_stability(found: "Stability") -> str:
    """In a sentence, whether a run that had grokked stayed so; empty of one that had not.

    >>> from grokscope.timeline import stability
    >>> describe_stability(stability([0, 500, 1000, 1500, 2000, 2500], [0.0, 1.0, 1.0, 0.2, 1.0, 1.0]))
    'It was not stable: within 2,000 steps after grokking it fell below 95 % in 1 dip of 500 steps.'
    """
    reading = ReadingSpec()
    span, level = f"{reading.stable_steps:,} steps", f"{100 * reading.grokked:g} %"
    again = "" if found.step is None else f" From step {found.step:,} on it stayed so for {span}."
    which = ", the longest of" if found.dips > 1 else " of"
    fell = f"within {span} after grokking it fell below {level} in {plural(found.dips, 'dip')}"
    length = f"{which} {found.longest_dip:,} steps" if found.longest_dip else ", at the last evaluation of these"
    return {
        "STABLE": f"It was stable: it had {level} at every evaluation of the next {span}, made at least every "
        f"{found.cadence or 0:,} steps.",
        "NOT_STABLE": f"It was not stable: {fell}{length}.{again}"
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
