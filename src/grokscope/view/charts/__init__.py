"""Charts as data, and the pictures drawn of them."""

from grokscope.view.charts.figure import Figure, Panel, Series

__all__ = ["Figure", "Panel", "Series"]
