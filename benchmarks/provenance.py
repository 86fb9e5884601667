"""Measurements, stored with where they come from."""

import json
from pathlib import Path
from typing import Any

from grokscope.runs.provenance import provenance

RESULTS = Path(__file__).parent / "results"


def save(name: str, measured: Any, device: str = "cpu") -> None:
    """Write benchmarks/results/NAME.json: the measurement with its provenance."""
    RESULTS.mkdir(exist_ok=True)
    record = {"provenance": provenance(device), "measured": measured}
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    print(f"wrote benchmarks/results/{name}.json")
