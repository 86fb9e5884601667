"""How long Phase 2 takes: Δt = C/λ, its rivals, the norm at which runs grok, and what is known exactly."""

from grokscope.law.censored import CensoredFit, constants_met, fit_censored
from grokscope.law.families import (
    Branch,
    Family,
    Law,
    begins_in,
    count_foreign_forks,
    fit_constant,
    fit_exponent,
    fit_mean_constant,
    fork_families,
    law_of,
)
from grokscope.law.fits import LawFit, fit_each_draw, fit_law
from grokscope.law.forms import FormName
from grokscope.law.norms import NormDecay, ThresholdNorm, first_passage_steps, norm_decay, threshold_norm
from grokscope.law.ridge import (
    RidgeDescent,
    RidgeTiming,
    expected_error,
    first_step_within,
    ridge_descent,
    ridge_timing,
    squared_errors,
)
from grokscope.law.runs import DecayOutcomes, Ending, ForkedRun, forked_run, outcomes_by_decay

__all__ = [
    "Branch",
    "CensoredFit",
    "DecayOutcomes",
    "Ending",
    "Family",
    "ForkedRun",
    "FormName",
    "Law",
    "LawFit",
    "NormDecay",
    "RidgeDescent",
    "RidgeTiming",
    "ThresholdNorm",
    "begins_in",
    "constants_met",
    "count_foreign_forks",
    "expected_error",
    "first_passage_steps",
    "first_step_within",
    "fit_censored",
    "fit_constant",
    "fit_each_draw",
    "fit_exponent",
    "fit_law",
    "fit_mean_constant",
    "fork_families",
    "forked_run",
    "law_of",
    "norm_decay",
    "outcomes_by_decay",
    "ridge_descent",
    "ridge_timing",
    "squared_errors",
    "threshold_norm",
]
