"""Other people's frameworks, imported when they are used."""

import importlib
from typing import Any

from grokscope.errors import InputError

__all__ = ["framework"]


def framework(name: str) -> Any:
    """The module with this name, or a sentence that says how to get it.

    >>> framework("not_a_framework")
    Traceback (most recent call last):
    ...
    grokscope.errors.InputError: not_a_framework is not installed; install it with: pip install 'grokscope[interop]'
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != name.partition(".")[0]:
            raise  # it is there, and lacks something itself
        package = name.partition(".")[0]
        raise InputError(f"{package} is not installed; install it with: pip install 'grokscope[interop]'") from None
