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
from grokscope.activations.subject import NEEDS, Edits, InputEdit, Need, Subject

__all__ = [
    "NEEDS",
    "ConditionedMeans",
    "Conditioning",
    "Edits",
    "InputEdit",
    "Need",
    "RunStack",
    "RunningMeans",
    "Subject",
    "answer_sums",
    "condition_of",
    "conditioning_basis",
    "means_of",
    "subject_of",
]
