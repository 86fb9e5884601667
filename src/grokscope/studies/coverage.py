"""Which of the catalogue's runs are there: how many of the paper's own, and how many seeds beyond them."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from grokscope.runs.records import RunRecord
from grokscope.studies.evidence import evidence_of
from grokscope.studies.sources import Scope
from grokscope.studies.synchronization.experiments import STUDIES, quick_studies, studies
from grokscope.studies.tables.reading import span_of

__all__ = ["coverage_of", "coverage_table"]

SEED = re.compile(r"_(?:s|d|order)[0-9]+")  # what tells a run from the others of its arm


def coverage_of(records: Sequence[RunRecord], scope: Scope) -> dict[str, dict[str, Any]]:
    """Of each study without further seeds, how many runs there are and should be; all its runs; the seeds of an arm."""
    widened = evidence_of(records, **scope)
    planned = quick_studies(scope["precision"]) if scope["quick"] else studies(STUDIES, None, scope["precision"])
    return {
        study: {
            "here": len(names.keys() & widened.study(study).keys()),
            "of": len(names),
            "runs": len(widened.study(study)),
            "seeds": _seeds_of([*names], [*widened.study(study)]),
        }
        for study, names in planned.items()
    }


def _seeds_of(planned: Sequence[str], found: Sequence[str]) -> str:
    """The fewest and the most seeds that an arm has; one without any has 0."""
    counts = Counter(SEED.sub("", name) for name in found)
    return span_of(counts[SEED.sub("", name)] for name in planned)


def coverage_table(studies: dict[str, dict[str, Any]]) -> str:
    """The same as Markdown."""
    lines = ["| study | runs with the printed seeds | runs with all seeds | seeds of an arm |", "|---|---|---|---|"]
    for study, found in studies.items():
        lines.append(f"| {study} | {found['here']} of {found['of']} | {found['runs']} | {found['seeds']} |")
    return "\n".join(lines)
