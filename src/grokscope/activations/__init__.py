"""Sites over all inputs → A[s, j], the mean activation of neuron j over the pairs with answer s."""

from grokscope.activations.conditioned import (
    ConditionedMeans,
    Conditioning,
    RunningMeans,
    answer_sums,
    condition_of,
    conditioning_basis,
    means_of,
)
from grokscope.activations.run_stack import RunStack, subject_of
from grokscope.activations.subject import NEEDS, OF_TASKS, Edits, InputEdit, Need, Subject, lacking_needs
from grokscope.activations.trajectory import Trajectory

__all__ = [
    "NEEDS",
    "OF_TASKS",
    "ConditionedMeans",
    "Conditioning",
    "Edits",
    "InputEdit",
    "Need",
    "RunStack",
    "RunningMeans",
    "Subject",
    "Trajectory",
    "answer_sums",
    "condition_of",
    "conditioning_basis",
    "lacking_needs",
    "means_of",
    "subject_of",
]
