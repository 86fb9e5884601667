"""`grokscope report` and `serve`: runs on a page, in one file or live."""

from pathlib import Path
from typing import Annotated

import tyro

from grokscope.errors import InputError

__all__ = ["report", "serve"]

Folder = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]


def report(
    folder: Folder,
    out: Path = Path("report.html"),
    detail: tuple[str, ...] = (),
    title: str = "",
    match: str = "",
) -> None:
    """Write one HTML file that shows a folder of runs; it needs no server and no network.

    Example: grokscope report runs/first --out report.html --detail add_mod97_s0

    Args:
        folder: A folder of runs, finished or still running, or of results (*.records.gz, claims.json).
        out: The file to write; another report of that name is replaced.
        detail: Runs to look inside, by name or its beginning: up to 8, whose weights are stored.
        title: What the page is called; the folder's name if not given.
        match: Show only runs whose names begin so or have this pattern, such as 'add_mod97_s1*'. A page shows at most
            10,000 runs.
    """
    from rich.console import Console
    from rich.markup import escape

    _require("jinja2", "report")
    from grokscope.view.page import source_of, write_page

    console = Console(stderr=True, highlight=False)
    with console.status("reading the runs") as told:
        source = source_of(folder, title, match)
        size = write_page(out, source, detail, lambda name: told.update(f"looking inside {escape(name)}"))
    for problem in source.problems:
        console.print(escape(problem), soft_wrap=True)
    print(f"wrote {out}: {len(source.runs):,} runs, {size / 1e6:.2f} MB")


def serve(folder: Folder, port: int = 8642, title: str = "") -> None:
    """Show a folder of runs in the browser, live while they train. Only this machine can connect, with the token.

    Example: grokscope serve runs/first --port 8642

    Args:
        folder: A folder of runs, finished or still running.
        port: Where to listen on 127.0.0.1; 0 takes any free port.
        title: What the page is called; the folder's name if not given.
    """
    for module in ("jinja2", "starlette", "uvicorn"):
        _require(module, "report,live")
    from grokscope.view.page.live import serve_live

    serve_live(folder, port, title, lambda address: print(f"open {address}\nCtrl-C stops it", flush=True))


def _require(module: str, extras: str) -> None:
    """Say what to install where a library is missing."""
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise InputError(f"this command needs {module}; install it with: pip install 'grokscope[{extras}]'")
