"""The paper's nine figures, made of records: data first, then one way of drawing."""

from collections.abc import Callable

from grokscope.studies.evidence import Evidence
from grokscope.studies.figures.forks import fig_crossprime, fig_wd
from grokscope.studies.figures.groups import fig_transfer
from grokscope.studies.figures.leads import fig_arch, fig_exloss
from grokscope.studies.figures.norms import fig_threshold
from grokscope.studies.figures.phases import fig_memorisation, fig_two_phase
from grokscope.studies.figures.triggers import fig_accelerator
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.charts.files import figure_csv, pictures_of, write_figure
from grokscope.view.charts.style import house_style

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
