"""Tables and figures of the study, built from evidence, and the numbers in them."""

import re

from grokscope.studies import Evidence
from grokscope.studies.synchronization import STUDY
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.render import cell_text
from grokscope.view.table import Table

NUMBER = re.compile(r"[+−]?(?:∞|\d[\d,]*(?:\.\d+)?)")


def table(name: str, found: Evidence) -> Table:
    built = STUDY.items[name].build(found)
    assert isinstance(built, Table)
    assert built.name == name
    return built


def figure(name: str, found: Evidence) -> Figure:
    built = STUDY.items[name].build(found)
    assert isinstance(built, Figure)
    assert built.name == name
    return built


def labelled(panel: Panel, label: str) -> Series:
    return next(one for one in panel.series if one.label == label)


def sentence(built: Table) -> str:
    """What a supplementary analysis says; every number of it is a cell of its table."""
    say = STUDY.items[built.name].sentence
    assert say is not None
    found = say(built)
    rows = (zip(row, built.columns, strict=True) for row in built.rows)
    assert numbers(found) <= numbers(" ".join(cell_text(cell, column) for row in rows for cell, column in row))
    return found


def numbers(text: str) -> set[str]:
    return {found.rstrip(",") for found in NUMBER.findall(text)}
