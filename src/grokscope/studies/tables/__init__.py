"""The paper's eleven tables, made of records."""

from collections.abc import Callable

from grokscope.studies.evidence import Evidence
from grokscope.studies.tables.circuits import tab_ablation, tab_kan, tab_rank
from grokscope.studies.tables.forks import tab_crossprime, tab_timing, tab_wd
from grokscope.studies.tables.leads import tab_configs, tab_cross, tab_exloss
from grokscope.studies.tables.variants import tab_arch, tab_transfer
from grokscope.view.table import Cell, Column, Row, Table

__all__ = ["TABLES", "Cell", "Column", "Row", "Table"]

TABLES: dict[str, Callable[[Evidence], Table]] = {
    "tab-configs": tab_configs,
    "tab-cross": tab_cross,
    "tab-exloss": tab_exloss,
    "tab-wd": tab_wd,
    "tab-rank": tab_rank,
    "tab-kan": tab_kan,
    "tab-ablation": tab_ablation,
    "tab-arch": tab_arch,
    "tab-timing": tab_timing,
    "tab-crossprime": tab_crossprime,
    "tab-transfer": tab_transfer,
}
