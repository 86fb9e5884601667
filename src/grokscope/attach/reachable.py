"""Every object that is reached from a model, in its attributes, containers, hooks and code.

Followed are modules, containers, and what the model's owner wrote: objects, classes, and functions such as hooks, with
the variables that they use. Objects of libraries (a Trainer, a tracker, a data loader) are left alone, for their
threads may be at work.
"""

import collections
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import PurePath
from typing import Any

import torch
from torch import Tensor, nn
from torch.jit import ScriptModule
from torch.nn.modules.lazy import LazyModuleMixin

__all__ = ["everything_in", "is_followed", "kind_of", "named_parts"]

SEQUENCES = (list, tuple, set, frozenset, collections.deque)
OBJECTS = (types.SimpleNamespace, collections.UserDict, collections.UserList)
FOLLOWED = (nn.Module, Tensor, dict, *SEQUENCES, *OBJECTS, types.CellType, types.MethodType, partial)
PLAIN = (types.NoneType, bool, int, float, complex, str, bytes, torch.dtype, torch.device, types.ModuleType)
NAMED = (types.FunctionType, types.CellType, type, ScriptModule)


@dataclass(frozen=True)
class Kind:
    """What there is to follow in objects of one class."""

    is_plain: bool
    """Whether there is nothing."""
    is_followed: bool
    """Whether it is one of the known kinds, or was written by the model's owner."""
    has_names: bool
    """Whether it holds something under names that no dictionary of its own has."""
    classes: tuple[type, ...]
    """Its classes that were written by the model's owner."""


def everything_in(model: nn.Module) -> Iterator[tuple[str, Any]]:
    """Every object that is reached from the model, once, with its dotted name."""
    seen: dict[int, Any] = {}  # the objects too: an id is one's own only as long as one lives
    waiting: list[tuple[str, Any]] = [("", model), *(("torch", one) for one in _shared())]
    while waiting:
        name, value = waiting.pop()
        if id(value) not in seen and not kind_of(type(value)).is_plain:
            seen[id(value)] = value
            yield name, value
            if is_followed(value):
                waiting.extend(_parts(name, value))


def _shared() -> Iterator[Any]:
    """What torch keeps for all models together; read now, for it is bound anew."""
    yield nn.utils.parametrize._cache
    yield from (nn.modules.module._global_forward_pre_hooks, nn.modules.module._global_forward_hooks)


def _examined(kind: type) -> Kind:
    return Kind(
        is_plain=issubclass(kind, PLAIN) or kind in weakref.ProxyTypes,
        is_followed=issubclass(kind, FOLLOWED) or not _is_library(kind.__module__),
        has_names=issubclass(kind, NAMED) or any("__slots__" in vars(one) for one in kind.__mro__),
        classes=tuple(one for one in kind.__mro__ if not _is_library(one.__module__)),
    )


kind_of: Callable[[type], Kind] = cache(_examined)


def is_followed(value: Any) -> bool:
    """Whether what an object holds is reached through it."""
    if isinstance(value, type | types.FunctionType):
        return not _is_library(value.__module__)
    if isinstance(value, LazyModuleMixin) and hasattr(value, "_initialize_hook"):
        return False  # it becomes another class at its first call
    return kind_of(type(value)).is_followed


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
    for key, part in chain(named, named_parts(value).items()):
        if not kind_of(type(part)).is_plain:  # most of what there is
            yield _joined(name, key), part
    yield from ((name, part) for part in _nameless_parts(value))


def _joined(name: str, key: Any) -> str:
    """A dotted name, without the tables in which a module keeps its parts."""
    if not isinstance(key, str):
        return f"{name}[{key!r:.20}]"
    return name if key in ("_modules", "_parameters", "_buffers", "cell_contents") else f"{name}.{key}".lstrip(".")


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
        yield from kind_of(type(value)).classes


def named_parts(value: Any) -> dict[str, Any]:
    """What an object holds under names that no dictionary of its own has."""
    if not kind_of(type(value)).has_names:
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
