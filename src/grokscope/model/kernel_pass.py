"""The pass of `forward` and its gradient by kernels: for every architecture, a run's bits whatever the stack."""

from torch import Tensor

from grokscope.model.kernel_base import KernelPass
from grokscope.model.kernel_gradients import Gradients
from grokscope.model.kernel_mlp import MlpKernels
from grokscope.model.kernel_transformer import TransformerKernels
from grokscope.model.layout import Weights
from grokscope.specs import Architecture

__all__ = ["Gradients", "KernelPass", "kernel_pass"]


def kernel_pass(
    architecture: Architecture,
    weights: Weights,
    rounded: Weights,
    separators: Tensor | None = None,
    gradients: Gradients | None = None,
    loss: str = "cross_entropy",
) -> KernelPass:
    """The pass of one stack; `rounded` has the weights in the precision of products.

    Of pair tables `separators` has each run's last token, int32 [runs]: they have short cuts.
    """
    if architecture.kind == "mlp":
        return MlpKernels(architecture, weights, rounded, gradients, loss)
    return TransformerKernels(architecture, weights, rounded, gradients, loss, separators=separators)
