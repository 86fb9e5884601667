"""Sites over all inputs → A[s, j], the mean activation of neuron j over the pairs with answer s."""

from grokscope.activations.conditioned import (
    ConditionedMeans,
    Conditioning,
    RunningMeans,
    answer_sums,
    condition_of,
    conditioned_means,
    conditioning_basis,
    control_basis,
    means_of,
)
from grokscope.activations.subject import InputEdit, Subject, subject_of

__all__ = [
    "ConditionedMeans",
    "Conditioning",
    "InputEdit",
    "RunningMeans",
    "Subject",
    "answer_sums",
    "condition_of",
    "conditioned_means",
    "conditioning_basis",
    "control_basis",
    "means_of",
    "subject_of",
]
