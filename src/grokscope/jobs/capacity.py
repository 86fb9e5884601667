"""How many runs fit on a device."""

import torch

from grokscope.model import layout_of
from grokscope.training import CohortKey

__all__ = ["bytes_per_run", "slots_in", "slots_that_fit"]

MOST_SLOTS = 512
MIB_PER_RUN = 30  # a guess to start from: 28.8 MiB were allocated per run of the paper's model at batch 512, TF32
HEADROOM = 0.7  # of free memory


def slots_that_fit(key: CohortKey, device: str) -> int:
    """How many runs to train at once, from the free memory of a device that is here."""
    return slots_in(key, _free_memory(device))


def slots_in(key: CohortKey, memory: int) -> int:
    """How many runs to train at once in so many bytes, of which some are left free."""
    return max(1, min(MOST_SLOTS, int(HEADROOM * memory / bytes_per_run(key))))


def bytes_per_run(key: CohortKey) -> int:
    """Memory of one run in a stack: parameters, gradient, moments and activations."""
    floats = 5 if key.gradient == "grokfast" else 4  # weights, two moments, gradient; Grokfast's average
    parameters = 4 * floats * layout_of(key.architecture, key.size).size
    return parameters + int(MIB_PER_RUN * 2**20 * key.batch / 512 * key.architecture.layers / 2)


def _free_memory(device: str) -> int:
    if device == "mps":
        return torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory()
    return torch.cuda.mem_get_info(device)[0]
