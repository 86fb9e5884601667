"""What a forecaster reads of a run so far: a few clocks and signals, each one number that a person can name.

Levels are medians over the last fifth of the run, since losses spike; slopes compare them with the fifth before, per
unit of the logarithm of time, so that they do not depend on how often a run was evaluated.
"""

from bisect import bisect_left
from collections.abc import Sequence
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
    needed = {SIGNALS[name][0] for name in names}
    found = _configured(run)
    for tier, part in {1: _training, 2: _weights, 3: _on_training_rows, 4: _on_inputs, 5: _validation}.items():
        found |= part(run) if tier in needed else {}
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


def _training(run: Prefix) -> dict[str, float]:
    losses = np.log(np.maximum(run.column("train_loss"), 1e-8))
    level, _, spread = _level(run, losses)
    learnt = run.memorized
    measured = not np.all(np.isnan(run.column("train_accuracy")))
    return {
        "is_memorized": float(learnt is not None) if measured else nan,
        "log_memorized": log(max(run.step if learnt is None else learnt, 100)) if measured else nan,
        "log_train_loss": level,
        "train_spread": spread,
    }


def _weights(run: Prefix) -> dict[str, float]:
    norms = run.column("norm")
    first = norms[~np.isnan(norms)][:1]
    logs = np.log(np.maximum(norms, 1e-8) / (first[0] if len(first) else 1.0))
    level, slope, _ = _level(run, logs)
    return {
        "log_norm": level,
        "norm_slope": slope,
        "log_update": _level(run, np.log(np.maximum(run.column("update_norm"), 1e-8)))[0],
        "update_cosine": _level(run, run.column("update_cosine"))[0],
        "embedding_entropy": _level(run, run.column("embedding_entropy"))[0],
        "logit_map_fsd": _level(run, run.column("logit_map_fsd"))[0],
        "log_participation": _log_level(run, "singular_participation")[0],
    }


def _on_training_rows(run: Prefix) -> dict[str, float]:
    share, share_slope, _ = _level(run, run.column("train_share"))
    return {
        "log_train_entropy": _log_level(run, "output_entropy_train")[0],
        "log_margin": _log_level(run, "train_margin")[0],
        "train_fsd": _level(run, run.column("train_fsd"))[0],
        "train_spectral_entropy": _level(run, run.column("train_spectral_entropy"))[0],
        "train_share": share,
        "train_share_slope": share_slope,
    }


def _on_inputs(run: Prefix) -> dict[str, float]:
    entropy, slope, _ = _log_level(run, "output_entropy")
    return {
        "log_entropy": entropy,
        "entropy_slope": slope,
        "input_fsd": _level(run, run.column("input_fsd"))[0],
        "log_input_rank": _log_level(run, "input_rank")[0],
    }


def _log_level(run: Prefix, name: str) -> tuple[float, float, float]:
    return _level(run, np.log(np.maximum(run.column(name), 1e-8)))


def _validation(run: Prefix) -> dict[str, float]:
    losses = np.log(np.maximum(run.column("validation_loss"), 1e-8))
    level, slope, _ = _level(run, losses)
    highest = np.nanmax(losses) if not np.all(np.isnan(losses)) else nan
    accuracy = np.clip(run.column("validation_accuracy"), 0.002, 0.998)
    odds, odds_slope, _ = _level(run, np.log(accuracy / (1 - accuracy)))
    shares, share_slope, _ = _level(run, np.log(np.maximum(run.column("answer_share"), 1e-5)))
    return {
        "log_loss": level,
        "loss_slope": slope,
        "loss_fall": highest - level,
        "log_odds": odds,
        "odds_slope": odds_slope,
        "log_rank": _level(run, np.log(np.maximum(run.column("rank"), 1.0)))[0],
        "fsd": _level(run, run.column("fsd"))[0],
        "log_share": shares,
        "share_slope": share_slope,
        "log_restricted": _level(run, np.log(np.maximum(run.column("restricted_logit_loss"), 1e-8)))[0],
        "spectral_entropy": _level(run, run.column("spectral_entropy"))[0],
    }


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
