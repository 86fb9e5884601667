"""How Sphinx builds these pages: `make docs`. Everything is read from this checkout; nothing is downloaded."""

import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
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

ROOT = Path(__file__).parents[1]
RESULTS, NOTEBOOK = ROOT / "results", ROOT / "examples" / "first_look.ipynb"
STORED = {  # pages of results that a page of the site ends with
    "studies/synchronization": ("synchronization/RESULTS.md", "synchronization/repetition.md"),
    "studies/bakeoff": ("bakeoff/RESULTS.md",),
}

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
    if what == "function" and not any(line.startswith(">>> ") for line in lines):
        lines += example_beside(thing)
    parts = "\n".join(lines).split("`")
    lines[:] = "`".join(part if i % 2 else part.replace("|", r"\|") for i, part in enumerate(parts)).split("\n")


def example_beside(function: Any) -> list[str]:
    """The example in the docstring of a function's module, if it calls the function."""
    _, start, rest = (inspect.getdoc(inspect.getmodule(function)) or "").partition("\n>>> ")
    return ["", *f"{start}{rest}".strip().splitlines(), ""] if f"{function.__name__}(" in rest else []


def described(value: Any) -> str:
    """A constant or the name of a type: the keys of a dictionary, the words of a choice, a title, or itself."""
    if inspect.ismodule(value):
        return (inspect.getdoc(value) or "").partition("\n")[0]
    if isinstance(value, Study):
        return value.title
    if isinstance(value, tuple):
        value = {getattr(one, "name", one): one for one in value}
    words = list(value) if isinstance(value, dict) else list(get_args(value)) if get_origin(value) is Literal else []
    return ", ".join(f"`{word}`" if word else "empty" for word in words) or f"`{value}`"


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


def filled_in(app: Any, page: str, source: list[str]) -> None:
    """Fill the pages whose content is elsewhere: commands, the notebook, and the results of each study."""
    if page == "reference/commands":
        source[0] += "\n" + "\n".join(command_section(name, command) for name, command in COMMANDS.items())
    if page == "first-look":
        source[0] += "\n" + notebook_page(json.loads(NOTEBOOK.read_text(encoding="utf-8")))
    for name in STORED.get(page, ()):
        source[0] += "\n" + stored_page(RESULTS / name, f"../../results/{Path(name).parent}")


def notebook_page(notebook: dict[str, Any]) -> str:
    """A notebook's cells below its title as Markdown, each with what it printed and drew."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text.removeprefix("# A first look\n"))
            continue
        parts.append(f"```python\n{text}\n```")
        parts += [shown for output in cell["outputs"] if (shown := output_block(output))]
    return "\n\n".join(parts) + "\n"


def output_block(output: dict[str, Any]) -> str:
    """A picture, or else the text of an output; empty where it has neither."""
    data = output.get("data", {})
    if "image/png" in data:
        picture = "".join(data["image/png"]).replace("\n", "")
        return f'<img alt="what the cell draws" src="data:image/png;base64,{picture}">'
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f"```text\n{text.rstrip()}\n```" if text else ""


def stored_page(path: Path, folder: str) -> str:
    """A stored page of results, one heading lower, with links to its files; tables as CSV, as browsers show them."""
    text = re.sub(r"^#", "##", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return re.sub(
        r"\]\(((?:tables|supplements|figures)/[\w-]+)\.(\w+)\)", lambda link: linked(folder, *link.groups()), text
    )


def linked(folder: str, stem: str, ending: str) -> str:
    """The target of a link to a file of results."""
    return f"]({folder}/{stem}.{'csv' if ending == 'md' else ending})"


def setup(app: Any) -> None:
    """Connect these functions to Sphinx."""
    app.connect("autodoc-process-docstring", finished)
    app.connect("source-read", filled_in)
