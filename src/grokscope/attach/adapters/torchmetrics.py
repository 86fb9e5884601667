"""FSD as a torchmetrics Metric, for activations that somebody's loop has at hand already."""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from grokscope.attach.adapters.framework import framework
from grokscope.attach.operations import own_task, without_group
from grokscope.errors import InputError, require
from grokscope.measures import fsd, spectrum

__all__ = ["fsd_metric"]


def fsd_metric(task: Any, neurons: int, symbols: int | None = None) -> Any:
    """A `torchmetrics.Metric` of FSD: `update(activations, a, b)` with [inputs, neurons], then `compute()`.

    Means are taken over the pairs that were seen since the last `reset`; over all pairs it is exactly a monitor's FSD.
    Sums are float64 and are added up across processes. An answer that was not seen makes it NaN.

    Example::

        metric = fsd_metric("add_mod23", neurons=128)
        metric.update(activations, a, b)
        metric.compute()
    """
    found = own_task(task, symbols)
    require(found.bases, f"{without_group(found)}: FSD needs a basis")
    return _metric_class()(found, neurons)


@lru_cache(maxsize=1)
def _metric_class() -> Any:
    base = framework("torchmetrics").Metric

    class FsdMetric(base):  # type: ignore[misc, valid-type]
        """FSD of the activations seen."""

        is_differentiable = False
        higher_is_better = None
        full_state_update = False

        def __init__(self, task: Any, neurons: int) -> None:
            super().__init__()
            table = torch.full((task.symbols, task.symbols), -1)
            table[tuple(torch.tensor(task.inputs.T))] = torch.tensor(task.answers)
            self.register_buffer("table", table, persistent=False)
            self.basis = task.basis()
            sums = torch.zeros(task.symbols, neurons, dtype=torch.float64)
            self.add_state("sums", sums, dist_reduce_fx="sum")
            self.add_state("squares", torch.zeros(neurons, dtype=torch.float64), dist_reduce_fx="sum")
            self.add_state("counts", torch.zeros(task.symbols, dtype=torch.int64), dist_reduce_fx="sum")

        def update(self, activations: Tensor, a: Tensor, b: Tensor) -> None:
            """Add the activations [inputs, neurons] of pairs (a, b); pairs without an answer are left out."""
            if activations.shape != (len(a), self.sums.shape[1]):
                expected = [len(a), self.sums.shape[1]]
                raise InputError(f"activations must be {expected}, got {list(activations.shape)}")
            answers = self.table[a, b]
            known = answers >= 0
            self.sums.index_add_(0, answers[known], activations.detach()[known].double())
            self.squares += activations.detach()[known].double().square().sum(dim=0)
            self.counts += torch.bincount(answers[known], minlength=len(self.counts))

        def compute(self) -> Tensor:
            """FSD of the means over the answers."""
            means = self.sums / self.counts[:, None]  # 0/0 is NaN, and so is FSD then
            return fsd(spectrum(means, self.basis, self.squares / self.counts.sum()).density).fsd

    return FsdMetric
