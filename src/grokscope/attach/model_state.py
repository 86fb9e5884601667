"""All that a model holds: found by walking from it, remembered, and put back where an evaluation changed it.

Followed are modules, containers, and what its owner wrote: objects, classes, and functions such as hooks, with the
variables that they use. Objects of libraries (a Trainer, a tracker, a data loader) are left alone, for their threads
may be at work.
"""

import collections
import random
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from operator import is_
from pathlib import PurePath
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.jit import ScriptModule
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import is_lazy

from grokscope.attach.arguments import one_line
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
SEQUENCES = (list, tuple, set, frozenset, collections.deque)
OBJECTS = (types.SimpleNamespace, collections.UserDict, collections.UserList)
FOLLOWED = (nn.Module, Tensor, dict, *SEQUENCES, *OBJECTS, types.CellType, types.MethodType, partial)
PLAIN = (types.NoneType, bool, int, float, complex, str, bytes, torch.dtype, torch.device, types.ModuleType)
NAMED = (types.FunctionType, types.CellType, type, ScriptModule)


@dataclass(frozen=True)
class Kind:
    """What is done with objects of one class."""

    is_left: bool
    """Whether there is nothing to follow or restore."""
    is_followed: bool
    """Whether it is one of the known kinds, or was written by the model's owner."""
    has_names: bool
    """Whether it holds something under names that no dictionary of its own has."""
    container: type | None
    """What of `REFILL` it is."""
    generator: type | None
    """What of `GENERATORS` it is."""
    classes: tuple[type, ...]
    """Its classes that were written by the model's owner."""


@contextmanager
def preserve_held(model: nn.Module) -> Iterator[None]:
    """Afterwards the model holds what it held: the same objects, with the same contents."""
    undoing = [undo for name, value in _everything_in(model) for undo in _undoing(name, value)]
    try:
        yield
    finally:
        _do_all(reversed(undoing))


def warn_of_iterators(model: nn.Module) -> None:
    """Name the iterators that a model holds, which cannot be turned back when an evaluation advances them."""
    found = [name for name, value in _everything_in(model) if isinstance(value, Iterator) and not _is_followed(value)]
    if found:
        warnings.warn(
            f"{type(model).__name__} holds {', '.join(found)}: an evaluation that advances an iterator cannot turn it "
            "back, and changes what is trained",
            stacklevel=5,
        )


# What is held.


def _everything_in(model: nn.Module) -> Iterator[tuple[str, Any]]:
    """Every object that is reached from the model, once, with its dotted name."""
    seen: dict[int, Any] = {}  # the objects too: an id is one's own only as long as one lives
    waiting: list[tuple[str, Any]] = [("", model), *(("torch", one) for one in _shared())]
    while waiting:
        name, value = waiting.pop()
        if id(value) not in seen and not _kind(type(value)).is_left:
            seen[id(value)] = value
            yield name, value
            if _is_followed(value):
                waiting.extend(_parts(name, value))


def _shared() -> Iterator[Any]:
    """What torch keeps for all models together; read now, for it is bound anew."""
    yield nn.utils.parametrize._cache
    yield from (nn.modules.module._global_forward_pre_hooks, nn.modules.module._global_forward_hooks)


def _examined(kind: type) -> Kind:
    return Kind(
        is_left=issubclass(kind, PLAIN) or kind in weakref.ProxyTypes,
        is_followed=issubclass(kind, FOLLOWED) or not _is_library(kind.__module__),
        has_names=issubclass(kind, NAMED) or any("__slots__" in vars(one) for one in kind.__mro__),
        container=next((one for one in REFILL if issubclass(kind, one)), None),
        generator=next((one for one in GENERATORS if issubclass(kind, one) and kind is not random.SystemRandom), None),
        classes=tuple(one for one in kind.__mro__ if not _is_library(one.__module__)),
    )


_kind: Callable[[type], Kind] = cache(_examined)


def _is_followed(value: Any) -> bool:
    if isinstance(value, type | types.FunctionType):
        return not _is_library(value.__module__)
    if isinstance(value, LazyModuleMixin) and hasattr(value, "_initialize_hook"):
        return False  # it becomes another class at its first call
    return _kind(type(value)).is_followed


