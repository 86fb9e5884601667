"""Stacked training: many runs, one step at a time, each exact."""

from grokscope.training.cohort import Cohort, CohortKey, Tables, cohort_key
from grokscope.training.loop import Info, advance, arithmetic
from grokscope.training.state import State, initial_state

__all__ = [
    "Cohort",
    "CohortKey",
    "Info",
    "State",
    "Tables",
    "advance",
    "arithmetic",
    "cohort_key",
    "initial_state",
]
