"""One transformer, over stacked parameters and as a plain module."""

from grokscope.model.forward import Dropout, Edit, Taps, forward, forward_with_hidden, last_hidden, site_names
from grokscope.model.initialization import initial_weights
from grokscope.model.layout import POSITIONS, Layout, Weights, layout_of, padded_size
from grokscope.model.twin import Twin, module_place, twin_of

__all__ = [
    "POSITIONS",
    "Dropout",
    "Edit",
    "Layout",
    "Taps",
    "Twin",
    "Weights",
    "forward",
    "forward_with_hidden",
    "initial_weights",
    "last_hidden",
    "layout_of",
    "module_place",
    "padded_size",
    "site_names",
    "twin_of",
]
