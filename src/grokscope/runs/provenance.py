"""Where a result comes from: enough to repeat it, and nothing about the place where it was made."""

import os
import platform
import subprocess
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy
import torch

from grokscope.version import __version__

__all__ = ["device_name", "provenance"]


@lru_cache(maxsize=4)
def provenance(device: str) -> dict[str, Any]:
    """Commit, processor or accelerator, and versions."""
    return {
        "grokscope": __version__,
        "commit": _commit(),
        "device": device_name(device),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        **_kernels_of(device),
    }


def _kernels_of(device: str) -> dict[str, str]:
    """What compiles kernels on CUDA: another version may add up in another order."""
    if not device.startswith("cuda"):
        return {}
    try:
        return {"triton": version("triton")}
    except PackageNotFoundError:
        return {}


def device_name(device: str) -> str:
    """What computes: the accelerator's name, or the processor's."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_name()
    information = Path("/proc/cpuinfo")
    for line in information.read_text().splitlines() if information.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    """The commit of the source tree, with `-dirty` for uncommitted changes; a copy without history has a variable."""
    if known := os.environ.get("GROKSCOPE_COMMIT"):
        return known
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
