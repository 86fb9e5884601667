"""‖W‖ of the matrices of a run, from its log: embeddings and maps, without LayerNorms.

Biases, which only the MLP has, are in what is logged of a block; they are not decayed and short beside the matrices.
"""

from math import nan, sqrt

from grokscope.runs.records import RunRecord

__all__ = ["matrix_norm_at", "matrix_norms", "norm_at_grokking_of"]


def matrix_norms(record: RunRecord) -> list[float]:
    """√(‖W‖² − ‖LayerNorms‖²) at every evaluation.

    Example::

        matrix_norms(record)[-1]
    """
    norms = record.evaluations["norm"]
    others = record.evaluations.get("norm_norms", [0.0] * len(norms))
    return [sqrt(max(0.0, norm**2 - other**2)) for norm, other in zip(norms, others, strict=True)]


def matrix_norm_at(record: RunRecord, step: int | None) -> float:
    """The same at one evaluation; NaN if there was none at this step."""
    steps = [int(one) for one in record.evaluations["step"]]
    return matrix_norms(record)[steps.index(step)] if step in steps else nan


def norm_at_grokking_of(record: RunRecord) -> float:
    """The same when a run had grokked; NaN if it had not."""
    return matrix_norm_at(record, record.timeline.grokked)
