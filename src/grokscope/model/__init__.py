"""One transformer, over stacked parameters and as a plain module."""

from grokscope.model.forward import Dropout, Edit, Taps, forward, forward_with_hidden, last_hidden
from grokscope.model.initialization import initial_weights
from grokscope.model.layout import POSITIONS, Layout, Weights, layout_of, padded_size
from grokscope.model.reference import ReferenceModule, module_place, reference_module
from grokscope.model.scoring import pair_losses, pair_scores
from grokscope.model.sites import (
    Component,
    Head,
    Receiver,
    components_of,
    hidden_sites,
    receivers_of,
    site_names,
)

__all__ = [
    "POSITIONS",
    "Component",
    "Dropout",
    "Edit",
    "Head",
    "Layout",
    "Receiver",
    "ReferenceModule",
    "Taps",
    "Weights",
    "components_of",
    "forward",
    "forward_with_hidden",
    "hidden_sites",
    "initial_weights",
    "last_hidden",
    "layout_of",
    "module_place",
    "padded_size",
    "pair_losses",
    "pair_scores",
    "receivers_of",
    "reference_module",
    "site_names",
]
