"""A run as a plain `nn.Module`: the reference the stack is tested against, and what a user takes away."""

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from grokscope.model.layout import Sizes, layout_of
from grokscope.model.stacked import ACTIVATIONS
from grokscope.shapes import Float, Int
from grokscope.specs import Architecture

__all__ = [
    "Attention",
    "Block",
    "HiddenLayer",
    "Mlp",
    "PlainMlp",
    "ReferenceModule",
    "module_place",
    "reference_module",
]


class Attention(nn.Module):
    """Multi-head attention with packed query, key and value."""

    def __init__(self, a: Architecture) -> None:
        super().__init__()
        self.heads, self.causal = a.heads, a.causal
        self.qkv = nn.Linear(a.width, 3 * a.width, bias=a.biases)
        self.out = nn.Linear(a.width, a.width, bias=a.biases)
        self.hook_q, self.hook_k, self.hook_v = nn.Identity(), nn.Identity(), nn.Identity()
        self.hook_pattern, self.hook_z = nn.Identity(), nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """softmax(q kᵀ/√e) v, heads joined and projected; x is [inputs, positions, width]."""
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        q, k, v = self.hook_q(q), self.hook_k(k), self.hook_v(v)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if self.causal:
            hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(hidden, -torch.inf)
        z = self.hook_z(self.hook_pattern(scores.softmax(dim=-1)) @ v)
        return self.out(z.transpose(1, 2).flatten(-2))


class Mlp(nn.Module):
    """Linear, nonlinearity, Linear."""

    def __init__(self, a: Architecture) -> None:
        super().__init__()
        self.inner = nn.Linear(a.width, a.mlp_width, bias=a.biases)
        self.outer = nn.Linear(a.mlp_width, a.width, bias=a.biases)
        self.act = ACTIVATIONS[a.activation]
        self.hook_pre, self.hook_post = nn.Identity(), nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """W₂ act(W₁ x)."""
        return self.outer(self.hook_post(self.act(self.hook_pre(self.inner(x)))))


class Block(nn.Module):
    """x + attention(LN x), then x + MLP(LN x)."""

    def __init__(self, a: Architecture) -> None:
        super().__init__()
        self.a = a
        norm = (lambda: nn.LayerNorm(a.width)) if a.layer_norm else nn.Identity
        if a.attention != "dropped":
            self.ln1 = norm()
        if a.attention == "on":
            self.attn = Attention(a)
        if a.mlp != "dropped":
            self.ln2 = norm()
        if a.mlp == "on":
            self.mlp = Mlp(a)
        self.hook_resid_pre, self.hook_resid_mid, self.hook_resid_post = nn.Identity(), nn.Identity(), nn.Identity()
        self.hook_attn_out, self.hook_mlp_out = nn.Identity(), nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """One block on all positions."""
        x = self.hook_resid_pre(x)
        if self.a.attention != "dropped":
            normed = self.ln1(x)
            x = x + self.hook_attn_out(self.attn(normed) if self.a.attention == "on" else normed)
        x = self.hook_resid_mid(x)
        if self.a.mlp != "dropped":
            normed = self.ln2(x)
            x = x + self.hook_mlp_out(self.mlp(normed) if self.a.mlp == "on" else normed)
        return self.hook_resid_post(x)


class HiddenLayer(nn.Module):
    """Linear, perhaps LayerNorm, nonlinearity."""

    def __init__(self, a: Architecture, numbers: int) -> None:
        super().__init__()
        self.inner = nn.Linear(numbers, a.mlp_width, bias=a.biases)
        self.ln = nn.LayerNorm(a.mlp_width) if a.hidden_norm else nn.Identity()
        self.act = ACTIVATIONS[a.activation]
        self.hook_pre, self.hook_post = nn.Identity(), nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """act(LN(W x + b))."""
        return self.hook_post(self.act(self.ln(self.hook_pre(self.inner(x)))))


