"""Monitor, controller and steering for other people's models: three lines in any PyTorch loop.

The core needs torch and numpy; an adapter imports its framework when it is called.
"""

from grokscope.attach.checkpoints import convert, load_weights, read_weights
from grokscope.attach.controller import Schedule, WeightDecayController
from grokscope.attach.encoders import ENCODERS, a_b_sep, a_op_b_equals, one_hot
from grokscope.attach.foreign_model import ForeignModel, foreign_measures
from grokscope.attach.monitor import Monitor
from grokscope.attach.operations import own_task
from grokscope.attach.parameter_groups import group_parameters
from grokscope.attach.steering import Steering

__all__ = [
    "ENCODERS",
    "ForeignModel",
    "Monitor",
    "Schedule",
    "Steering",
    "WeightDecayController",
    "a_b_sep",
    "a_op_b_equals",
    "convert",
    "foreign_measures",
    "group_parameters",
    "load_weights",
    "one_hot",
    "own_task",
    "read_weights",
]
