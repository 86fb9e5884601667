"""The norms at which parents grok, which the levels of their forks are multiples of.

`python -m grokscope.studies.clock.set_levels` reads the parents and writes `levels.json`; commit it before the forks
are trained. Until then a level is a multiple of what was assumed: the norms that are reported of the MLP and of
attention without LayerNorm (54.6 and 36.9), what the released code has of attention with all LayerNorms at p = 71
(18.3, of its groups together), and guesses for the other two.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

__all__ = ["LEVELS", "known_levels", "norm_at_grokking"]

LEVELS = Path(__file__).with_name("levels.json")
"""Model → the assumed norm, and by seed the measured ones."""


@cache
def known_levels() -> Mapping[str, Mapping[str, Any]]:
    """What is in the file.

    >>> known_levels()["mlp"]["assumed"]
    54.6
    """
    found: dict[str, dict[str, Any]] = json.loads(LEVELS.read_text(encoding="utf-8"))
    return found


def norm_at_grokking(model: str, seed: int) -> float:
    """‖W‖ at which a parent groks: its own, else the median of those that are known, else the assumed one.

    >>> norm_at_grokking("mlp", 0) > 0
    True
    """
    known = known_levels()[model]
    measured: Mapping[str, float] = known.get("measured", {})
    return float(measured.get(str(seed), median(measured.values()) if measured else known["assumed"]))
