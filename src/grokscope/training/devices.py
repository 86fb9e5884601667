"""Which devices this machine has."""

import torch
from torch.backends.mps import is_available as mps_is_available

__all__ = ["is_available"]


def is_available(device: str) -> bool:
    """Whether this machine has the device: cpu, cuda (or cuda:1), mps."""
    kind = device.partition(":")[0]
    return kind == "cpu" or (kind == "cuda" and torch.cuda.is_available()) or (kind == "mps" and mps_is_available())
