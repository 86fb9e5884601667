"""Runs drawn, summarised and exported: page, charts, tables, Parquet."""

from importlib import import_module
from typing import Any

from grokscope.errors import InputError

__all__ = ["require_module"]  # each part is imported by its own module: some need matplotlib, others scipy


def require_module(module: str, extras: str) -> Any:
    """A library that only some parts need; where it is not installed, the sentence says how to install it.

    >>> require_module("json", "report").dumps([1])
    '[1]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise InputError(f"this needs {error.name}; install it with: pip install 'grokscope[{extras}]'") from None
