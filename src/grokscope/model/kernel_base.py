"""The pass of `forward` and its gradient by kernels: for every architecture, a run's bits whatever the stack."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from grokscope.model.kernel_functions import Answers, Linear, LossOfOutputs, LossOfRows, unembedded
from grokscope.model.kernel_gradients import Gradients
from grokscope.model.layout import Weights
from grokscope.model.stacked import Dropout
from grokscope.specs import Architecture

__all__ = ["KernelPass"]


@dataclass
class KernelPass(ABC):
    """One pass over a stack: what `forward` computes, by kernels."""

    architecture: Architecture
    """What to compute."""
    weights: Weights
    """Parameters [runs, …] by name, as stored."""
    rounded: Weights
    """The same in the precision of matrix products: what these read."""
    gradients: Gradients | None = None
    """Where gradients go; None where none are wanted."""
    loss: str = "cross_entropy"
    """What is minimised."""
    dropout: Dropout | None = None
    """What drops a branch's output."""
    anchor: Tensor = field(init=False)
    """What autograd follows: gradients of parameters are written, not returned."""

    def __post_init__(self) -> None:
        self.anchor = self.weights["unembed.W_U"].new_zeros(()).requires_grad_(self.gradients is not None)

    @property
    def stored(self) -> torch.dtype:
        """Precision of the weights, the stream and the logits."""
        return self.anchor.dtype

    @property
    def compute(self) -> torch.dtype:
        """Precision of matrix products."""
        return self.rounded["unembed.W_U"].dtype

    @abstractmethod
    def order(self, inputs: Tensor) -> None:
        """Let `gradients` know in which order a batch's gradients are summed onto the rows that its tokens chose."""

    @abstractmethod
    def read(self, inputs: Tensor) -> Tensor:
        """What the last map reads; of a linear map of one-hot vectors, its outputs."""

    @abstractmethod
    def hidden(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        """What `last_hidden` reads before bias and activation, [runs, inputs, neurons], and the bias."""

    @property
    def reads_outputs(self) -> bool:
        """Whether `read` gives outputs."""
        return self.weights["unembed.W_U"].ndim == 4

    def losses(
        self, inputs: Tensor, labels: Tensor, classes: Tensor, counts: Tensor, choose: Callable[[], None] = lambda: None
    ) -> Tensor:
        """Σ of each run's losses, tile by tile [runs, tiles]; `choose` puts the batch where these tensors are."""
        assert self.gradients is not None
        with self.gradients.aside():  # block 0's rows need no batch
            choose()
            self.order(inputs)
        bias, batch = self.weights.get("unembed.b_U"), (labels, classes, counts)
        read = self.read(inputs)
        compute, temperature = read.dtype if self.reads_outputs else self.compute, self.architecture.temperature
        weight = self.rounded["unembed.W_U"]
        answers = Answers(weight, bias, batch, self.loss, self.gradients, compute, temperature)
        if self.reads_outputs:
            found: Tensor = LossOfOutputs.apply(read, answers)  # type: ignore[no-untyped-call]
        else:
            found = LossOfRows.apply(read, answers, self.anchor)  # type: ignore[no-untyped-call]
        return found

    def backward(self, losses: Tensor) -> None:
        """Leave every gradient of the mean losses in `gradients`."""
        assert self.gradients is not None
        with torch.autograd.set_multithreading_enabled(False):  # another thread would have no CUDA context yet
            losses.backward(torch.empty_like(losses))  # type: ignore[no-untyped-call]
        self.gradients.finish()

    def logits(self, inputs: Tensor) -> Tensor:
        """Outputs at the read position, without their bias and before they are divided by the temperature."""
        read = self.read(inputs)
        return read if self.reads_outputs else unembedded(read, self.rounded["unembed.W_U"], self.stored)

    def linear(self, x: Tensor, name: str, columns: slice = slice(None)) -> Tensor:
        """The product x W, for W's columns."""
        own = None if self.gradients is None else self.gradients.matrices[name][..., columns]
        found: Tensor = Linear.apply(x, self.rounded[name][..., columns], own, self.gradients, self.anchor)  # type: ignore[no-untyped-call]
        return found

    def join(self) -> None:
        """Wait for what was launched aside: the batch, and its order."""
        if self.gradients is not None:
            self.gradients.aside.join()
