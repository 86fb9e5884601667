"""The page itself: template, styles, scripts and data in one file that needs no network."""

import hashlib
from base64 import b64encode
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import named, write_atomically
from grokscope.view.page.embedded import embedded_data
from grokscope.view.page.sources import Source

__all__ = ["MARK", "page_of", "page_with", "reject_other_file", "write_page"]

MARK = b"<!doctype html>\n<!-- a grokscope report -->"
DATA = ("dom", "data", "state", "filter", "pooling", "columns")
PLOTS = ("marks", "axes", "figure")
SECTIONS = ("claims", "overview", "runs", "inside", "fan", "run", "forks", "groups", "method")
SCRIPTS = (*DATA, *PLOTS, *SECTIONS, "main")


def page_of(source: Source, detail: Sequence[str] = (), report: Callable[[str], None] = lambda name: None) -> str:
    """The whole report; runs in `detail` are read again from their weights.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.view.page import source_of
    >>> from grokscope.jobs import run_all
    >>> from grokscope.runs import Store
    >>> from grokscope.specs import RunSpec
    >>> small = {"layers": 1, "width": 8, "heads": 1, "mlp_width": 16, "steps": 2, "batch_size": 4}
    >>> spec = RunSpec("add_mod5").with_values(small)
    >>> with TemporaryDirectory() as folder:
    ...     run_all([spec], Store(folder), compiled=False)
    ...     page = page_of(source_of(Path(folder), "My runs"))
    >>> "<title>My runs" in page
    True
    """
    return page_with(source.title, embedded_data(source, detail, report))


def page_with(title: str, embedded: dict[str, str], events: str = "") -> str:
    """A page around its embedded data; with `events`, an address on the same server, it reads them from there."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    style = _asset("page.css")
    script = "(() => {\n'use strict';\n" + "".join(_asset(f"{name}.js") for name in SCRIPTS) + "})();\n"
    policy = [
        "default-src 'none'",
        f"script-src {_hash(script)}",
        f"style-src {_hash(style)}",
        "img-src data:",
        *(["connect-src 'self'"] if events else []),
        "base-uri 'none'",
        "form-action 'none'",
    ]
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(_asset("page.html"))
    # The scripts are ours and hashed; everything that comes from a folder goes through autoescape or base64.
    return template.render(
        title=title.encode("utf-8", "replace").decode(),  # names of files may hold lone surrogates
        policy="; ".join(policy),
        style=Markup(style),
        script=Markup(script),
        facts=embedded.get("facts", ""),
        columns=embedded.get("columns", ""),
        events=events,
    )


def write_page(
    path: Path, source: Source, detail: Sequence[str] = (), report: Callable[[str], None] = lambda name: None
) -> int:
    """Write the report, whole or not at all, over nothing but another report; its size in bytes.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.view.page import source_of
    >>> from grokscope.jobs import run_all
    >>> from grokscope.runs import Store
    >>> from grokscope.specs import RunSpec
    >>> small = {"layers": 1, "width": 8, "heads": 1, "mlp_width": 16, "steps": 2, "batch_size": 4}
    >>> spec = RunSpec("add_mod5").with_values(small)
    >>> with TemporaryDirectory() as folder:
    ...     run_all([spec], Store(folder), compiled=False)
    ...     size = write_page(Path(folder, "report.html"), source_of(Path(folder)))
    >>> size > 100_000
    True
    """
    reject_other_file(path)
    content = page_of(source, detail, report).encode()
    write_atomically(path, content)
    return len(content)


def reject_other_file(path: Path) -> None:
    """Reject a place that something other than a report has already.

    >>> reject_other_file(Path("no such file.html"))  # nothing is there
    """
    if path.exists() and not _is_report(path):
        raise InputError(f"{named(path)} exists already and is no report; nothing was overwritten")


def _is_report(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MARK)) == MARK


def _asset(name: str) -> str:
    return (files("grokscope.view.page") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
