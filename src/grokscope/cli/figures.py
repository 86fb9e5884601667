"""`grokscope figure`: the paper's figures, drawn from stored runs or packed records."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from grokscope.errors import InputError, did_you_mean, shown

__all__ = ["figure"]

ALL = "all"


def figure(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")],
    source: Annotated[Path, tyro.conf.arg(name="from", metavar="DIR|FILE")] = Path("runs"),
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("figures"),
) -> None:
    """Draw a figure of the paper from your runs: SVG, PNG and PDF, and beside them the numbers drawn as CSV.

    The figures: fig-exloss, fig-two-phase, fig-wd, fig-memorisation, fig-arch, fig-crossprime, fig-threshold,
    fig-accelerator, fig-transfer.

    Example: grokscope figure fig-two-phase --from runs/paper --out figures

    Args:
        name: A figure, or all.
        source: A folder of runs, a file of packed records, or a folder of such files (*.records.gz).
        out: Where to write; files of the same name are replaced.
    """
    from grokscope.studies import FIGURES, evidence_at, write_figure
    from grokscope.view.charts.style import require_matplotlib

    if name not in (*FIGURES, ALL):
        raise InputError(f"there is no figure {shown(name)}{did_you_mean(name, (*FIGURES, ALL))}")
    require_matplotlib()
    with Console(stderr=True).status("reading the records"):
        evidence = evidence_at(source)
    for one in FIGURES if name == ALL else (name,):
        made = FIGURES[one](evidence)
        paths = write_figure(made, out)
        print(made.title)
        for note in made.notes:
            print(f"  {note}")
        print(f"  wrote {', '.join(str(path) for path in paths)}")
