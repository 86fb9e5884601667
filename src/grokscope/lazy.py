"""Names that a package exports, whose modules are imported when somebody first asks for one of them (PEP 562).

What is exported stands in `__all__`, as everywhere; where it comes from is said twice, to type checkers by imports
under TYPE_CHECKING and to `exports` by a table.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

__all__ = ["exports"]


def exports(package: str, modules: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package, for names listed by the module below it that has them.

    A module below the package is an attribute too, imported or not, as if the package had imported it.

    >>> attribute, names = exports("grokscope", {"version": ["__version__"]})
    >>> "__version__" in names()
    True
    """
    namespace = vars(sys.modules[package])
    below = {module.name for module in iter_modules(sys.modules[package].__path__)}
    homes = {name: module for module, names in modules.items() for name in names}

    def attribute(name: str) -> Any:
        if name in homes:
            found = getattr(import_module(f"{package}.{homes[name]}"), name)
        elif not name.startswith("_") and name in below:
            found = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return namespace.setdefault(name, found)  # so that it is looked for once

    def names() -> list[str]:
        return sorted({*namespace, *homes, *(name for name in below if not name.startswith("_"))})

    return attribute, names
