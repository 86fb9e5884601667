"""Where a measurement comes from: enough to repeat it, and nothing about the place where it was made."""

import json
import platform
import subprocess
from pathlib import Path
from typing import Any

import numpy
import torch

import grokscope

RESULTS = Path(__file__).parent / "results"


def provenance() -> dict[str, Any]:
    """Commit, processor or accelerator, and versions."""
    git = ["git", "-C", str(RESULTS), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    return {
        "commit": commit,
        "processor": _processor(),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "grokscope": grokscope.__version__,
    }


def save(name: str, measured: Any) -> None:
    """Write benchmarks/results/NAME.json: the measurement with its provenance."""
    RESULTS.mkdir(exist_ok=True)
    record = {"provenance": provenance(), "measured": measured}
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    print(f"wrote benchmarks/results/{name}.json")


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()
