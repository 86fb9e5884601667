"""What a quantity's value follows from, as one digest of source text.

It covers the quantity's function, the functions, classes and plain constants that it and they name, as far as these are
of a study, the law, the timeline or the statistics, and how a run's events are found. What is reached only as a method
of a value (a record's columns, say) is not covered, nor are the other rooms and other packages.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from types import CodeType, FunctionType, ModuleType
from typing import Any

from grokscope.timeline import timeline_of

__all__ = ["code_digest"]

ROOMS = ("grokscope.studies", "grokscope.law", "grokscope.timeline", "grokscope.stats")
PLAIN = (bool, int, float, str, type(None))


def code_digest(function: Callable[..., Any]) -> str:
    """SHA-256 of all that the function names, and of what that names, in the order of the names."""
    home = function.__module__.partition(".")[0]
    rooms = ROOMS if home == "grokscope" else (*ROOMS, home)
    found: dict[str, str] = {}
    waiting: list[Any] = [timeline_of, function]
    while waiting:
        one = inspect.unwrap(waiting.pop())
        name = f"{one.__module__}.{one.__qualname__}"
        if name in found:
            continue
        found[name] = _source(one)
        for place, value in _named_values(one):
            if isinstance(value, FunctionType | type) and _is_in(value.__module__, rooms):
                waiting.append(value)
            elif _is_plain(value) and _is_in(place, rooms):
                found[place] = repr(value)
    return sha256("\n".join(f"{name}: {found[name]}" for name in sorted(found)).encode()).hexdigest()


_source = cache(inspect.getsource)


def _named_values(one: Any) -> Iterator[tuple[str, Any]]:
    """What a function, or a class's methods, name in their module and in the modules that they name; with the place."""
    functions = [one] if isinstance(one, FunctionType) else [*map(_function, vars(one).values())]
    names = sorted({name for part in functions if part is not None for name in _names(inspect.unwrap(part).__code__)})
    home = sys.modules.get(one.__module__)  # code that was run without being imported has its globals alone
    space = vars(home) if home else next((part.__globals__ for part in functions if part), {})
    modules = {value.__name__: vars(value) for name in names if isinstance(value := space.get(name), ModuleType)}
    for place, values in ({one.__module__: space} | modules).items():
        yield from ((f"{place}.{name}", values[name]) for name in names if name in values)


def _function(member: Any) -> FunctionType | None:
    """The function behind a method, a property or a class method."""
    inner = next((found for by in ("fget", "func", "__func__") if (found := getattr(member, by, None))), member)
    return inner if isinstance(inner, FunctionType) else None


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def _is_in(name: str, rooms: tuple[str, ...]) -> bool:
    return any(name == room or name.startswith(room + ".") for room in rooms)


def _is_plain(value: Any) -> bool:
    return isinstance(value, PLAIN) or (isinstance(value, tuple) and all(map(_is_plain, value)))
