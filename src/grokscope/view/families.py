"""What a law of a family of forks is fitted to, and what is left out of it, in words."""

from collections import Counter

from grokscope.errors import plural
from grokscope.law import Ending, Family

__all__ = ["FITTED", "fitted_size", "left_out"]

FITTED = (Ending.GROKKED, Ending.CENSORED)  # an unstable run is a competing event; one that grokked before has no Δt


def fitted_size(family: Family) -> str:
    """What the law is fitted to: `2 forks and 1 parent`, `80 of 96 forks`.

    >>> fitted_size(Family("", "add_mod97", 1000, ()))
    ''
    """
    counts = []
    for is_parent, word in ((False, "fork"), (True, "parent")):
        some = [branch.run.ending in FITTED for branch in family.branches if branch.is_parent is is_parent]
        part = "" if all(some) else f"{sum(some):,} of "
        counts += [part + plural(len(some), word)] if some else []
    return " and ".join(counts)


def left_out(family: Family) -> str:
    """Why the law is not fitted to the others: `16 unstable`; empty where there are none.

    >>> left_out(Family("", "add_mod97", 1000, ()))
    ''
    """
    endings = Counter(branch.run.ending for branch in family.branches if branch.run.ending not in FITTED)
    return ", ".join(f"{count:,} {ending}" for ending, count in endings.items())
