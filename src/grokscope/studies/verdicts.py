"""The verdicts of the results that are stored with this version: how many, and whether others reverse a firm one."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from grokscope.errors import plural

__all__ = ["VERDICTS", "compare_verdicts", "count_verdicts", "describe_stored", "stored_verdicts"]

# Written with the results, so that a package without them can say what they are.
VERDICTS = Path(__file__).with_name("verdicts.json")
FIRM = ", firm"
OPPOSITES = {"reproduced", "refuted"}
NOT_TESTABLE = "not testable"


@cache
def stored_verdicts() -> dict[str, dict[str, int]]:
    """Of each study with stored results, how many claims have each verdict; other studies have no runs yet.

    >>> "synchronization" in stored_verdicts()
    True
    """
    return {
        study: count_verdicts({"verdict": words.removesuffix(FIRM)} for words in claims.values())
        for study, claims in _stored().items()
    }


def describe_stored(claims: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """What is stored of the rows of a `claims.json`: each claim's verdict, and whether it is firm.

    >>> describe_stored([{"name": "early", "verdict": "refuted", "firm": True}])
    {'early': 'refuted, firm'}
    """
    return {str(row["name"]): f"{row['verdict']}{FIRM if row['firm'] else ''}" for row in claims}


def count_verdicts(claims: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many rows of a `claims.json` have each verdict, the most frequent first.

    >>> count_verdicts([{"verdict": "refuted"}, {"verdict": "unlikely"}, {"verdict": "refuted"}])
    {'refuted': 2, 'unlikely': 1}
    """
    return dict(Counter(str(row["verdict"]) for row in claims).most_common())


def compare_verdicts(study: str, claims: Iterable[Mapping[str, Any]]) -> str:
    """Rows of a `claims.json` beside the stored verdicts, in a sentence; empty where none are stored.

    A firm verdict is reversed where one is *reproduced* and the other *refuted*.

    >>> compare_verdicts("a study of mine", [])
    ''
    """
    stored = _stored().get(study, {})
    named = {str(row["name"]): row for row in claims if row["verdict"] != NOT_TESTABLE and row["name"] in stored}
    if not stored:
        return ""
    same = [name for name, row in named.items() if stored[name].removesuffix(FIRM) == row["verdict"]]
    turned = [
        name
        for name, row in named.items()
        if stored[name].endswith(FIRM) and {stored[name].removesuffix(FIRM), row["verdict"]} == OPPOSITES
    ]
    provisional = sum(bool(row["provisional"]) for row in named.values())
    return (
        f"verdicts of {plural(len(named), 'claim')} of {len(stored)}, {provisional} of them provisional; {len(same)} "
        f"are those of the stored results, and firm ones of these that are reversed: {', '.join(turned) or 'none'}"
    )


@cache
def _stored() -> dict[str, dict[str, str]]:
    """Of each study with stored results, each claim's verdict, and whether it is firm."""
    return dict(json.loads(VERDICTS.read_text()))
