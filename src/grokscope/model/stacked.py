"""What every pass over stacked parameters is made of: sites to read and edit, linear maps, LayerNorms, activations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import gelu, relu

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.model.layout import Weights
from grokscope.model.rows import with_bias
from grokscope.model.sites import site_names
from grokscope.specs import Architecture

__all__ = ["ACTIVATIONS", "Dropout", "Edit", "StackedPass", "Taps"]

Edit = Callable[[Tensor], Tensor]
Dropout = Callable[[Tensor, int], Tensor]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": gelu, "relu": relu, "square": torch.square}
LAYER_NORM_EPSILON = 1e-5


@dataclass
class Taps:
    """Sites to read and edit during one forward pass."""

    read: frozenset[str] = frozenset()
    """Names of the sites whose values are kept."""
    edits: Mapping[str, Edit] = field(default_factory=dict)
    """What replaces a site's value, as a function of it."""
    values: dict[str, Tensor] = field(default_factory=dict)
    """The values read, after editing: [runs, positions, inputs, …]."""
    stops: bool = False
    """Whether the pass ends with the block in which the last site is read; there are no logits then."""

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to be read by a pass that may stop."""
        return self.stops and self.read <= self.values.keys()

    def __call__(self, name: str, value: Tensor) -> Tensor:
        """Edit and keep one site's value."""
        if name in self.edits:
            value = self.edits[name](value)
        if name in self.read:
            self.values[name] = value
        return value


@dataclass
class StackedPass:
    """One forward pass: the weights and how to compute with them."""

    weights: Weights
    """Stacked parameters."""
    architecture: Architecture
    """What to compute."""
    compute: torch.dtype | None = None
    """Precision of matrix products, where it is not the weights'."""
    taps: Taps | None = None
    """Sites to read and edit."""
    dropout: Dropout | None = None
    """What drops a branch's output."""
    first_hidden: Tensor | None = None
    """What `last_hidden` reads of the first block or layer, once it has been computed."""

    def check_sites(self, taps: Taps) -> None:
        """Reject the name of a site that this architecture has not."""
        known = site_names(self.architecture)
        for name in (*taps.read, *taps.edits):
            if name not in known:
                raise InputError(f"this model has no site {shown(name)}{did_you_mean(name, known)}")

    def tap(self, name: str, value: Tensor) -> Tensor:
        """A site's value, read and edited where that is wanted."""
        return value if self.taps is None else self.taps(name, value)

    def masked(self, logits: Tensor, classes: Tensor) -> Tensor:
        """Logits divided by the temperature, of which padded classes are −∞."""
        if self.architecture.temperature != 1:
            logits = logits / self.architecture.temperature
        is_class = torch.arange(logits.shape[-1], device=logits.device) < classes[:, None, None]
        return self.tap("logits", torch.where(is_class, logits, -torch.inf))

    def activated(self, before: Tensor) -> Tensor:
        """Neurons, in at least float32."""
        wide = before.to(torch.promote_types(before.dtype, torch.float32))
        return ACTIVATIONS[self.architecture.activation](wide)

    def branch_norm(self, name: str, x: Tensor) -> Tensor:
        """A LayerNorm whose result is a site."""
        return self.tap(f"{name}.hook_normalized", self.norm(name, x))

    def norm(self, name: str, x: Tensor) -> Tensor:
        """LayerNorm: (x − mean) / √(variance + ε) · w + b; x where there is none of this name."""
        if f"{name}.w" not in self.weights:
            return x
        shape = (len(x), *(1,) * (x.ndim - 2), -1)
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        scaled = (x - mean) * torch.rsqrt(variance + LAYER_NORM_EPSILON)
        return scaled * self.weights[f"{name}.w"].view(shape) + self.weights[f"{name}.b"].view(shape)

    def linear(self, name: str, suffix: str, x: Tensor, first: int = 0, end: int | None = None) -> Tensor:
        """Each run's x W + b, for W's columns from `first` to `end`."""
        weight = self.weights[f"{name}.W_{suffix}"][..., first:end]
        flat = x.reshape(len(x), -1, x.shape[-1])
        if self.compute is not None:
            flat, weight = flat.to(self.compute), weight.to(self.compute)
        # The bias is added outside: `baddbmm` would first copy it once per row. On a CPU `mm` beats a batch of one.
        out = torch.mm(flat[0], weight[0])[None] if len(flat) == 1 else torch.bmm(flat, weight)
        bias = self.weights.get(f"{name}.b_{suffix}")
        if bias is not None:
            own = bias[..., first:end].to(out.dtype)
            out = out + own[:, None] if self.compute is None else with_bias(out, own)
        return out.reshape(*x.shape[:-1], -1)

    def dropped(self, out: Tensor, branch: int) -> Tensor:
        """What dropout leaves of a branch's output."""
        return out if self.dropout is None else self.dropout(out, branch)
