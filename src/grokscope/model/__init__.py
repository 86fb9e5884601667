"""The models: transformers and plain MLPs, over stacked parameters and as plain modules."""

from grokscope.model.analytic import AnalyticNetwork, analytic_network
from grokscope.model.forward import Dropout, Edit, Inputs, Taps, forward, forward_with_hidden, last_hidden
from grokscope.model.initialization import initial_weights
from grokscope.model.layout import (
    PAIR_POSITIONS,
    Layout,
    Sizes,
    Weights,
    block_of,
    layout_of,
    matrix_shapes,
    padded_size,
    padded_sizes,
    parameter_group,
    sizes_of,
)
from grokscope.model.reference import PlainMlp, ReferenceModule, module_place, reference_module
from grokscope.model.scoring import Loss, row_losses, row_scores
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
    "PAIR_POSITIONS",
    "AnalyticNetwork",
    "Component",
    "Dropout",
    "Edit",
    "Head",
    "Inputs",
    "Layout",
    "Loss",
    "PlainMlp",
    "Receiver",
    "ReferenceModule",
    "Sizes",
    "Taps",
    "Weights",
    "analytic_network",
    "block_of",
    "components_of",
    "forward",
    "forward_with_hidden",
    "hidden_sites",
    "initial_weights",
    "last_hidden",
    "layout_of",
    "matrix_shapes",
    "module_place",
    "padded_size",
    "padded_sizes",
    "parameter_group",
    "receivers_of",
    "reference_module",
    "row_losses",
    "row_scores",
    "site_names",
    "sizes_of",
]
