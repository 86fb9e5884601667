"""FSD against its nulls: independent neurons, renamed tokens, untrained networks."""

from functools import lru_cache

from grokscope.measures.nulls import exact_test, gaussian_null, strongest_mode_chances, uniform_p_value
from grokscope.measures.question import MOSTLY_CONSTANT, Columns, Measure, Question
from grokscope.measures.surrogates import answer_permutation_null, untrained_null
from grokscope.measures.synchronization import fsd

__all__ = ["ENTRIES"]

NULL_DRAWS = 64  # untrained networks behind the decision null
# A run's checkpoints are measured some at a time, and all have this one null.
_untrained_null = lru_cache(maxsize=8)(untrained_null)


def _columns(question: Question) -> Columns:
    """The exact null is known at once; the others are sampled, which takes seconds."""
    waves = question.spectrum()
    found = fsd(waves.density)
    chances = strongest_mode_chances(tuple(question.basis.modes.dimensions.tolist()))
    p_exact = exact_test(found, chances, seed=question.seed).p_value
    if not question.has("time"):
        return {"p_exact": p_exact}
    columns = {"p_uniform": uniform_p_value(found, seed=question.seed), "p_exact": p_exact}
    gaussian = gaussian_null(waves.dimensions, waves.power.shape[-1], seed=question.seed)
    columns |= {"p_gaussian": gaussian.p_value(found.fsd), "gaussian_95": gaussian.quantile(0.95).expand_as(found.fsd)}
    if question.has("pairs"):
        renamed = answer_permutation_null(
            question.subject.read(question.site).flatten(2),
            question.subject.task,
            draws=NULL_DRAWS,
            seed=question.seed,
            by=question.by,
            basis=question.basis_name,
        )
        columns |= {"p_renamed": renamed.p_value(found.fsd), "renamed_95": renamed.quantile(0.95)}
    if question.spec is not None:
        untrained = _untrained_null(
            question.spec,
            draws=NULL_DRAWS,
            seed=question.seed,
            site=question.site,
            by=question.by,
            basis=question.basis_name,
            device=question.subject.device,
        )
        columns |= {
            "p_untrained": untrained.p_value(found.fsd),
            "untrained_95": untrained.quantile(0.95).expand_as(found.fsd),
        }
    return columns


ENTRIES = {
    "fsd_null": Measure(
        title="FSD against its nulls",
        formula="p = (1 + #{draws ≥ FSD}) / (1 + draws)",
        source="the paper, Algorithm 1 (uniform); docs/paper-audit.md §4 (the others)",
        cost=f"{NULL_DRAWS} untrained networks, and 1,000 draws",
        null="independent neurons: uniform on odd Z_n, exact and Gaussian on any group; renamed and untrained decide",
        undefined=MOSTLY_CONSTANT,
        columns={
            "p_uniform": "Algorithm 1: dominant modes drawn uniformly",
            "p_exact": "independent Gaussian neurons without drawing: the exact distribution of the peak; on odd Z_n "
            "the exact counterpart of p_uniform",
            "p_gaussian": "independent Gaussian neurons: chi-square power in every mode",
            "gaussian_95": "their 95 % quantile of FSD",
            "p_renamed": "the same activations of pairs, tokens renamed at random, which destroys the rule alone",
            "renamed_95": "their 95 % quantile of FSD",
            "p_untrained": "untrained networks of the same spec, where it is known: the null used for inference",
            "untrained_95": "their 95 % quantile of FSD",
        },
        compute=_columns,
        headline="p_untrained",
    ),
}
