"""What a forecaster reads of a run so far: a few clocks and signals, each one number that a person can name.

Levels are medians over the last fifth of the run, since losses spike; slopes compare them with the fifth before, per
unit of the logarithm of time, so that they do not depend on how often a run was evaluated.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from math import log, nan
from statistics import fmean, median

import numpy as np

from grokscope.forecast.clock import decay_clock
from grokscope.forecast.prefix import Prefix
from grokscope.shapes import Float

__all__ = ["SIGNALS", "signals_at"]

SIGNALS: dict[str, tuple[int, str]] = {
    "log_time": (0, "log of the steps so far"),
    "log_clock": (0, "log of the clock ∫ηλ dt"),
    "log_rate": (0, "log of ηλ, the speed of that clock"),
    "log_data": (0, "log of n/(p log p): training rows over what the classes need"),
    "log_fraction": (0, "log odds of the share of rows that is trained on"),
    "is_memorized": (1, "whether the training set was learnt"),
    "log_memorized": (1, "log of the steps that took, or of the steps so far"),
    "log_train_loss": (1, "log of the training loss"),
    "train_spread": (1, "interquartile range of the log training loss: how often it spikes"),
    "log_norm": (2, "log of the norm of the weights over that at the first evaluation"),
    "norm_slope": (2, "d log‖W‖ / d log t"),
    "log_update": (2, "log of the length of the last update"),
    "update_cosine": (2, "cosine of the last update with the weights"),
    "embedding_entropy": (2, "spectral entropy of the token embedding"),
    "logit_map_fsd": (2, "FSD of the map from neurons to logits"),
    "log_participation": (2, "log of the directions that weight matrices use"),
    "log_train_entropy": (3, "log of the entropy of predictions on training rows"),
    "log_margin": (3, "log of the mean margin on training rows, where it is positive"),
    "train_fsd": (3, "FSD from training rows"),
    "train_spectral_entropy": (3, "spectral entropy from training rows"),
    "train_share": (3, "share of the activations' variance on training rows that is between labels"),
    "train_share_slope": (3, "its slope, per log t"),
    "log_entropy": (4, "log of the entropy of predictions on all rows"),
    "entropy_slope": (4, "its slope, per log t"),
    "input_fsd": (4, "FSD from means by the first symbol"),
    "log_input_rank": (4, "log of the median Fourier rank from those means"),
    "log_loss": (5, "log of the validation loss"),
    "log_over_guess": (5, "log of the validation loss over that of a guess: the log of the classes, or 1"),
    "loss_slope": (5, "d log(validation loss) / d log t"),
    "loss_fall": (5, "log of the highest validation loss so far over the present one"),
    "log_odds": (5, "log odds of the validation accuracy"),
    "odds_slope": (5, "their slope, per log t"),
    "log_rank": (5, "log of the median Fourier rank"),
    "fsd": (5, "FSD"),
    "log_share": (5, "log of the answer share"),
    "share_slope": (5, "its slope, per log t"),
    "log_restricted": (5, "log of the restricted loss of the logits"),
    "spectral_entropy": (5, "spectral entropy of the answer-conditioned activations"),
}
"""Name → the tier it needs, and what it is."""

SHARE = 0.2  # of the steps so far that a level is the median of
FEWEST = 3  # evaluations in it, if there are so many


def signals_at(run: Prefix, names: Sequence[str] = tuple(SIGNALS)) -> Float[np.ndarray, " signals"]:
    """The signals of a run now; NaN where what they need was not measured or is not known.

    >>> run = Prefix(np.arange(0, 1001, 100), {"norm": np.linspace(100, 50, 11)}, {"weight_decay": 1.0})
    >>> [round(float(value), 2) for value in signals_at(run, ["log_time", "log_norm", "fsd"])]
    [6.91, -0.6, nan]
    """
    found = {name: ALONE[name](run) for name in names if name in ALONE}
    for of_run in {OF_GROUP[name] for name in names if name in OF_GROUP}:
        found |= of_run(run)
    return np.array([found[name] for name in names], dtype=np.float64)


def _configured(run: Prefix) -> dict[str, float]:
    time = max(run.step, 1)
    rate = run.value("weight_decay") * run.value("learning_rate")
    clock = decay_clock(run)[-1]
    classes, fraction = run.value("classes"), run.value("train_fraction")
    needed = classes * log(classes) if classes > 1 else nan
    return {
        "log_time": log(time),
        "log_clock": _log(clock),
        "log_rate": _log(rate),
        "log_data": _log(run.value("train_rows") / needed),
        "log_fraction": _log(fraction / (1 - fraction)) if 0 < fraction < 1 else nan,
    }


def _memorization(run: Prefix) -> dict[str, float]:
    learnt = run.memorized
    measured = not np.all(np.isnan(run.column("train_accuracy")))
    return {
        "is_memorized": float(learnt is not None) if measured else nan,
        "log_memorized": log(max(run.step if learnt is None else learnt, 100)) if measured else nan,
    }


def _training(run: Prefix) -> dict[str, float]:
    level, _, spread = _log_level(run, "train_loss")
    return {"log_train_loss": level, "train_spread": spread}


def _norm(run: Prefix) -> dict[str, float]:
    norms = run.column("norm")
    first = norms[~np.isnan(norms)][:1]
    logs = np.log(np.maximum(norms, 1e-8) / (first[0] if len(first) else 1.0))
    level, slope, _ = _level(run, logs)
    return {"log_norm": level, "norm_slope": slope}


def _train_share(run: Prefix) -> dict[str, float]:
    share, slope, _ = _level(run, run.column("train_share"))
    return {"train_share": share, "train_share_slope": slope}


def _entropy(run: Prefix) -> dict[str, float]:
    entropy, slope, _ = _log_level(run, "output_entropy")
    return {"log_entropy": entropy, "entropy_slope": slope}


def _loss(run: Prefix) -> dict[str, float]:
    losses = np.log(np.maximum(run.column("validation_loss"), 1e-8))
    level, slope, _ = _level(run, losses)
    highest = np.nanmax(losses) if not np.all(np.isnan(losses)) else nan
    classes = run.value("classes")
    guess = log(log(classes)) if classes > 1 else nan
    if run.value("is_squared_error") == 1:  # of answers with variance 1, the loss of their mean
        guess = 0.0
    return {"log_loss": level, "log_over_guess": level - guess, "loss_slope": slope, "loss_fall": highest - level}


def _odds(run: Prefix) -> dict[str, float]:
    accuracy = np.clip(run.column("validation_accuracy"), 0.002, 0.998)
    odds, slope, _ = _level(run, np.log(accuracy / (1 - accuracy)))
    return {"log_odds": odds, "odds_slope": slope}


def _answer_share(run: Prefix) -> dict[str, float]:
    share, slope, _ = _log_level(run, "answer_share", 1e-5)
    return {"log_share": share, "share_slope": slope}


def _level_of(column: str) -> Callable[[Prefix], float]:
    return lambda run: _level(run, run.column(column))[0]


def _log_level_of(column: str, least: float = 1e-8) -> Callable[[Prefix], float]:
    return lambda run: _log_level(run, column, least)[0]


def _log_level(run: Prefix, name: str, least: float = 1e-8) -> tuple[float, float, float]:
    return _level(run, np.log(np.maximum(run.column(name), least)))


def _level(run: Prefix, values: Float[np.ndarray, " evaluations"]) -> tuple[float, float, float]:
    """The median of the last fifth, its slope per log t against the fifth before, and its interquartile range."""
    now = max(run.step, 1)
    # What is older is not needed; plain lists are many times faster than arrays of this size.
    first = int(np.searchsorted(run.steps, now * (1 - 4 * SHARE)))
    pairs = zip(run.steps[first:].tolist(), values[first:].tolist(), strict=True)
    known = [(step, value) for step, value in pairs if value == value]
    if not known:
        return nan, nan, nan
    begin = min(bisect_left(known, (now * (1 - SHARE),)), max(len(known) - FEWEST, 0))
    before = min(bisect_left(known, (now * (1 - 2 * SHARE),)), max(begin - FEWEST, 0))
    last = sorted(value for _, value in known[begin:])
    level, spread = median(last), last[(3 * len(last)) // 4] - last[len(last) // 4]
    if begin == before:
        return level, 0.0, spread
    times = [log(max(step, 1)) for step, _ in known]
    apart = fmean(times[begin:]) - fmean(times[before:begin])
    slope = (level - median(value for _, value in known[before:begin])) / max(apart, 1e-3)
    return level, slope, spread


def _log(value: float) -> float:
    return log(value) if value > 0 else nan


ALONE: dict[str, Callable[[Prefix], float]] = {
    "log_update": _log_level_of("update_norm"),
    "update_cosine": _level_of("update_cosine"),
    "embedding_entropy": _level_of("embedding_entropy"),
    "logit_map_fsd": _level_of("logit_map_fsd"),
    "log_participation": _log_level_of("singular_participation"),
    "log_train_entropy": _log_level_of("output_entropy_train"),
    "log_margin": _log_level_of("train_margin"),
    "train_fsd": _level_of("train_fsd"),
    "train_spectral_entropy": _level_of("train_spectral_entropy"),
    "input_fsd": _level_of("input_fsd"),
    "log_input_rank": _log_level_of("input_rank"),
    "log_rank": _log_level_of("rank", 1.0),
    "fsd": _level_of("fsd"),
    "log_restricted": _log_level_of("restricted_logit_loss"),
    "spectral_entropy": _level_of("spectral_entropy"),
}
TOGETHER: dict[Callable[[Prefix], dict[str, float]], tuple[str, ...]] = {
    _configured: ("log_time", "log_clock", "log_rate", "log_data", "log_fraction"),
    _memorization: ("is_memorized", "log_memorized"),
    _training: ("log_train_loss", "train_spread"),
    _norm: ("log_norm", "norm_slope"),
    _train_share: ("train_share", "train_share_slope"),
    _entropy: ("log_entropy", "entropy_slope"),
    _loss: ("log_loss", "log_over_guess", "loss_slope", "loss_fall"),
    _odds: ("log_odds", "odds_slope"),
    _answer_share: ("log_share", "share_slope"),
}
OF_GROUP = {name: of_run for of_run, names in TOGETHER.items() for name in names}
