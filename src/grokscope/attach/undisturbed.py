"""A model, looked at and left exactly as it was: modes, chance and hooks."""

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import nn

__all__ = ["bare", "device_of", "home_of", "undisturbed"]


# How an accelerator's chance is kept, and put back.
CHANCE: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "cuda": (torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all),
    "mps": (torch.mps.get_rng_state, torch.mps.set_rng_state),
}


def bare(model: nn.Module) -> nn.Module:
    """The module inside `torch.compile`, `DataParallel` and `DistributedDataParallel`; they share its parameters.

    Reading it leaves compiled graphs alone, and asks no other process for anything.
    """
    while True:
        inside = getattr(model, "_orig_mod", None)
        if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            inside = model.module
        if not isinstance(inside, nn.Module):
            return model
        model = inside


def device_of(model: nn.Module) -> torch.device:
    """Where a model takes its inputs: where its first parameter is."""
    return next((tensor.device for tensor in chain(model.parameters(), model.buffers())), torch.device("cpu"))


def home_of(device: torch.device) -> torch.device:
    """Where float64 is reckoned for a device: mps has none."""
    return torch.device("cpu") if device.type == "mps" else device


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, no gradients, full precision; afterwards every mode and every source of chance is put back.

    Each submodule has its own mode back: one that its owner keeps in evaluation stays there. Autocast is off inside:
    what is read varies by 1e-4 of the activations, which half precision cannot hold. What is compiled, be it a part of
    the model, runs as it was written and is not compiled again.
    """
    modes = [(module, module.training) for module in model.modules()]
    numbers, arrays, bits = random.getstate(), np.random.get_state(), torch.get_rng_state()
    kept, put_back = CHANCE.get(device_of(model).type, (lambda: None, lambda state: None))
    on_device = kept()
    try:
        for module, _ in modes:
            module.training = False
        with torch.no_grad(), torch.autocast(device_of(model).type, enabled=False), _uncompiled():
            yield
    finally:
        for module, mode in modes:
            module.training = mode
        random.setstate(numbers)
        np.random.set_state(arrays)
        torch.set_rng_state(bits)
        put_back(on_device)


def _uncompiled() -> AbstractContextManager[Any]:
    """Nothing to do where the compiler was never loaded, which takes a second."""
    return torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()
