"""How well a forecaster sees grokking coming: causal scores, baselines, and sealed test cells."""

from grokscope.forecast.benchmark.alarms import FALSE_ALARMS
from grokscope.forecast.benchmark.baselines import BASELINES, Baseline, fit_baseline
from grokscope.forecast.benchmark.causal import predict_at
from grokscope.forecast.benchmark.laws import LAWS, LawScore, score_laws
from grokscope.forecast.benchmark.scorer import Score, Scores, score_folds, score_forecaster
from grokscope.forecast.benchmark.sealed import Ledger, Seal, seal_cells

__all__ = [
    "BASELINES",
    "FALSE_ALARMS",
    "LAWS",
    "Baseline",
    "LawScore",
    "Ledger",
    "Score",
    "Scores",
    "Seal",
    "fit_baseline",
    "predict_at",
    "score_folds",
    "score_forecaster",
    "score_laws",
    "seal_cells",
]
