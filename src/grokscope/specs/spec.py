"""What every spec can do: check itself, become JSON and come back exactly, and name itself by its content."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from grokscope.errors import InputError, did_you_mean, require, shown
from grokscope.files import parse_json

__all__ = ["Spec", "require"]

SomeSpec = TypeVar("SomeSpec", bound="Spec")
WORD_LIMIT = 2**63  # whole numbers end up in signed 64-bit words
HASH_CHARACTERS = 16  # 64 bits: with 10⁶ runs two names meet with a chance of 3e-8
PLAIN = (int, float, str, bool)
RULES: dict[str, Callable[[float], bool]] = {
    "be at least 0": lambda x: x >= 0,
    "be at least 1": lambda x: x >= 1,
    "be positive": lambda x: x > 0,
    "lie in [0, 1)": lambda x: 0 <= x < 1,
    "lie in (0, 1]": lambda x: 0 < x <= 1,
}


@dataclass(frozen=True)
class Spec:
    """A frozen description, built of booleans, integers, finite floats, strings, tuples and other specs.

    Values are checked against the annotations when the spec is made, and `1` becomes `1.0` where a float is
    declared, so that equal specs have equal JSON and equal hashes.
    """

    def __post_init__(self) -> None:
        for name, kind in _annotations(type(self)).items():
            object.__setattr__(self, name, _accepted(name, getattr(self, name), kind))
        self.check()

    def check(self) -> None:
        """Reject values that have the right type and make no sense; each spec states its own rules."""

    def require_each(self, rule: str, *names: str) -> None:
        """Reject each of these fields that breaks a rule of `RULES`; None breaks none.

        >>> from grokscope.specs import Cadence
        >>> Cadence(every=None).require_each("be at least 1", "every")
        """
        for name in names:
            value = getattr(self, name)
            require(value is None or RULES[rule](value), f"{name} must {rule}", value)

    def to_dict(self) -> dict[str, Any]:
        """The spec as plain JSON values, every field present, defaults included."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}

    def to_short_dict(self) -> dict[str, Any]:
        """As `to_dict` without what is a default: `from_dict` gives back the same spec, for defaults never change."""
        return _chosen(self)

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no spaces, ASCII; floats as the shortest digits that read back exactly."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_dict(cls: type[SomeSpec], values: Any) -> SomeSpec:
        """The spec with these values; fields left out keep their defaults, unknown ones are rejected."""
        require(isinstance(values, Mapping), f"{cls.__name__} must be an object with named fields", values)
        known = _annotations(cls)
        for key in values:
            if key not in known:  # only then is it worth a search for what was meant
                raise InputError(f"{cls.__name__} has no field {shown(key)}{_elsewhere(cls, str(key))}")
        try:
            return cls(**values)
        except TypeError as error:  # a field without a default was left out
            raise InputError(f"{cls.__name__} is incomplete: {str(error).split('() ')[-1]}") from None

    @classmethod
    def from_json(cls: type[SomeSpec], text: str | bytes) -> SomeSpec:
        """The inverse of `to_json`; repeated keys and non-numbers (NaN, Infinity) are rejected."""
        return cls.from_dict(parse_json(text, cls.__name__))

    @property
    def content_hash(self) -> str:
        """The first 64 bits of sha256(type name, canonical JSON of what is not a default), in hexadecimal.

        Defaults are left out so that a field added later, with a default that means "as before", renames no stored
        run. A default is therefore never changed.
        """
        text = f"{type(self).__name__}\n{json.dumps(_chosen(self), sort_keys=True, separators=(',', ':'))}"
        return hashlib.sha256(text.encode("ascii")).hexdigest()[:HASH_CHARACTERS]


def _resolved(spec: type[Spec]) -> dict[str, Any]:
    hints = get_type_hints(spec)
    return {f.name: hints[f.name] for f in fields(spec)}


# Resolving them takes longer than all checks of a spec. Any: mypy takes the type of a dataclass for unhashable.
_annotations: Any = cache(_resolved)


def _elsewhere(spec: type[Spec], name: str) -> str:
    """Where a field that this spec lacks may be meant to stand: in a spec inside it, or under a name much like it."""
    known = _annotations(spec)
    for outer, kind in known.items():
        inner = [option for option in (kind, *get_args(kind)) if isinstance(option, type) and issubclass(option, Spec)]
        if any(name in _annotations(option) for option in inner):
            return f"; did you mean {outer}.{name}?"
    return did_you_mean(name, known)


def _plain(value: Any) -> Any:
    if isinstance(value, Spec):
        return value.to_dict()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _chosen(spec: Spec) -> dict[str, Any]:
    """The fields that differ from their defaults, inner specs likewise; equal specs give equal dictionaries."""
    named = ((f, getattr(spec, f.name)) for f in fields(spec))
    kept = ((f.name, value) for f, value in named if f.default is MISSING or value != f.default)
    return {name: _chosen(value) if isinstance(value, Spec) else _plain(value) for name, value in kept}


def _accepted(name: str, value: Any, kind: Any) -> Any:
    """The value in the declared type, or an error that names the field."""
    if isinstance(value, Spec) and type(value) is kind:  # it has checked itself; most of what a large plan is made of
        return value
    if kind in PLAIN:  # so are most fields, and all that follows is slow
        return _accepted_plain(name, value, kind)
    origin, options = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return None if value is None else _accepted(name, value, next(o for o in options if o is not NoneType))
    if origin is Literal:
        if not isinstance(value, str) or value not in options:
            suggestion = did_you_mean(value, options) if isinstance(value, str) else ""
            raise InputError(f"{name} must be one of {', '.join(options)}, got {shown(value)}{suggestion}")
        return value
    if origin is tuple:
        return _accepted_tuple(name, value, options)
    if is_dataclass(kind) and isinstance(kind, type) and issubclass(kind, Spec):
        return value if isinstance(value, kind) else kind.from_dict(value)
    raise TypeError(f"a spec has no fields of type {kind}")


def _accepted_tuple(name: str, value: Any, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    require(isinstance(value, list | tuple), f"{name} must be a list", value)
    if kinds[-1] is Ellipsis:
        return tuple(_accepted(name, item, kinds[0]) for item in value)
    require(len(value) == len(kinds), f"each entry of {name} must have {len(kinds)} values", value)
    return tuple(_accepted(name, item, kind) for item, kind in zip(value, kinds, strict=True))


def _accepted_plain(name: str, value: Any, kind: type) -> Any:
    if kind is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        require(number and abs(value) < 1e300 and math.isfinite(value), f"{name} must be a finite number", value)
        return float(value) + 0.0  # −0.0 and 0.0 are equal and must hash alike
    words = {int: "a whole number", bool: "true or false", str: "a text"}
    require(type(value) is kind, f"{name} must be {words[kind]}", value)
    require(kind is not int or abs(value) < WORD_LIMIT, f"{name} must be a whole number below 2^63", value)
    return value
