"""`grokscope report` and `serve`: runs on a page, in one file or live."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from grokscope.cli.options import Folder
from grokscope.errors import InputError, plural
from grokscope.files import named
from grokscope.runs import open_runs
from grokscope.runs.packed_files import has_records
from grokscope.view import require_module

__all__ = ["report", "serve"]

Title = Annotated[str, tyro.conf.arg(help="The page's title; the folder's name if not given.", help_behavior_hint="")]


def report(
    folder: Folder,
    out: Path = Path("report.html"),
    detail: Annotated[tuple[str, ...], tyro.conf.arg(metavar="RUN ...", help_behavior_hint="")] = (),
    title: Title = "",
    match: Annotated[str, tyro.conf.arg(metavar="PATTERN", help_behavior_hint="")] = "",
) -> None:
    """Write one HTML file that shows a folder of runs.

    The file needs no server and no network. The folder may also hold results: records and claims.json.

    Args:
        out: The file to write; another report of that name is replaced.
        detail: Up to 8 runs whose stored weights are shown in detail.
        match: Show only runs whose names begin so or match this pattern, such as 'add_mod97_s1*'. A page shows at most
            10,000 runs.

    Examples:
        grokscope report runs/first --out report.html --detail add_mod97_s0
    """
    _reject_unknown(folder, detail)
    if not out.parent.is_dir():
        raise InputError(f"there is no folder {named(out.parent)} to write {named(Path(out.name))} in")
    from rich.console import Console
    from rich.markup import escape

    require_module("jinja2", "report")
    from grokscope.view.page import reject_other_file, source_of, write_page

    reject_other_file(out)  # before the runs are read and measured

    console = Console(stderr=True, highlight=False)
    with console.status("reading the runs") as status:
        source = source_of(folder, title, match)
        size = write_page(out, source, detail, lambda name: status.update(f"measuring {escape(name)}"))
    for problem in source.problems:
        console.print(escape(problem), soft_wrap=True)
    print(f"wrote {out}: {plural(len(source.runs), 'run')}, {size / 1e6:.2f} MB\nopen {out.resolve().as_uri()}")


def _reject_unknown(folder: Path, detail: Sequence[str] = ()) -> None:
    """Reject a folder and runs that are not there, before anything heavy is imported."""
    runs = open_runs(folder)
    if not has_records(folder):  # whose runs are known only once they are read
        for name in detail:
            runs.store.find(name)


def serve(folder: Folder, port: int = 8642, title: Title = "") -> None:
    """Show a folder of runs in the browser, live while they train.

    Only this machine can connect, with the token in the printed address.

    Args:
        port: The port on 127.0.0.1; 0 takes any free one.

    Examples:
        grokscope serve runs/first --port 8642
    """
    _reject_unknown(folder)
    for module in ("jinja2", "starlette", "uvicorn"):
        require_module(module, "report,live")
    from grokscope.view.page.live import serve_live

    serve_live(folder, port, title, lambda address: print(f"open {address}\nCtrl-C stops it", flush=True))
