"""All that a model holds, remembered, and put back where an evaluation changed it."""

import collections
import random
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from operator import is_
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.jit import ScriptModule
from torch.nn.parameter import is_lazy

from grokscope.attach.arguments import one_line
from grokscope.attach.reachable import everything_in, is_followed, kind_of, named_parts
from grokscope.errors import InputError

__all__ = ["preserve_held", "warn_of_iterators"]

# How a random generator is read and restored.
GENERATORS: dict[type, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    torch.Generator: (torch.Generator.get_state, torch.Generator.set_state),
    random.Random: (random.Random.getstate, random.Random.setstate),
    np.random.RandomState: (np.random.RandomState.get_state, np.random.RandomState.set_state),
    np.random.Generator: (lambda one: one.bit_generator.state, lambda one, state: _set_bits(one.bit_generator, state)),
    np.random.BitGenerator: (lambda one: one.state, lambda one, state: _set_bits(one, state)),
}
# How a container that can change is given what it held.
REFILL: dict[type, Callable[[Any, list[Any]], None]] = {
    dict: lambda held, before: held.update(before),
    set: lambda held, before: held.update(before),
    list: lambda held, before: held.extend(before),
    collections.deque: lambda held, before: held.extend(before),
}


@contextmanager
def preserve_held(model: nn.Module) -> Iterator[None]:
    """Afterwards the model holds what it held: the same objects, with the same contents."""
    undoing = [(name, undo) for name, value in everything_in(model) for undo in _undoing(value)]
    try:
        yield
    finally:
        _undo_all(reversed(undoing))


def warn_of_iterators(model: nn.Module) -> None:
    """Name the iterators that a model holds, which cannot be turned back when an evaluation advances them."""
    found = [name for name, value in everything_in(model) if isinstance(value, Iterator) and not is_followed(value)]
    if found:
        warnings.warn(
            f"{type(model).__name__} holds {', '.join(found)}: an evaluation that advances an iterator cannot turn it "
            "back, and changes what is trained",
            stacklevel=5,
        )


def _found(kind: type) -> tuple[type | None, type | None]:
    """What of `REFILL`, and of `GENERATORS`, a class is."""
    container, generator = (
        next((one for one in known if issubclass(kind, one)), None) for known in (REFILL, GENERATORS)
    )
    return container, generator if kind is not random.SystemRandom else None


_restored_as: Callable[[type], tuple[type | None, type | None]] = cache(_found)


def _undoing(value: Any) -> Iterator[Callable[[], None]]:
    """What restores an object as it is now."""
    container, generator = _restored_as(type(value))
    if isinstance(value, Tensor):
        if (before := _copied(value)) is not None:
            yield partial(_put_back, value, before)
    elif isinstance(value, np.ndarray):
        if value.flags.writeable and not isinstance(value, np.memmap):
            yield partial(np.copyto, value, value.copy())
    elif generator is not None:
        read, write = GENERATORS[generator]
        yield partial(write, value, read(value))
    elif container is not None:
        yield partial(_restore_contents, value, REFILL[container], *_contents(value))
    if kind_of(type(value)).has_names and is_followed(value):
        yield partial(_restore_names, value, named_parts(value))


def _undo_all(undoing: Iterable[tuple[str, Callable[[], None]]]) -> None:
    """Go on with the others if one cannot be restored, and name the first of these at the end."""
    failed: list[tuple[str, Exception]] = []
    for name, undo in undoing:
        try:
            undo()
        except Exception as error:  # whatever its kind of tensor or container raises
            failed.append((name, error))
    if failed:
        name, first = failed[0]
        sentence = f"the model changes {name!r} when it is run, which cannot be undone: {one_line(first)}"
        raise InputError(sentence) from first


def _contents(held: Any) -> tuple[list[Any], list[Any]]:
    """The elements of a container, or the keys and the values of a dictionary."""
    return list(held), list(held.values()) if isinstance(held, dict) else []


def _restore_contents(held: Any, refill: Callable[[Any, Any], None], keys: list[Any], values: list[Any]) -> None:
    now = _contents(held)
    if len(now[0]) != len(keys) or not all(map(is_, chain(*now), chain(keys, values))):
        held.clear()
        refill(held, zip(keys, values, strict=True) if values else keys)


def _restore_names(value: Any, before: dict[str, Any]) -> None:
    now = named_parts(value)
    if isinstance(value, types.FunctionType):
        write, forget = value.__globals__.__setitem__, value.__globals__.__delitem__
    else:
        plain = object if not isinstance(value, type | ScriptModule) else type(value)  # of a frozen dataclass, too
        write, forget = partial(plain.__setattr__, value), partial(plain.__delattr__, value)
    for key in now.keys() - before.keys():
        forget(key)
    for key, part in before.items():
        if key not in now or now[key] is not part:
            write(key, part)


def _set_bits(generator: Any, state: Any) -> None:
    generator.state = state


@dataclass(frozen=True)
class Copy:
    """A tensor as it was."""

    version: int | None
    """How often it had been written, changes through `.data` left out; None of inference tensors."""
    memory: Tensor
    """What it shared its memory with."""
    values: Tensor
    """Its values."""


def _copied(tensor: Tensor) -> Copy | None:
    """None of what has no numbers (meta, not yet initialised) or knows no copy."""
    if is_lazy(tensor) or tensor.is_meta:
        return None
    try:
        return Copy(_version(tensor), tensor.data, tensor.detach().clone())
    except NotImplementedError:
        return None


def _put_back(tensor: Tensor, before: Copy) -> None:
    is_in_place = _memory(tensor) == _memory(before.memory)
    # One that is as it was is not written: a backward pass under way may hold it.
    if is_in_place and _version(tensor) == before.version and _same_values(tensor, before.values):
        return
    if not is_in_place:
        tensor.data = before.memory
    with torch.inference_mode(tensor.is_inference()), torch.no_grad():
        tensor.copy_(before.values)
    if before.version is not None:
        torch._C._autograd._unsafe_set_version_counter((tensor,), (before.version,))


def _memory(tensor: Tensor) -> tuple[Any, ...] | None:
    """Where a tensor lies, and in which shape; None of those whose memory is not one block."""
    if tensor.layout is not torch.strided or tensor.is_nested or hasattr(tensor, "__tensor_flatten__"):
        return None
    return tensor.data_ptr(), tensor.shape, tensor.stride()


def _version(tensor: Tensor) -> int | None:
    return None if tensor.is_inference() else tensor._version


def _same_values(tensor: Tensor, before: Tensor) -> bool:
    """NaN is the same as NaN. Where there is nothing to compare by (sparse, nested), the version alone tells."""
    if tensor.layout is not torch.strided or tensor.is_nested or torch.equal(tensor, before):
        return True
    both_undefined = (tensor != tensor) & (before != before) if tensor.shape == before.shape else None
    return both_undefined is not None and bool(((tensor == before) | both_undefined).all())
