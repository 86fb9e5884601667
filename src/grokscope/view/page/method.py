"""What the page says about how its numbers came to be: definitions, thresholds, provenance, how to cite."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from grokscope.measures.catalogue import MEASURES
from grokscope.specs import ReadingSpec
from grokscope.version import __version__
from grokscope.view.page.sources import ShownRun, Source

__all__ = ["method_of"]

SHOWN = ("fsd", "fsd_gen", "rank", "fsd_null", "ablation", "fourier_kan", "memorization", "norms")


def method_of(source: Source) -> dict[str, Any]:
    """Everything of the section Method."""
    reading = ReadingSpec()
    return {
        "measures": [
            {"name": name, "title": one.title, "formula": one.formula, "source": one.source, "null": one.null}
            for name in SHOWN
            if (one := MEASURES.get(name))
        ],
        "events": [
            ["memorised", f"first look with train accuracy ≥ {reading.memorized:g}"],
            [
                "synchronised",
                f"first look with FSD ≥ {reading.fsd_sync:g}, for a group FSD_gen ≥ {reading.fsd_gen_sync:g}",
            ],
            ["Phase 2", "first look with median rank 1; if that never comes, with the rank's median after grokking"],
            ["grokked", f"first look with validation accuracy ≥ {reading.grokked:g}"],
            ["lead", "step grokked − step synchronised; both are known to the look at which they were first seen"],
            ["Δt", "step grokked − step of the fork"],
        ],
        "provenance": _provenance(source.runs),
        "told": [[str(key), _text(value)] for key, value in source.provenance.items()],
        "version": __version__,
        "problems": list(source.problems),
    }


def _provenance(runs: Sequence[ShownRun]) -> list[dict[str, Any]]:
    """Each combination of versions and devices with its number of runs, the most frequent first."""
    told = [run.record.outcome.provenance for run in runs]
    counted = Counter(json.dumps(one, sort_keys=True) for one in told if one)
    return [{"runs": count, **json.loads(text)} for text, count in counted.most_common(20)]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
