"""How many claims of each study have which verdict in the results that are stored with this version."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["VERDICTS", "count_verdicts", "stored_verdicts"]

# Written with the results, so that a package without them can say what they are.
VERDICTS = Path(__file__).with_name("verdicts.json")


@cache
def stored_verdicts() -> dict[str, dict[str, int]]:
    """Of each study with stored results, how many claims have each verdict; other studies have no runs yet.

    >>> "synchronization" in stored_verdicts()
    True
    """
    return dict(json.loads(VERDICTS.read_text()))


def count_verdicts(claims: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many rows of a `claims.json` have each verdict, the most frequent first.

    >>> count_verdicts([{"verdict": "refuted"}, {"verdict": "unlikely"}, {"verdict": "refuted"}])
    {'refuted': 2, 'unlikely': 1}
    """
    return dict(Counter(str(row["verdict"]) for row in claims).most_common())
