"""How Sphinx builds these pages: `make docs`. Everything is read from this checkout; nothing is downloaded."""

import inspect
import re
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

import tyro

from grokscope.cli import COMMANDS
from grokscope.version import __version__

project = "grokscope"
author = "grokscope contributors"
copyright = "grokscope contributors, MIT licence"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"grokscope {__version__}"
myst_heading_anchors = 3

# What is public stands in `__all__`, and a field's meaning in the sentence below it.
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
default_role = "code"  # `word` in a docstring is code, as it is in Markdown
python_maximum_signature_line_length = 88
suppress_warnings = ["ref.python"]  # several classes have a `step`, and a field's type may be called so


def finished(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """A docstring as reStructuredText: |G| stays as it is, and a module names what it exports beside code."""
    if what == "module":
        others = [one for one in thing.__all__ if not callable(getattr(thing, one)) or get_origin(getattr(thing, one))]
        lines += [line for one in others for line in (f"* `{one}`: {described(getattr(thing, one))}", "")]
    parts = "\n".join(lines).split("`")
    lines[:] = "`".join(part if i % 2 else part.replace("|", r"\|") for i, part in enumerate(parts)).split("\n")


def described(value: Any) -> str:
    """A constant or the name of a type: the words that a dictionary or a choice knows, or the value itself."""
    if isinstance(value, tuple):
        value = {getattr(one, "name", one): one for one in value}
    words = list(value) if isinstance(value, dict) else list(get_args(value)) if get_origin(value) is Literal else []
    return ", ".join(f"`{word}`" for word in words) or f"`{value}`"


def command_section(name: str, command: Callable[..., None]) -> str:
    """A command as its `--help` has it: what it does, an example, and what each argument means."""
    text, _, arguments = inspect.getdoc(command).partition("\nArgs:\n")
    about = re.sub(r"^Example: (.*)$", r"```sh\n\1\n```", text.strip(), flags=re.MULTILINE)
    rows = re.sub(r"\n {8}", " ", arguments)  # the next lines of a long meaning
    meanings = [line.strip().partition(": ") for line in rows.splitlines() if line.strip()]
    known = inspect.signature(command).parameters
    table = [f"| `{written(known[word])}` | {meaning} |" for word, _, meaning in meanings]
    return "\n".join([f"## `grokscope {name}`", "", about, "", "| argument | meaning |", "|---|---|", *table, ""])


def written(parameter: inspect.Parameter) -> str:
    """A parameter as it is written on the command line: DIR, or --weight-decay."""
    notes = getattr(parameter.annotation, "__metadata__", ())
    is_first = tyro.conf.Positional in notes
    given = [getattr(note, "metavar" if is_first else "name", None) for note in notes]
    name = next(filter(None, given), parameter.name.upper() if is_first else parameter.name)
    return name if is_first else "--" + name.replace("_", "-")


def with_commands(app: Any, page: str, source: list[str]) -> None:
    """Fill the page of commands."""
    if page == "reference/commands":
        source[0] += "\n" + "\n".join(command_section(name, command) for name, command in COMMANDS.items())


def setup(app: Any) -> None:
    """Connect the above."""
    app.connect("autodoc-process-docstring", finished)
    app.connect("source-read", with_commands)
