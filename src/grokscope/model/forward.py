"""The transformer of the paper's Appendix B over stacked parameters: one forward pass, any number of runs.

Tensors are [runs, positions, inputs, width]; the positions are a, b and the separator. Sites carry TransformerLens's
hook names. Training takes two short cuts that change no number: the last block is computed at the read position
only, and block 0's LayerNorm and QKV on the distinct (token, position) rows, which are then gathered.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import sqrt

import torch
from torch import Tensor
from torch.nn.functional import gelu, relu

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.model.layout import POSITIONS, Weights
from grokscope.model.rows import gathered_rows, with_bias
from grokscope.model.sites import site_names
from grokscope.shapes import Float, Int
from grokscope.specs import Architecture

__all__ = ["Dropout", "Edit", "Taps", "forward", "forward_with_hidden", "last_hidden"]

Edit = Callable[[Tensor], Tensor]
Dropout = Callable[[Tensor, int], Tensor]
Qkv = tuple[Tensor, ...]
READ = POSITIONS - 1
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


def forward(
    weights: Weights,
    architecture: Architecture,
    tokens: Int[Tensor, "runs 3 inputs"],
    *,
    classes: Int[Tensor, " runs"],
    compute: torch.dtype | None = None,
    taps: Taps | None = None,
    dropout: Dropout | None = None,
) -> Float[Tensor, "runs inputs size"]:
    """Logits at the read position; padded classes are −∞.

    With `compute` = bfloat16, matrix products and what they read are bfloat16, everything else stays as stored.
    With `taps`, every position of every block is computed, so that any site can be read or edited.

    >>> from grokscope.specs import Initialization
    >>> from grokscope.model import initial_weights, layout_of
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> flat = initial_weights(small, Initialization(), symbols=6, size=8, seeds=torch.tensor([0, 1]))
    >>> weights = layout_of(small, 8).views(flat)
    >>> tokens = torch.tensor([[0, 1, 2], [3, 4, 0], [5, 5, 5]]).expand(2, 3, 3)  # a, b and =, of three pairs
    >>> forward(weights, small, tokens, classes=torch.tensor([5, 5])).shape
    torch.Size([2, 3, 8])
    """
    model = _Pass(weights, architecture, compute, taps, dropout)
    if taps is not None:
        model.check_sites(taps)
    return model.logits(tokens, classes)


def forward_with_hidden(
    weights: Weights, architecture: Architecture, tokens: Int[Tensor, "runs 3 inputs"], classes: Int[Tensor, " runs"]
) -> tuple[Float[Tensor, "runs inputs size"], Float[Tensor, "runs inputs neurons"]]:
    """`forward` and `last_hidden` of block 0 in one pass.

    >>> from grokscope.specs import Initialization
    >>> from grokscope.model import initial_weights, layout_of
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> flat = initial_weights(small, Initialization(), symbols=6, size=8, seeds=torch.tensor([0, 1]))
    >>> weights = layout_of(small, 8).views(flat)
    >>> tokens = torch.tensor([[0, 1, 2], [3, 4, 0], [5, 5, 5]]).expand(2, 3, 3)  # a, b and =, of three pairs
    >>> [one.shape for one in forward_with_hidden(weights, small, tokens, torch.tensor([5, 5]))]
    [torch.Size([2, 3, 8]), torch.Size([2, 3, 16])]
    """
    model = _Pass(weights, architecture, None, None, None)
    logits = model.logits(tokens, classes)
    assert model.first_hidden is not None
    return logits, model.first_hidden


def last_hidden(
    weights: Weights, architecture: Architecture, tokens: Int[Tensor, "runs 3 inputs"], block: int = 0
) -> Float[Tensor, "runs inputs neurons"]:
    """GELU(W₁ h) of a block at the read position: what FSD reads, and nothing that it does not need.

    For a model without MLPs, the block's attention output (paper: Table 8's caption).

    >>> from grokscope.specs import Initialization
    >>> from grokscope.model import initial_weights, layout_of
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> flat = initial_weights(small, Initialization(), symbols=6, size=8, seeds=torch.tensor([0, 1]))
    >>> weights = layout_of(small, 8).views(flat)
    >>> tokens = torch.tensor([[0, 1, 2], [3, 4, 0], [5, 5, 5]]).expand(2, 3, 3)  # a, b and =, of three pairs
    >>> last_hidden(weights, small, tokens).shape
    torch.Size([2, 3, 16])
    """
    model = _Pass(weights, architecture, None, None, None)
    if block == 0 and model.by_rows:
        mixed, attention_out = model.first_attention_read(tokens)
        return model.hidden(0, mixed) if architecture.mlp == "on" else attention_out
    x, qkv = model.embedded(tokens)
    for i in range(block):
        x = model.block(i, x, qkv if i == 0 else None)
    mixed, attention_out = model.attention(block, x, qkv if block == 0 else None, only_read=True)
    return (model.hidden(block, mixed) if architecture.mlp == "on" else attention_out)[:, -1]


@dataclass
class _Pass:
    """One forward pass: the weights and how to compute with them."""

    weights: Weights
    """Stacked parameters."""
    architecture: Architecture
    """What to compute."""
    compute: torch.dtype | None
    """Precision of matrix products, where it is not the weights'."""
    taps: Taps | None
    """Sites to read and edit."""
    dropout: Dropout | None
    """What drops a branch's output."""
    first_hidden: Tensor | None = None
    """What `last_hidden` reads of block 0, once it has been computed."""

    def logits(self, tokens: Tensor, classes: Tensor) -> Tensor:
        """The whole pass."""
        x, qkv = self.embedded(tokens)
        for i in range(self.architecture.layers):
            x = self.block(i, x, qkv if i == 0 else None)
            if self.taps is not None and self.taps.is_done:
                return x.new_empty(*x[:, -1].shape[:-1], 0)
        logits = self.head(x[:, -1])
        is_class = torch.arange(logits.shape[-1], device=logits.device) < classes[:, None, None]
        return self.tap("logits", torch.where(is_class, logits, -torch.inf))

    def check_sites(self, taps: Taps) -> None:
        known = site_names(self.architecture)
        for name in (*taps.read, *taps.edits):
            if name not in known:
                raise InputError(f"this model has no site {shown(name)}{did_you_mean(name, known)}")

    def tap(self, name: str, value: Tensor) -> Tensor:
        return value if self.taps is None else self.taps(name, value)

    def embedded(self, tokens: Tensor) -> tuple[Tensor, Qkv | None]:
        """The residual stream before block 0, and block 0's QKV where it was made row by row."""
        embeddings, positions = self.weights["embed.W_E"], self.weights["pos_embed.W_pos"]
        if not self.by_rows:
            looked_up = [gathered_rows(embeddings, tokens[:, i]) for i in range(POSITIONS)]
            x = self.tap("hook_embed", torch.stack(looked_up, dim=1))
            x = x + self.tap(
                "hook_pos_embed", positions[:, :, None].expand_as(x).clone()
            )  # an edit must not reach the weights
            if self.architecture.readout == "pooled":  # the read position sees a and b without attention
                x = torch.cat([x[:, :READ], x.sum(dim=1, keepdim=True)], dim=1)
            return x, None
        table, qkv = self.row_table(tokens)
        # Gathered apart, so that the gradients of q, k and v need not be joined at full size.
        parts = tuple(self.from_rows(part, tokens) for part in qkv.chunk(3, dim=-1))
        return self.from_rows(table, tokens), parts

    @property
    def by_rows(self) -> bool:
        """Whether block 0's QKV can be made on the distinct rows."""
        return self.taps is None and self.architecture.attention == "on" and self.architecture.readout == "last"

    def row_table(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The stream before block 0 and its QKV on every row: a's tokens, b's tokens, the separator."""
        embeddings, positions = self.weights["embed.W_E"], self.weights["pos_embed.W_pos"]
        separator = gathered_rows(embeddings, tokens[:, READ, :1])
        rows = [embeddings + positions[:, :1], embeddings + positions[:, 1:2], separator + positions[:, 2:]]
        table = torch.cat(rows, dim=1)
        return table, self.linear("blocks.0.attn", "QKV", self.norm("blocks.0.ln1", table))

    def first_attention_read(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Block 0's attention branch at the read position [runs, inputs, width], where all inputs ask the same.

        The separator's query meets each key once, on the rows; only scores and values are gathered.
        """
        table, qkv = self.row_table(tokens)
        heads = (self.architecture.heads, self.architecture.head_width)
        q, k, v = (part.reshape(*part.shape[:-1], *heads) for part in qkv.chunk(3, dim=-1))
        scores = (q[:, -1:] * k).sum(dim=-1) / sqrt(self.architecture.head_width)
        size = (table.shape[1] - 1) // 2
        a, b, sep = (slice(0, size), tokens[:, 0]), (slice(size, -1), tokens[:, 1]), slice(-1, None)
        own = [gathered_rows(scores[:, part], token) for part, token in (a, b)]
        pattern = torch.stack([*own, scores[:, sep].expand_as(own[0])]).softmax(dim=0)[..., None]
        values = [gathered_rows(v[:, part].flatten(2), token) for part, token in (a, b)]
        seen = [value.reshape(*value.shape[:2], *heads) for value in (*values, v[:, sep].flatten(2))]
        z = pattern[0] * seen[0] + pattern[1] * seen[1] + pattern[2] * seen[2]
        out = self.linear("blocks.0.attn", "O", z.flatten(2))
        return table[:, -1:] + out, out

    def from_rows(self, table: Tensor, tokens: Tensor) -> Tensor:
        """Rows of a table over (token, position), gathered for each input; all inputs share the separator's row."""
        size = (table.shape[1] - 1) // 2
        a, b = gathered_rows(table[:, :size], tokens[:, 0]), gathered_rows(table[:, size:-1], tokens[:, 1])
        return torch.stack([a, b, table[:, -1:].expand_as(a)], dim=1)

    def block(self, i: int, x: Tensor, qkv: Qkv | None) -> Tensor:
        """The stream after both branches; in the last block at the read position only, unless sites are wanted."""
        only_read = i == self.architecture.layers - 1 and self.taps is None
        x, read = self.attention(i, self.tap(f"blocks.{i}.hook_resid_pre", x), qkv, only_read)
        x = self.tap(f"blocks.{i}.hook_resid_mid", x)
        if self.architecture.mlp == "on":
            read = self.hidden(i, x)
            out = self.tap(f"blocks.{i}.hook_mlp_out", self.linear(f"blocks.{i}.mlp", "out", read))
            x = x + self.dropped(out, 2 * i + 1)
        elif self.architecture.mlp == "norm":
            out = self.tap(f"blocks.{i}.hook_mlp_out", self.branch_norm(f"blocks.{i}.ln2", x))
            x = x + self.dropped(out, 2 * i + 1)
        if i == 0:
            self.first_hidden = read[:, -1]
        return self.tap(f"blocks.{i}.hook_resid_post", x)

    def attention(self, i: int, x: Tensor, qkv: Qkv | None, only_read: bool) -> tuple[Tensor, Tensor]:
        """The residual stream after the attention branch, and the branch's output."""
        first = READ if only_read else 0
        if self.architecture.attention == "dropped":
            return x[:, first:], torch.zeros_like(x[:, first:])
        if self.architecture.attention == "norm":
            out = self.branch_norm(f"blocks.{i}.ln1", x)[:, first:]
        else:
            z = self.mixed(i, *self.queries_keys_values(i, x, qkv, first))
            out = self.linear(f"blocks.{i}.attn", "O", z).to(x.dtype)
        out = self.tap(f"blocks.{i}.hook_attn_out", out)
        return x[:, first:] + self.dropped(out, 2 * i), out

    def queries_keys_values(self, i: int, x: Tensor, qkv: Qkv | None, from_position: int) -> tuple[Tensor, ...]:
        """q, k, v as [runs, positions, inputs, heads, head width]."""
        d = self.architecture.width
        if qkv is not None:
            q, k, v = qkv[0][:, from_position:], qkv[1], qkv[2]
        else:
            normed = self.branch_norm(f"blocks.{i}.ln1", x)
            q = self.linear(f"blocks.{i}.attn", "QKV", normed[:, from_position:], 0, d)
            kv = self.linear(f"blocks.{i}.attn", "QKV", normed, d)
            k, v = kv[..., :d], kv[..., d:]
        heads = (self.architecture.heads, self.architecture.head_width)
        split = (part.reshape(*part.shape[:-1], *heads) for part in (q, k, v))
        return tuple(self.tap(f"blocks.{i}.attn.hook_{name}", part) for name, part in zip("qkv", split, strict=True))

    def mixed(self, i: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """softmax(q·k/√e) v for every query position, heads joined; for three keys plain sums beat matrix products."""
        wide = torch.promote_types(q.dtype, torch.float32)
        scores = (q[:, :, None].to(wide) * k[:, None].to(wide)).sum(dim=-1) / sqrt(self.architecture.head_width)
        if self.architecture.causal:
            seen = torch.ones(POSITIONS, POSITIONS, device=q.device).tril()[-q.shape[1] :].bool()
            scores = scores.masked_fill(~seen[None, :, :, None, None], -torch.inf)
        pattern = self.tap(f"blocks.{i}.attn.hook_pattern", scores.softmax(dim=2))
        z = self.tap(f"blocks.{i}.attn.hook_z", (pattern[..., None] * v[:, None].to(wide)).sum(dim=2))
        return z.flatten(-2)

    def hidden(self, i: int, x: Tensor) -> Tensor:
        normed = self.branch_norm(f"blocks.{i}.ln2", x)
        before = self.tap(f"blocks.{i}.mlp.hook_pre", self.linear(f"blocks.{i}.mlp", "in", normed))
        wide = before.to(torch.promote_types(before.dtype, torch.float32))
        after = gelu(wide) if self.architecture.activation == "gelu" else relu(wide)
        return self.tap(f"blocks.{i}.mlp.hook_post", after)

    def head(self, x: Tensor) -> Tensor:
        logits = self.linear("unembed", "U", self.branch_norm("ln_final", x))
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def branch_norm(self, name: str, x: Tensor) -> Tensor:
        return self.tap(f"{name}.hook_normalized", self.norm(name, x))

    def norm(self, name: str, x: Tensor) -> Tensor:
        """LayerNorm: (x − mean) / √(variance + ε) · w + b."""
        if not self.architecture.layer_norm:
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
        return out if self.dropout is None else self.dropout(out, branch)
