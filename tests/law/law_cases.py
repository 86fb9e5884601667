"""Runs with chosen times to grok, and the tables of the paper."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from grokscope.law import CensoredFit, ForkedRun, LawFit
from grokscope.timeline import Outcome
from paper_tables import FORK_NORM, WD_INTERVENTION

OUTCOMES = {"": Outcome.GROKKED, "†": Outcome.UNSTABLE_AFTER, "‡": Outcome.UNSTABLE}
DECAYS = (1.0, 2.0, 3.0, 5.0)
few = settings(max_examples=25, deadline=None)
cells = st.dictionaries(st.sampled_from([0.5, 1.0, 2.0, 3.0, 4.0, 5.0]), st.integers(1, 50), min_size=3, max_size=6)


def grokked(weight_decay: float, steps: float, draw: int = 0, **other: object) -> ForkedRun:
    return replace(ForkedRun(weight_decay, steps, Outcome.GROKKED, 100, 20_000, draw), **other)


def late(weight_decay: float, watched: float, draw: int = 0) -> ForkedRun:
    return ForkedRun(weight_decay, None, Outcome.NEVER, 100, watched, draw)


def intervention(marks: str = "†‡") -> list[ForkedRun]:
    return [
        ForkedRun(decay, steps, OUTCOMES[mark], 500, 7000, norm_at_fork=FORK_NORM)
        for decay, (_, steps, mark) in WD_INTERVENTION.items()
        if mark in marks
    ]


def noisy_runs(seed: int, constant: float = 3000, draws: int = 6, sigma: float = 0.15) -> list[ForkedRun]:
    """Runs scattered around C/λ, seen every 100 steps; one draw has no run at λ = 5."""
    generator = np.random.default_rng(seed)
    runs = []
    for draw, decay in itertools.product(range(draws), DECAYS):
        exact = constant / decay * math.exp(sigma * generator.normal())
        if (draw, decay) != (2, 5.0):
            runs.append(grokked(decay, 100 * math.ceil(exact / 100), draw, norm_at_fork=40 + 3 * draw))
    return runs


def mean_steps(runs: Sequence[ForkedRun]) -> tuple[np.ndarray, np.ndarray]:
    """λ and mean Δt of each λ, by a loop."""
    decays = sorted({run.weight_decay for run in runs})
    means = [np.mean([run.steps_to_grok for run in runs if run.weight_decay == decay]) for decay in decays]
    return np.array(decays), np.array(means)


def values(fit: LawFit | CensoredFit) -> list[float]:
    return [estimate.value for estimate in fit.parameters.values()]
