"""Which devices this machine has, and how much memory."""

import os

import torch
from torch.backends.mps import is_available as mps_is_available

__all__ = ["is_available", "total_memory"]


def is_available(device: str) -> bool:
    """Whether this machine has the device: cpu, cuda (or cuda:1), mps."""
    kind = device.partition(":")[0]
    return kind == "cpu" or (kind == "cuda" and torch.cuda.is_available()) or (kind == "mps" and mps_is_available())


def total_memory(device: str) -> int:
    """Bytes that a device of this machine has in all, whether they are free or not.

    >>> total_memory("cpu") > 2**20
    True
    """
    kind = torch.device(device).type  # of "cpu:0" too
    if kind == "cpu":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return torch.mps.recommended_max_memory() if kind == "mps" else torch.cuda.mem_get_info(device)[1]
