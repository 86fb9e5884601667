"""The commands by name, each imported when it is used, and their arguments."""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import tyro

__all__ = ["GROUPS", "RENAMED", "Argument", "Command", "Commands", "arguments_of", "examples_of"]

Command = Callable[..., None]
GROUPS = {
    "Train": {
        "train": "train:train",
        "resume": "resume:resume",
        "fork": "resume:fork",
        "status": "status:status",
        "cancel": "status:cancel",
    },
    "View runs": {
        "list": "listing:list_runs",
        "show": "show:show",
        "watch": "watch:watch",
        "plot": "plot:plot",
        "report": "report:report",
        "serve": "report:serve",
        "query": "query:query",
    },
    "Measure": {"measure": "measure:measure", "tasks": "tasks:tasks"},
    "Forecast": {"forecast": "forecast:forecast", "judge": "judge:judge", "benchmark": "benchmark:benchmark"},
    "Store and exchange": {"export": "export:export", "import": "export:import_source", "doctor": "doctor:doctor"},
    "Studies": {"reproduce": "reproduce:reproduce"},
}
RENAMED = {
    "sweep": "train TASK ...",
    "story": "show DIR",
    "measures": "measure",
    "claims": "reproduce STUDY --claims",
    "remake": "reproduce STUDY --remake",
    "figure": "reproduce STUDY --figure NAME",
    "bakeoff": "reproduce bakeoff",
    "groups": "tasks NAME --group",
    "convert": "import FILE.pt",
    "pull": "import ADDRESS --out DIR",
}


class Commands(Mapping[str, Command]):
    """A mapping from a command's name to its function, given places such as `listing:list_runs` in this package."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def __getitem__(self, name: str) -> Command:
        module, _, function = self._places[name].partition(":")
        found: Command = getattr(import_module(f"{__package__}.{module}"), function)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def summary(self, name: str) -> str:
        """The first line of a command's docstring, read from its source: nothing is imported."""
        module, _, function = self._places[name].partition(":")
        source = ast.parse(Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8"))
        [definition] = [node for node in source.body if isinstance(node, ast.FunctionDef) and node.name == function]
        return (ast.get_docstring(definition) or "").partition("\n")[0]


@dataclass(frozen=True)
class Argument:
    """One argument of a command, as it is written on the command line."""

    written: str
    """Such as DIR, or --weight-decay."""
    name: str
    """The parameter or field that takes it."""
    owner: Any
    """The command, or the group of options, that declares it."""
    takes_value: bool
    """Whether a value follows; a flag has none."""
    kind: Any
    """The type of its value."""
    is_list: bool
    """Whether several values may follow; paths, which may have commas, do not count."""
    meaning: str | None
    """What it means, where that is declared with its type."""


def arguments_of(owner: Any) -> Iterator[Argument]:
    """The arguments of a command or of a group of options, those of the groups that it takes included."""
    for name, kind in get_type_hints(owner, include_extras=True).items():
        if is_dataclass(kind):
            yield from arguments_of(kind)
        elif name != "return":
            plain, *notes = get_args(kind) if get_origin(kind) is Annotated else (kind,)
            is_positional = tyro.conf.Positional in notes
            own, metavar, meaning = (
                next(filter(None, (getattr(note, key, None) for note in notes)), None)
                for key in ("name", "metavar", "help")
            )
            written = (metavar or name.upper()) if is_positional else f"--{(own or name).replace('_', '-')}"
            is_list = get_origin(plain) is tuple and Path not in get_args(plain)
            yield Argument(written, name, owner, plain is not bool, plain, is_list, meaning)


def examples_of(text: str) -> list[str]:
    """The command lines under `Examples:` at the end of a docstring."""
    return [line.strip() for line in text.partition("\nExamples:\n")[2].splitlines() if line.strip()]
