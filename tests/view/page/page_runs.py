"""Small runs, and what a page embeds, read as its script reads it."""

import base64
import json
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from grokscope.specs import Architecture, Cadence, RunSpec, Training

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from benchmarks.synthetic import synthetic_records  # noqa: E402

__all__ = ["EVALUATION", "ROOT", "TINY", "columns", "facts", "synthetic_records"]

TINY = RunSpec(
    task="add_mod7",
    train_fraction=0.6,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=4, batch_size=16),
    checkpoints=Cadence(every=4),
    measurements=Cadence(every=2),
)
EVALUATION = {"train_accuracy": 0.5, "validation_accuracy": 0.25, "fsd": 0.1, "norm": 9.0}


def facts(embedded: dict[str, str]) -> dict[str, Any]:
    return json.loads(zlib.decompress(base64.b64decode(embedded["facts"])))


def columns(embedded: dict[str, str]) -> dict[str, np.ndarray]:
    """The columns as the page's script reads them, written a second time."""
    known, content = facts(embedded), zlib.decompress(base64.b64decode(embedded["columns"]))
    total, size = sum(known["lengths"]), 8 if known["digits"] is None else 4
    found = {
        "step": np.frombuffer(content[: 4 * total], np.uint8).reshape(4, total).T.copy().view("<i4")[:, 0].cumsum()
    }
    for place, name in enumerate(known["columns"]):
        part = content[4 * total + place * total * size :][: total * size]
        found[name] = np.frombuffer(part, np.uint8).reshape(size, total).T.copy().view(f"<f{size}")[:, 0]
    return found