class PlainMlp(nn.Module):
    """A plain MLP, unpadded, for one run: tokens [inputs, length] or vectors [inputs, features] → outputs."""

    def __init__(self, architecture: Architecture, sizes: Sizes) -> None:
        super().__init__()
        self.architecture, self.sizes = architecture, sizes
        numbers = sizes.features or sizes.length * sizes.vocabulary
        if architecture.embedded:
            self.embed = nn.Embedding(sizes.vocabulary, architecture.width)
            self.hook_embed = nn.Identity()
            numbers = sizes.length * architecture.width
        widths = [numbers, *(architecture.mlp_width,) * architecture.layers]
        self.layers = nn.ModuleList(HiddenLayer(architecture, width) for width in widths[:-1])
        self.unembed = nn.Linear(widths[-1], sizes.classes, bias=architecture.biases)

    def forward(
        self, inputs: Int[Tensor, "inputs length"] | Float[Tensor, "inputs features"]
    ) -> Float[Tensor, "inputs classes"]:
        """Logits or real outputs."""
        x = inputs
        if self.architecture.embedded:
            x = self.hook_embed(self.embed(inputs)).flatten(1)
        elif not inputs.is_floating_point():
            x = one_hot(inputs, self.sizes.vocabulary).to(self.unembed.weight.dtype).flatten(1)
        for layer in self.layers:
            x = layer(x)
        return self.unembed(x) / self.architecture.temperature


class ReferenceModule(nn.Module):
    """The paper's transformer, unpadded, for one run: tokens [inputs, length] → logits [inputs, classes]."""

    def __init__(self, architecture: Architecture, sizes: Sizes) -> None:
        super().__init__()
        self.architecture, self.sizes = architecture, sizes
        self.embed = nn.Embedding(sizes.vocabulary, architecture.width)
        self.pos_embed = nn.Embedding(sizes.length, architecture.width)
        self.hook_embed = nn.Identity()
        self.blocks = nn.ModuleList(Block(architecture) for _ in range(architecture.layers))
        self.ln_final = nn.LayerNorm(architecture.width) if architecture.has_final_norm else nn.Identity()
        self.unembed = nn.Linear(architecture.width, sizes.classes, bias=architecture.biases)

    def forward(self, tokens: Int[Tensor, "inputs length"]) -> Float[Tensor, "inputs classes"]:
        """Logits at the last position."""
        x = self.hook_embed(self.embed(tokens)) + self.pos_embed.weight
        if self.architecture.readout == "pooled":
            x = torch.cat([x[:, :-1], x.sum(dim=1, keepdim=True)], dim=1)
        for block in self.blocks:
            x = block(x)
        return self.unembed(self.ln_final(x[:, -1])) / self.architecture.temperature


# Where each parameter of the layout lives in the module; matrices are transposed there.
PLACES = {
    "embed.W_E": "embed.weight",
    "pos_embed.W_pos": "pos_embed.weight",
    ".w": ".weight",
    ".b": ".bias",
    "attn.W_QKV": "attn.qkv.weight",
    "attn.b_QKV": "attn.qkv.bias",
    "attn.W_O": "attn.out.weight",
    "attn.b_O": "attn.out.bias",
    ".W_in": ".inner.weight",
    ".b_in": ".inner.bias",
    "mlp.W_out": "mlp.outer.weight",
    "mlp.b_out": "mlp.outer.bias",
    "unembed.W_U": "unembed.weight",
    "unembed.b_U": "unembed.bias",
}


def module_place(name: str) -> str:
    """The reference module's name of a parameter of the layout.

    >>> module_place("blocks.0.attn.W_QKV")
    'blocks.0.attn.qkv.weight'
    """
    ending = max((e for e in PLACES if name.endswith(e)), key=len)
    return name.removesuffix(ending) + PLACES[ending]


def reference_module(
    architecture: Architecture, sizes: Sizes, weights: dict[str, Tensor]
) -> ReferenceModule | PlainMlp:
    """The module with one run's weights (views of a stack of one, padding cut off), in their precision.

    >>> from grokscope.specs import Initialization
    >>> from grokscope.model import initial_weights
    >>> small, sizes = Architecture(layers=1, width=8, heads=1, mlp_width=16), Sizes(vocabulary=6, classes=5)
    >>> flat = initial_weights(small, Initialization(), sizes, sizes, seeds=torch.tensor([0]))
    >>> reference_module(small, sizes, layout_of(small, sizes).views(flat))(torch.tensor([[0, 1, 5]])).shape
    torch.Size([1, 5])
    """
    layout, state = layout_of(architecture, sizes), {}
    for name, value in weights.items():
        own = value[0][layout.real(name, sizes)]
        if own.ndim == 3:  # a map of one-hot vectors, which stand side by side
            own = own.flatten(0, 1)
        is_linear = own.ndim == 2 and name not in ("embed.W_E", "pos_embed.W_pos")
        state[module_place(name)] = (own.T if is_linear else own).clone()
    kind = PlainMlp if architecture.kind == "mlp" else ReferenceModule
    reference = kind(architecture, sizes).to(weights["unembed.W_U"].dtype)
    reference.load_state_dict(state)
    return reference
