"""A plain MLP's pass by kernels; activations are [runs, inputs, columns]."""

from dataclasses import dataclass

from torch import Tensor

from grokscope.kernels import rows
from grokscope.model.kernel_base import KernelPass
from grokscope.model.kernel_functions import Activated, AddAndNorm, LookedUp, Norm, SummedRows

__all__ = ["MlpKernels"]


@dataclass
class MlpKernels(KernelPass):
    """One pass over tokens [runs, length, inputs] or vectors [runs, inputs, features]."""

    def order(self, inputs: Tensor) -> None:
        """Embeddings serve all positions, a map of one-hot vectors has rows of its own for each; vectors need none."""
        if inputs.is_floating_point():
            return
        assert self.gradients is not None
        if self.architecture.embedded:
            vocabulary = self.weights["embed.W_E"].shape[1]
            self.gradients.ordered = rows.order_tokens(inputs.view(len(inputs), 1, -1), vocabulary)
        else:
            first = "layers.0.W_in" if self.architecture.layers else "unembed.W_U"
            self.gradients.ordered = rows.order_tokens(inputs, self.weights[first].shape[2])

    def read(self, inputs: Tensor) -> Tensor:
        """Neurons of the last layer; without any what was given, or the outputs that its tokens sum to."""
        x = self._entered(inputs)
        for i in range(self.architecture.layers):
            x = self._layer(i, x)
        return self._mapped(x, "unembed.W_U") if self.reads_outputs else x

    def hidden(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        """Layer 0's neurons; for a linear model, its outputs."""
        x = self._entered(inputs)
        if self.architecture.layers == 0:
            return self._mapped(x, "unembed.W_U"), self.weights.get("unembed.b_U")
        return self._before(0, x)

    def _entered(self, inputs: Tensor) -> Tensor:
        """Vectors or embeddings in the precision of products; tokens where rows of the first map are chosen."""
        self.join()
        if inputs.is_floating_point():
            return inputs.to(self.compute)
        if not self.architecture.embedded:
            return inputs
        runs, length, count = inputs.shape
        x: Tensor = LookedUp.apply(self.anchor, self.weights, inputs, self.gradients)  # type: ignore[no-untyped-call]
        return x.view(runs, length, count, -1).transpose(1, 2).flatten(2).to(self.compute)

    def _mapped(self, x: Tensor, name: str) -> Tensor:
        if x.is_floating_point():
            return self.linear(x, name)
        found: Tensor = SummedRows.apply(self.anchor, self.weights[name], x, self.gradients, name)  # type: ignore[no-untyped-call]
        return found

    def _before(self, i: int, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """What a layer's activation reads, and the bias that is yet to be added."""
        name, before = f"layers.{i}", self._mapped(x, f"layers.{i}.W_in")
        if not self.architecture.hidden_norm:
            return before, self.weights.get(f"{name}.b_in")
        bias = f"{name}.b_in" if f"{name}.b_in" in self.weights else None
        what = Norm(f"{name}.ln", bias, self.weights, before.dtype, self.gradients, goes_on=False)
        normed: Tensor = AddAndNorm.apply(before.contiguous(), None, what)[1]  # type: ignore[no-untyped-call]
        return normed, None

    def _layer(self, i: int, x: Tensor) -> Tensor:
        before, bias = self._before(i, x)
        place = (self.anchor, self.gradients, f"layers.{i}.b_in", self.compute)
        after: Tensor = Activated.apply(before, bias, self.architecture.activation, place)  # type: ignore[no-untyped-call]
        return after if self.dropout is None else self.dropout(after, i)
