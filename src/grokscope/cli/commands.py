"""Commands by name, each imported when it is asked for: whoever lists runs does not wait for what trains them."""

import ast
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path

from grokscope.errors import InputError

__all__ = ["Command", "Commands"]

Command = Callable[..., None]


class Commands(Mapping[str, Command]):
    """A mapping from a command's name to its function, made of places such as `listing:list_runs` in this package."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def __getitem__(self, name: str) -> Command:
        """The command; a library that it needs and that is missing is named."""
        module, _, function = self._places[name].partition(":")
        try:
            found: Command = getattr(import_module(f"{__package__}.{module}"), function)
        except ModuleNotFoundError as error:
            raise InputError(f"the command line needs {error.name}; install it with: pip install grokscope") from None
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def described(self) -> dict[str, Command]:
        """Commands with the docstrings of these and nothing else, read from their sources: nothing is imported."""
        return {name: _described(*place.split(":")) for name, place in self._places.items()}


def _described(module: str, function: str) -> Command:
    def nothing() -> None:
        pass

    source = ast.parse(Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8"))
    [definition] = [node for node in source.body if isinstance(node, ast.FunctionDef) and node.name == function]
    nothing.__doc__ = ast.get_docstring(definition)
    return nothing
