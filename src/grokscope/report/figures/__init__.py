"""The paper's nine figures, made of records: data first, then one way of drawing."""

from collections.abc import Callable

from grokscope.report.evidence import Evidence
from grokscope.report.figures.figure import Figure, Panel, Series
from grokscope.report.figures.files import figure_csv, pictures_of, write_figure
from grokscope.report.figures.forks import fig_crossprime, fig_wd
from grokscope.report.figures.groups import fig_transfer
from grokscope.report.figures.leads import fig_arch, fig_exloss
from grokscope.report.figures.norms import fig_threshold
from grokscope.report.figures.phases import fig_memorisation, fig_two_phase
from grokscope.report.figures.style import house_style
from grokscope.report.figures.triggers import fig_accelerator

__all__ = ["FIGURES", "Figure", "Panel", "Series", "figure_csv", "house_style", "pictures_of", "write_figure"]

FIGURES: dict[str, Callable[[Evidence], Figure]] = {
    "fig-exloss": fig_exloss,
    "fig-two-phase": fig_two_phase,
    "fig-wd": fig_wd,
    "fig-memorisation": fig_memorisation,
    "fig-arch": fig_arch,
    "fig-crossprime": fig_crossprime,
    "fig-threshold": fig_threshold,
    "fig-accelerator": fig_accelerator,
    "fig-transfer": fig_transfer,
}
