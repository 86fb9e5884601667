"""The page itself: template, styles, scripts and data in one file that asks nobody for anything."""

import hashlib
from base64 import b64encode
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import named, write_atomically
from grokscope.view.page.island import island_of
from grokscope.view.page.sources import Source

__all__ = ["MARK", "page_of", "page_with", "write_page"]

MARK = b"<!doctype html>\n<!-- a grokscope report -->"
SCRIPTS = ("dom", "data", "state", "figures", "maps", "overview", "runs", "run", "forks", "groups", "method", "main")


def page_of(source: Source, detail: Sequence[str] = (), report: Callable[[str], None] = lambda name: None) -> str:
    """The whole report; runs in `detail` are read again from their weights."""
    return page_with(source.title, island_of(source, detail, report))


def page_with(title: str, island: dict[str, str], events: str = "") -> str:
    """A page around its data; with `events`, an address on the same server, it gets them from there."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    style = _asset("vendor/uPlot.min.css") + _asset("page.css")
    script = "(() => {\n'use strict';\n" + "".join(_asset(f"{name}.js") for name in SCRIPTS) + "})();\n"
    vendor = _asset("vendor/uPlot.iife.min.js")
    policy = [
        "default-src 'none'",
        f"script-src {_hash(vendor)} {_hash(script)}",
        f"style-src {_hash(style)}",
        "img-src data:",
        *(["connect-src 'self'"] if events else []),
        "base-uri 'none'",
        "form-action 'none'",
    ]
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(_asset("page.html"))
    # The scripts are ours and hashed; everything that comes from a folder goes through autoescape or base64.
    return template.render(
        title=_plain(title),
        policy="; ".join(policy),
        style=Markup(style),
        vendor=Markup(vendor),
        script=Markup(script),
        facts=island.get("facts", ""),
        columns=island.get("columns", ""),
        events=events,
    )


def write_page(
    path: Path, source: Source, detail: Sequence[str] = (), report: Callable[[str], None] = lambda name: None
) -> int:
    """Write the report, whole or not at all, over nothing but another report; its size in bytes."""
    if path.exists() and not _is_report(path):
        raise InputError(f"{named(path)} exists already and is no report; nothing was overwritten")
    content = page_of(source, detail, report).encode()
    write_atomically(path, content)
    return len(content)


def _is_report(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MARK)) == MARK


def _plain(text: str) -> str:
    """A text that can be written as UTF-8: names of files may hold lone surrogates."""
    return text.encode("utf-8", "replace").decode()


def _asset(name: str) -> str:
    return (files("grokscope.view.page") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
