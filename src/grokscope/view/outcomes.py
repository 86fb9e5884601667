"""How a run ended and when it memorised, in the words that list, summary and page share."""

__all__ = ["BEFORE", "MARKS", "NOT_MEMORIZED", "describe_ending", "memorized_before"]

MARKS = " †‡"  # of the paper's tables
NOT_MEMORIZED = "not memorised"  # of a run that ended before it had learnt its training set
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