@cache
def _is_library(module: str | None) -> bool:
    top = (module or "").partition(".")[0]
    if top in sys.stdlib_module_names or top in ("torch", "grokscope"):
        return True
    if top in ("__main__", "__mp_main__"):  # whatever program has begun it
        return False
    path = PurePath(getattr(sys.modules.get(module or ""), "__file__", None) or "")
    return not {"site-packages", "dist-packages"}.isdisjoint(path.parts)


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, each under its name."""
    if isinstance(value, dict):
        named: Iterable[tuple[Any, Any]] = list(value.items())
    elif isinstance(value, SEQUENCES):
        named = enumerate(list(value))
    elif isinstance(value, types.FunctionType):
        named = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
    else:
        named = ()
    for key, part in chain(named, _named_parts(value).items()):
        if not _kind(type(part)).is_left:  # most of what there is
            yield _joined(name, key), part
    yield from ((name, part) for part in _nameless_parts(value))


def _joined(name: str, key: Any) -> str:
    """A dotted name, without the tables in which a module keeps its parts."""
    if key in ("_modules", "_parameters", "_buffers", "cell_contents"):
        return name
    return f"{name}.{key}".lstrip(".") if isinstance(key, str) else f"{name}[{key!r:.20}]"


def _nameless_parts(value: Any) -> Iterator[Any]:
    """What stands behind an object: its attributes, its classes, the parts of a callable."""
    if isinstance(value, types.MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, types.FunctionType):
        yield from (value.__dict__, value.__defaults__, value.__kwdefaults__)
    elif not isinstance(value, type):
        if type(value).__dictoffset__:
            yield value.__dict__
        yield from _kind(type(value)).classes


def _named_parts(value: Any) -> dict[str, Any]:
    """What an object holds under names that no dictionary of its own has."""
    if not _kind(type(value)).has_names:
        return {}
    if isinstance(value, ScriptModule):
        return dict(chain(value.named_children(), value.named_buffers(recurse=False)))
    if isinstance(value, types.FunctionType):
        return {key: value.__globals__[key] for key in _global_names(value.__code__) & value.__globals__.keys()}
    if isinstance(value, types.CellType):
        try:
            return {"cell_contents": value.cell_contents}
        except ValueError:  # not assigned yet
            return {}
    if isinstance(value, type):
        return dict(vars(value))
    state = object.__getstate__(value)
    return state[1] if isinstance(state, tuple) else {}


@cache
def _global_names(code: types.CodeType) -> set[str]:
    inside = (part for part in code.co_consts if isinstance(part, types.CodeType))
    return set(code.co_names).union(*map(_global_names, inside))


# How it is put back.


def _undoing(name: str, value: Any) -> Iterator[Callable[[], None]]:
    """What restores an object as it is now."""
    kind = _kind(type(value))
    if isinstance(value, Tensor):
        if (before := _copied(value)) is not None:
            yield partial(_put_back, name, value, before)
    elif isinstance(value, np.ndarray):
        if value.flags.writeable and not isinstance(value, np.memmap):
            yield partial(np.copyto, value, value.copy())
    elif kind.generator:
        read, write = GENERATORS[kind.generator]
        yield partial(write, value, read(value))
    elif kind.container:
        yield partial(_restore_contents, value, REFILL[kind.container], *_contents(value))
    if kind.has_names and _is_followed(value):
        yield partial(_restore_names, value, _named_parts(value))


def _do_all(works: Iterable[Callable[[], None]]) -> None:
    """Go on with the others if one fails, and raise what the first raised at the end."""
    errors = []
    for work in works:
        try:
            work()
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _contents(held: Any) -> tuple[list[Any], list[Any]]:
    """The elements of a container, or the keys and the values of a dictionary."""
    return list(held), list(held.values()) if isinstance(held, dict) else []


def _restore_contents(held: Any, refill: Callable[[Any, Any], None], keys: list[Any], values: list[Any]) -> None:
    now = _contents(held)
    if len(now[0]) != len(keys) or not all(map(is_, chain(*now), chain(keys, values))):
        held.clear()
        refill(held, zip(keys, values, strict=True) if values else keys)


def _restore_names(value: Any, before: dict[str, Any]) -> None:
    now = _named_parts(value)
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


def _put_back(name: str, tensor: Tensor, before: Copy) -> None:
    is_in_place = _memory(tensor) == _memory(before.memory)
    # One that is as it was is not written: a backward pass under way may hold it.
    if is_in_place and _version(tensor) == before.version and _same_values(tensor, before.values):
        return
    try:
        if not is_in_place:
            tensor.data = before.memory
        with torch.inference_mode(tensor.is_inference()), torch.no_grad():
            tensor.copy_(before.values)
        if before.version is not None:
            torch._C._autograd._unsafe_set_version_counter((tensor,), (before.version,))
    except Exception as error:  # whatever its kind of tensor raises
        raise InputError(
            f"the model changes its tensor {name!r} when it is run, which cannot be undone: {one_line(error)}"
        ) from error


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
