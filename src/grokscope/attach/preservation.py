"""A model is evaluated and left exactly as it was: modes, buffers, random generators and hooks."""

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from grokscope.attach.arguments import one_line
from grokscope.errors import InputError, require

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
    """Evaluation mode, no gradients, full precision; afterwards modes, buffers and random generators are restored.

    Each submodule has its own mode back: one that its owner keeps in evaluation stays there. Autocast is off inside:
    what is read varies by 1e-4 of the activations, which half precision cannot hold. What is compiled, be it a part of
    the model, runs as it was written and is not compiled again. A model that counts its calls in a plain attribute
    counts these too.
    """
    kinds = {tensor.device.type for tensor in chain(model.parameters(), model.buffers())} - {"meta"} or {"cpu"}
    with ExitStack() as stack:
        stack.enter_context(_same_random_state(model, kinds))
        stack.enter_context(_same_buffers(model))
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
def _same_random_state(model: nn.Module, kinds: set[str]) -> Iterator[None]:
    """Every global generator, and those that modules hold as attributes."""
    attributes = [value for module in model.modules() for value in vars(module).values()]
    own = [(value.get_state, value.set_state) for value in attributes if isinstance(value, torch.Generator)]
    shared = [RANDOM_STATE[kind] for kind in ("python", "numpy", "torch", *sorted(kinds & {*RANDOM_STATE}))]
    states = [(set_state, get_state()) for get_state, set_state in (*own, *shared)]
    try:
        yield
    finally:
        for set_state, state in states:
            set_state(state)


@contextmanager
def _same_buffers(model: nn.Module) -> Iterator[None]:
    """Buffers that a forward pass changes in evaluation too: counters, averages, caches, and those it registers."""
    with ExitStack() as stack:  # goes on with the others if one cannot be restored, and raises at the end
        for module in model.modules():
            stack.callback(_forget_new, module, dict(module._buffers.items()), dict(vars(module)))
            for name, buffer in module._buffers.items():
                if buffer is not None and (before := _copied(buffer)) is not None:
                    stack.callback(_put_back, name, buffer, before, _version(buffer))
        yield


def _forget_new(module: nn.Module, buffers: dict[str, Tensor | None], attributes: dict[str, Any]) -> None:
    """The same buffers as before; with a new one goes the flag or length that says it is there."""
    now = dict(module._buffers.items())  # of a scripted module it is no dictionary, and cannot be written to
    for name, buffer in buffers.items():
        if name not in now or now[name] is not buffer:
            module._buffers[name] = buffer
    new = now.keys() - buffers.keys()
    for name in new:
        del module._buffers[name]
    if new:
        module._non_persistent_buffers_set -= new
        plain = [name for name, value in vars(module).items() if isinstance(value, bool | int | float | str | None)]
        for name in {*plain} - attributes.keys():
            del vars(module)[name]
        vars(module).update({name: attributes[name] for name in plain if name in attributes})


def _copied(buffer: Tensor) -> Tensor | None:
    """None of what has no numbers (meta, not yet initialised) or knows no copy."""
    if is_lazy(buffer) or buffer.is_meta:
        return None
    try:
        return buffer.detach().clone()
    except NotImplementedError:
        return None


def _put_back(name: str, buffer: Tensor, before: Tensor, version: int | None) -> None:
    # One that is as it was is not written: a backward pass under way may hold it.
    if _version(buffer) == version and _same_values(buffer, before):
        return
    try:
        with torch.no_grad():
            if buffer.shape == before.shape:
                buffer.copy_(before)
            elif buffer.requires_grad:  # which cannot be resized
                buffer.data = before
            else:
                buffer.resize_(before.shape).copy_(before)
    except Exception as error:  # whatever its kind of tensor raises
        raise InputError(
            f"the model changes its buffer {name!r} when it is run, which cannot be undone: {one_line(error)}"
        ) from error


def _version(buffer: Tensor) -> int | None:
    """How often a tensor was written, changes through `.data` left out; None of inference tensors."""
    return None if buffer.is_inference() else buffer._version


def _same_values(buffer: Tensor, before: Tensor) -> bool:
    """NaN is the same as NaN. Where there is nothing to compare by (sparse, nested), the version alone tells."""
    if buffer.layout is not torch.strided or buffer.is_nested or torch.equal(buffer, before):
        return True
    both_undefined = (buffer != buffer) & (before != before) if buffer.shape == before.shape else None
    return both_undefined is not None and bool(((buffer == before) | both_undefined).all())


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
