"""A model is evaluated and left exactly as it was: modes, random generators, gradients and all that it holds."""

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from grokscope.attach.model_state import preserve_held
from grokscope.errors import require

__all__ = ["device_of", "home_of", "preserve_state", "unwrap"]


# How the random state of a library, or of a kind of device, is read and restored.
RANDOM_STATE: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "python": (random.getstate, random.setstate),
    "numpy": (np.random.get_state, np.random.set_state),
    "torch": (torch.get_rng_state, torch.set_rng_state),
    "cuda": (torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all),
    "mps": (torch.mps.get_rng_state, torch.mps.set_rng_state),
}
# Where torch.compile and Lightning's Fabric keep the module that they wrap.
INSIDE = ("_orig_mod", "_original_module")


def unwrap(model: Any) -> nn.Module:
    """The module inside `torch.compile`, `DataParallel`, `DistributedDataParallel`, Fabric's and nnsight's wrappers.

    They share its parameters. Reading it leaves compiled graphs alone, and asks no other process for anything. What is
    no module, or has no numbers yet, is rejected.
    """
    while (inside := _wrapped(model)) is not None:
        model = inside
    return _ready(model)


def device_of(model: nn.Module) -> torch.device:
    """Where a model takes its inputs: where its first parameter is."""
    return next((tensor.device for tensor in chain(model.parameters(), model.buffers())), torch.device("cpu"))


def home_of(device: torch.device) -> torch.device:
    """Where float64 is computed for a device: mps has none."""
    return torch.device("cpu") if device.type == "mps" else device


@contextmanager
def preserve_state(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, no gradients, full precision; afterwards modes, random generators and all it holds are restored.

    Each submodule has its own mode back: one that its owner keeps in evaluation stays there. Autocast is off inside:
    what is read varies by 1e-4 of the activations, which half precision cannot hold. What is compiled, be it a part of
    the model, runs as it was written and is not compiled again.
    """
    kinds = {tensor.device.type for tensor in chain(model.parameters(), model.buffers())} - {"meta"} or {"cpu"}
    with ExitStack() as stack:
        stack.enter_context(_same_random_state(kinds))
        stack.enter_context(preserve_held(model))
        stack.enter_context(_same_gradients(model))
        stack.enter_context(_evaluating(model))
        stack.enter_context(_forward_as_written(model))
        for kind in sorted(kinds):
            stack.enter_context(torch.autocast(kind, enabled=False))
        stack.enter_context(_uncompiled())
        stack.enter_context(torch.no_grad())
        yield


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    modes = [(module, module.training) for module in model.modules()]
    try:
        # Not `eval()`, which a module may use to do more, such as folding one weight into another.
        for module, _ in modes:
            module.training = False
        yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextmanager
def _same_random_state(kinds: set[str]) -> Iterator[None]:
    """Every global generator; those that the model holds are its own state."""
    shared = [RANDOM_STATE[kind] for kind in ("python", "numpy", "torch", *sorted(kinds & {*RANDOM_STATE}))]
    states = [(set_state, get_state()) for get_state, set_state in shared]
    try:
        yield
    finally:
        for set_state, state in states:
            set_state(state)


@contextmanager
def _same_gradients(model: nn.Module) -> Iterator[None]:
    """Set aside, not copied: a forward pass that runs a backward pass of its own begins without any."""
    gradients = [(parameter, parameter.grad) for parameter in model.parameters()]
    try:
        for parameter, _ in gradients:
            parameter.grad = None
        yield
    finally:
        for parameter, gradient in gradients:
            parameter.grad = gradient


@contextmanager
def _forward_as_written(model: nn.Module) -> Iterator[None]:
    """Without the autocast that Accelerate, and so Hugging Face's Trainer, puts around a model's own `forward`."""
    wrapped, written = vars(model).get("forward"), vars(model).get("_original_forward")
    if wrapped is None or written is None:
        yield
        return
    try:
        vars(model)["forward"] = written
        yield
    finally:
        vars(model)["forward"] = wrapped


def _wrapped(model: Any) -> Any:
    if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        return model.module
    if isinstance(model, nn.Module):
        return next((model._modules[name] for name in INSIDE if name in model._modules), None)
    return getattr(model, "__dict__", {}).get("_module")  # nnsight's, which answers for any other name


def _uncompiled() -> AbstractContextManager[Any]:
    """Nothing to do where the compiler was never loaded, which takes a second."""
    return torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()


def _ready(model: Any) -> nn.Module:
    require(isinstance(model, nn.Module), "a monitor reads a torch.nn.Module", model)
    for name, parameter in model.named_parameters():
        require(
            not is_lazy(parameter),
            f"{type(model).__name__} has no shape for {name} yet: run one batch through it first",
        )
        require(
            not parameter.is_meta,
            f"{type(model).__name__} is on the meta device, without numbers: give it weights first",
        )
    return model
