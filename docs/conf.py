"""How Sphinx builds these pages: `make docs`. Everything is read from this checkout; nothing is downloaded."""

import inspect
import re
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

from grokscope.cli import COMMANDS
from grokscope.cli.commands import Argument, arguments_of, examples_of
from grokscope.studies import Study
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

# Public names are those in `__all__`; the meaning of a field is the sentence below it.
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
default_role = "code"  # `word` in a docstring is code, as it is in Markdown
python_maximum_signature_line_length = 88
suppress_warnings = ["ref.python"]  # several classes have a `step`, and a field's type may be called so


def finished(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """A docstring as reStructuredText: |G| stays as it is, and a module lists the constants and types it exports."""
    if what == "module":
        others = [one for one in thing.__all__ if not callable(getattr(thing, one)) or get_origin(getattr(thing, one))]
        lines += [line for one in others for line in (f"* `{one}`: {described(getattr(thing, one))}", "")]
    parts = "\n".join(lines).split("`")
    lines[:] = "`".join(part if i % 2 else part.replace("|", r"\|") for i, part in enumerate(parts)).split("\n")


def described(value: Any) -> str:
    """A constant or the name of a type: the keys of a dictionary, the words of a choice, a title, or the value itself."""
    if inspect.ismodule(value):
        return (inspect.getdoc(value) or "").partition("\n")[0]
    if isinstance(value, Study):
        return value.title
    if isinstance(value, tuple):
        value = {getattr(one, "name", one): one for one in value}
    words = list(value) if isinstance(value, dict) else list(get_args(value)) if get_origin(value) is Literal else []
    return ", ".join(f"`{word}`" for word in words) or f"`{value}`"


def command_section(name: str, command: Callable[..., None]) -> str:
    """A command as its `--help` has it: what it does, what each argument means, and examples."""
    text = inspect.getdoc(command)
    about = re.split(r"\n(?:Args|Examples):\n", text)[0].strip()
    rows = [f"| `{one.written}` | {meaning(one)} |" for one in arguments_of(command)]
    examples = ["```sh", *examples_of(text), "```"]
    return "\n".join(
        [f"## `grokscope {name}`", "", about, "", *examples, "", "| argument | meaning |", "|---|---|", *rows, ""]
    )


def meaning(argument: Argument) -> str:
    """The meaning of an argument: from its type, its command's docstring, or the sentence below its field."""
    if argument.meaning is not None:
        return argument.meaning
    if not inspect.isclass(argument.owner):
        text = inspect.getdoc(argument.owner).partition("\nArgs:\n")[2].partition("\nExamples:\n")[0]
        lines = re.sub(r"\n {8}", " ", text).splitlines()  # further lines of a long meaning
        return {word: rest for word, _, rest in (line.strip().partition(": ") for line in lines)}[argument.name]
    for owner in argument.owner.__mro__:
        source = inspect.getsource(owner) if owner is not object else ""
        found = re.search(rf'^    {argument.name}: .*?^    """(.*?)"""', source, re.MULTILINE | re.DOTALL)
        if found:
            return found[1]
    raise ValueError(f"{argument.name} has no meaning")


def with_commands(app: Any, page: str, source: list[str]) -> None:
    """Fill the page of commands."""
    if page == "reference/commands":
        source[0] += "\n" + "\n".join(command_section(name, command) for name, command in COMMANDS.items())


def setup(app: Any) -> None:
    """Connect these functions to Sphinx."""
    app.connect("autodoc-process-docstring", finished)
    app.connect("source-read", with_commands)
