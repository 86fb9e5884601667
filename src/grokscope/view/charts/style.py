"""The style of every chart: fonts for a column of 3.3 inches, and colours that the colour-blind can tell apart."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from grokscope.view import require_module

__all__ = ["COLORS", "HUES", "MARKERS", "house_style"]

# Okabe and Ito's colours, without the yellow that a white page swallows.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#B8578C", "#8A8A8A"

COLORS = {
    "fsd": ORANGE,
    "restricted": BLUE,
    "excluded": SKY,
    "control": BLUE,
    "validation": BLUE,
    "accuracy": BLACK,
    "train": GREEN,
    "gap": VERMILION,
    "rank": PURPLE,
    "norm": GREEN,
    "grokked": VERMILION,
    "phase": GREEN,
    "null": GREY,
    "theory": BLACK,
    "fixed": BLACK,
    "mem": BLUE,
    "early": GREEN,
    "random": GREY,
    "restored": PURPLE,
    "p = 53": BLUE,
    "p = 97": ORANGE,
    "p = 131": GREEN,
    # Along viridis, whose lightness rises, so that the order of λ survives a grey print.
    "λ = 1": "#440154",
    "λ = 2": "#414487",
    "λ = 3": "#2A788E",
    "λ = 4": "#22A884",
    "λ = 5": "#7AD151",
    "λ = 10": "#D9B600",
}
# The same roles on the page: places in its palette, which has a light and a dark version (`page.css`).
HUES = {"validation": 0, "fsd": 1, "grokked": 1, "train": 2, "norm": 2, "rank": 3, "chosen": 1, "before": 5, "phase": 4}
MARKERS = {"p = 53": "o", "p = 97": "s", "p = 131": "^", "restricted": "s", "control": "s", "λ = 2": "s", "λ = 3": "^"}
MARKERS |= {"λ = 4": "v", "λ = 5": "P", "λ = 10": "X", "grokked": "*"}

STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same bytes everywhere
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "figure.titlesize": 8.5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "axes.facecolor": "white",
    "axes.edgecolor": "#555555",
    "axes.linewidth": 0.6,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.5,
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.frameon": False,
    "legend.handlelength": 2.0,
    "legend.columnspacing": 1.4,
    "lines.solid_capstyle": "round",
    "hatch.linewidth": 0.5,
    "text.parse_math": False,  # a dollar in a name is a dollar
    "path.simplify": False,  # every number is drawn
    "svg.fonttype": "none",  # text stays text: small, and found by a search
    "svg.hashsalt": "grokscope",
    "pdf.fonttype": 42,
}


@contextmanager
def house_style() -> Iterator[None]:
    """Within it matplotlib draws in our style, whatever was set before; afterwards the old settings are back."""
    matplotlib = require_module("matplotlib", "report")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield
