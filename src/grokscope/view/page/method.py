"""The section Method: definitions, thresholds, provenance, how to cite."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from grokscope.measures.catalogue import MEASURES
from grokscope.runs.outcome import NOT_MEMORIZED
from grokscope.specs import ReadingSpec
from grokscope.timeline import Outcome
from grokscope.timeline.outcomes import COLLAPSED, UNLEARNT
from grokscope.timeline.success import RELATIVE_ERRORS
from grokscope.version import __version__
from grokscope.view.outcomes import MARKS
from grokscope.view.page.sources import ShownRun, Source

__all__ = ["marks", "method_of"]

PAPER = {
    "text": "Achyuthan Sivasankar, “Circuit Synchronization Precedes Generalization: A Causal Precursor to Grokking” "
    "(2026)",
    "name": "arXiv:2606.12966",
    "link": "https://arxiv.org/abs/2606.12966",
}
SENTENCES = {
    Outcome.UNSTABLE_AFTER: f"grokked, and validation accuracy fell below {COLLAPSED:g} at one later evaluation or "
    "more; evaluations below it in a row are one dip below one half",
    Outcome.UNSTABLE: f"memorised and not grokked, and train accuracy is below {UNLEARNT:g} at the last evaluation",
}
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
            ["memorised", f"first evaluation with train accuracy ≥ {reading.memorized:g}{_of_real('train', source)}"],
            [
                "synchronised",
                f"first evaluation with FSD ≥ {reading.fsd_sync:g}, for a group FSD_gen ≥ {reading.fsd_gen_sync:g}",
            ],
            ["Phase 2", "first evaluation with median rank 1; if there is none, with the rank's median after grokking"],
            [
                "grokked",
                f"first evaluation with validation accuracy ≥ {reading.grokked:g}{_of_real('validation', source)}",
            ],
            [
                "stable",
                f"validation accuracy ≥ {reading.grokked:g} at grokking and at every evaluation of the next "
                f"{reading.stable_steps:,} steps; its step is that of grokking. no: fell below it within these "
                "steps, or failed; open: ended too early to tell. A dip below it between two evaluations is not seen",
            ],
            ["lead", "step grokked − step synchronised; each is known to the interval between two evaluations"],
            ["Δt", "time to grok: step grokked − step of the fork"],
            *([f"{word} {mark}", sentence] for word, (mark, sentence) in marks().items()),
            [str(Outcome.NEVER), "memorised, and had not grokked by its last evaluation"],
            [NOT_MEMORIZED, "ended before it had memorised, so that it cannot have become unstable"],
            ["answer share", "share of the variance of the activations under FSD that depends on the answer"],
        ],
        "provenance": _provenance(source.runs),
        "paper": PAPER,
        "stated": list(source.provenance.items()),
        "version": __version__,
        "problems": list(source.problems),
    }


def _of_real(part: str, source: Source) -> str:
    """What is said besides where answers are real, and a squared error decides."""
    column = RELATIVE_ERRORS[f"{part}_accuracy"]
    is_real = any(column in run.record.evaluations for run in source.runs)
    return f"; of real answers, with a mean {part} error at most what the task counts as success" if is_real else ""


def _provenance(runs: Sequence[ShownRun]) -> list[dict[str, Any]]:
    """Each combination of versions and devices with its number of runs, the most frequent first."""
    known = [run.record.outcome.provenance for run in runs]
    counted = Counter(json.dumps(one, sort_keys=True) for one in known if one)
    return [{"runs": count, **json.loads(text)} for text, count in counted.most_common(20)]


def marks() -> dict[str, tuple[str, str]]:
    """The marks of the paper's tables, † and ‡, by the outcome that has them, each with what it means."""
    return {str(one).rstrip(MARKS): (str(one)[-1], sentence) for one, sentence in SENTENCES.items()}
