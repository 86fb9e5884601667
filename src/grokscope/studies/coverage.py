"""Which of a study's runs are there: how many of the reported ones, and how many seeds beyond them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from grokscope.studies.evidence import Evidence
from grokscope.studies.selection import configuration
from grokscope.studies.study import Study
from grokscope.view.numbers import format_range

__all__ = ["coverage", "coverage_table"]


def coverage(study: Study, evidence: Evidence) -> dict[str, dict[str, Any]]:
    """Of each experiment: reported runs, how many of them are there, all its runs, and the seeds of a configuration."""
    planned = study.runs(quick=evidence.is_quick)
    return {
        experiment: {
            "here": len(names.keys() & evidence.records[experiment].keys()),
            "of": len(names),
            "runs": len(evidence.records[experiment]),
            "seeds": _seeds([*names], [*evidence.records[experiment]]),
        }
        for experiment, names in planned.items()
    }


def _seeds(planned: Sequence[str], found: Sequence[str]) -> str:
    """The fewest and the most seeds that a configuration has; one without any has 0."""
    counts = Counter(map(configuration, found))
    return format_range(counts[configuration(name)] for name in planned)


def coverage_table(experiments: Mapping[str, Mapping[str, Any]]) -> str:
    """The same as Markdown."""
    lines = ["| experiment | reported runs | runs with all seeds | seeds of a configuration |", "|---|---|---|---|"]
    for name, found in experiments.items():
        lines.append(f"| {name} | {found['here']} of {found['of']} | {found['runs']} | {found['seeds']} |")
    return "\n".join(lines)
