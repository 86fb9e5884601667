"""A plain MLP over stacked parameters: h₀ = x, hᵢ₊₁ = a(hᵢ Wᵢ + bᵢ), logits h W_U + b_U.

Of tokens x is the concatenation of one-hot vectors, e(t₁), …, e(t_L), so that x W = Σ_l W[l, t_l]: rows of W are
gathered and summed, and nothing is multiplied by 0. With learnt embeddings x is E[t₁], …, E[t_L] side by side.
Sites are [runs, 1, inputs, neurons], as if all were at one position; `hook_embed` has every token's.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from grokscope.model.rows import gathered_rows
from grokscope.model.stacked import StackedPass

__all__ = ["MlpPass"]


@dataclass
class MlpPass(StackedPass):
    """One forward pass over tokens [runs, length, inputs] or vectors [runs, inputs, features]."""

    def logits(self, inputs: Tensor, classes: Tensor) -> Tensor:
        """The whole pass."""
        x = self.entered(inputs)
        for i in range(self.architecture.layers):
            x = self.layer(i, x)
            if self.taps is not None and self.taps.is_done:
                return x.new_empty(*x[:, -1].shape[:-1], 0)
        return self.masked(self.outputs(x), classes)

    def last_hidden(self, inputs: Tensor, layer: int) -> Tensor:
        """Neurons of a layer; of a linear model, which has none, the outputs."""
        x = self.entered(inputs)
        for i in range(min(layer + 1, self.architecture.layers)):
            x = self.layer(i, x)
        return x[:, -1] if self.architecture.layers else self.outputs(x)

    def entered(self, inputs: Tensor) -> Tensor:
        """What the first map reads: [runs, 1, inputs, numbers], or the tokens whose rows it gathers."""
        if inputs.is_floating_point():
            return inputs[:, None]
        if not self.architecture.embedded:
            return inputs
        runs, length, count = inputs.shape
        looked_up = gathered_rows(self.weights["embed.W_E"], inputs.flatten(1)).view(runs, length, count, -1)
        return self.tap("hook_embed", looked_up).transpose(1, 2).flatten(2)[:, None]

    def layer(self, i: int, x: Tensor) -> Tensor:
        """a(x W + b) of one hidden layer, with a LayerNorm before a where the architecture has one."""
        before = self.tap(f"layers.{i}.hook_pre", self.mapped(f"layers.{i}", "in", x))
        if self.architecture.hidden_norm:
            before = self.branch_norm(f"layers.{i}.ln", before)
        after = self.tap(f"layers.{i}.hook_post", self.activated(before))
        if i == 0:
            self.first_hidden = after[:, -1]
        return self.dropped(after, i)

    def outputs(self, x: Tensor) -> Tensor:
        """Logits or real outputs, in at least float32, before the temperature."""
        outputs = self.mapped("unembed", "U", x)[:, -1]
        outputs = outputs.to(torch.promote_types(outputs.dtype, torch.float32))
        if self.architecture.layers == 0:
            self.first_hidden = outputs
        return outputs

    def mapped(self, name: str, suffix: str, x: Tensor) -> Tensor:
        """The product x W + b; of tokens Σ_l W[l, t_l] + b."""
        if x.is_floating_point():
            return self.linear(name, suffix, x)
        weight = self.weights[f"{name}.W_{suffix}"]
        runs, length, vocabulary, columns = weight.shape
        row = x + vocabulary * torch.arange(length, device=x.device)[:, None]
        rows = gathered_rows(weight.flatten(1, 2), row.flatten(1)).view(runs, length, -1, columns)
        out, bias = rows.sum(dim=1, keepdim=True), self.weights.get(f"{name}.b_{suffix}")
        return out if bias is None else out + bias[:, None, None]
