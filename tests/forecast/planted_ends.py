"""Runs with planted ends, made without training."""

from dataclasses import replace

import numpy as np

from grokscope.forecast.cases import Case, usable_cases
from grokscope.specs import RunSpec

__all__ = ["planted_cases", "planted_log"]

STEPS = [*range(0, 8001, 100)]


def planted_log(grok: int | None, speed: float = 1.0, noise: int = 0) -> dict[str, list[float]]:
    """A run whose validation loss falls linearly, in logs, to reach .05 when it groks."""
    rng = np.random.default_rng(noise)
    late = 1e9 if grok is None else grok
    left = [max(late - step, 0) for step in STEPS]
    return {
        "step": STEPS,
        "train_accuracy": [float(step >= 300) for step in STEPS],
        "validation_accuracy": [float(step >= late) for step in STEPS],
        "train_loss": [float(np.exp(-min(step, 1000) / 200)) for step in STEPS],
        "validation_loss": [float(np.exp(min(2.0, one / 1000) + 0.01 * rng.normal())) for one in left],
        "norm": [float(100 * np.exp(-speed * step / 5000)) for step in STEPS],
    }


def planted_cases(cells: int = 4, seeds: int = 8, never: int = 1) -> list[Case]:
    """Cells of different λ whose runs grok at 3,000/λ or so, and some in which none ever does."""
    runs = []
    for cell in range(cells + never):
        decay = 0.6 + 0.3 * cell
        base = RunSpec()
        spec = replace(base, training=replace(base.training, weight_decay=decay, steps=8000))
        for seed in range(seeds):
            grok = None if cell >= cells else int(3000 / decay * (0.8 + 0.05 * seed)) // 100 * 100
            shuffled = replace(spec, shuffled_labels=grok is None)
            runs.append((shuffled.with_seed(seed), planted_log(grok, decay, 100 * cell + seed)))
    return usable_cases(runs)
