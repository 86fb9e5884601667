"""The transformer of the paper's Appendix B over stacked parameters.

Tensors are [runs, positions, inputs, width]; the last position is read. Sites carry TransformerLens's hook names.
Training takes two short cuts that change no number: the last block is computed at the read position only, and, for
pair tables, block 0's LayerNorm and QKV on the distinct (token, position) rows, which are then gathered.
"""

from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor

from grokscope.model.rows import gathered_rows
from grokscope.model.stacked import StackedPass

__all__ = ["TransformerPass"]

Qkv = tuple[Tensor, ...]
FEW = 4  # keys for which plain sums beat matrix products


@dataclass
class TransformerPass(StackedPass):
    """One forward pass over tokens."""

    has_separator: bool = False
    """Whether the tokens are a, b and a separator that all inputs of a run share."""

    def logits(self, tokens: Tensor, classes: Tensor) -> Tensor:
        """The whole pass."""
        x, qkv = self.embedded(tokens)
        for i in range(self.architecture.layers):
            x = self.block(i, x, qkv if i == 0 else None)
            if self.taps is not None and self.taps.is_done:
                return x.new_empty(*x[:, -1].shape[:-1], 0)
        return self.masked(self.head(x[:, -1]), classes)

    def last_hidden(self, tokens: Tensor, block: int) -> Tensor:
        """Neurons of a block at the read position, or its attention output where there are none."""
        has_mlp = self.architecture.mlp == "on"
        if block == 0 and self.by_rows:
            mixed, attention_out = self.first_attention_read(tokens)
            return self.hidden(0, mixed) if has_mlp else attention_out
        x, qkv = self.embedded(tokens)
        for i in range(block):
            x = self.block(i, x, qkv if i == 0 else None)
        mixed, attention_out = self.attention(block, x, qkv if block == 0 else None, only_read=True)
        return (self.hidden(block, mixed) if has_mlp else attention_out)[:, -1]

    def embedded(self, tokens: Tensor) -> tuple[Tensor, Qkv | None]:
        """The residual stream before block 0, and block 0's QKV where it was made row by row."""
        positions = self.weights["pos_embed.W_pos"]
        if not self.by_rows:
            x = self.tap("hook_embed", self.looked_up(tokens))
            x = x + self.tap(
                "hook_pos_embed", positions[:, :, None].expand_as(x).clone()
            )  # an edit must not reach the weights
            if self.architecture.readout == "pooled":  # the read position sees the others without attention
                x = torch.cat([x[:, :-1], x.sum(dim=1, keepdim=True)], dim=1)
            return x, None
        table, qkv = self.row_table(tokens)
        # Gathered apart, so that the gradients of q, k and v need not be joined at full size.
        parts = tuple(self.from_rows(part, tokens) for part in qkv.chunk(3, dim=-1))
        return self.from_rows(table, tokens), parts

    def looked_up(self, tokens: Tensor) -> Tensor:
        """Every token's embedding; position by position where there are few, whose gradients are then added up."""
        embeddings, length = self.weights["embed.W_E"], tokens.shape[1]
        if length > FEW:
            return gathered_rows(embeddings, tokens.flatten(1)).view(len(tokens), length, tokens.shape[2], -1)
        return torch.stack([gathered_rows(embeddings, tokens[:, i]) for i in range(length)], dim=1)

    @property
    def by_rows(self) -> bool:
        """Whether block 0's QKV can be made on the distinct rows."""
        is_plain = self.architecture.attention == "on" and self.architecture.readout == "last"
        return self.has_separator and self.taps is None and is_plain

    def row_table(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The stream before block 0 and its QKV on every row: a's tokens, b's tokens, the separator."""
        embeddings, positions = self.weights["embed.W_E"], self.weights["pos_embed.W_pos"]
        separator = gathered_rows(embeddings, tokens[:, -1, :1])
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
        first = x.shape[1] - 1 if only_read else 0
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
        """softmax(q·k/√e) v for every query position, heads joined."""
        if k.shape[1] > FEW:
            return self.mixed_by_products(i, q, k, v)
        wide = torch.promote_types(q.dtype, torch.float32)
        scores = (q[:, :, None].to(wide) * k[:, None].to(wide)).sum(dim=-1) / sqrt(self.architecture.head_width)
        if self.architecture.causal:
            seen = torch.ones(k.shape[1], k.shape[1], device=q.device).tril()[-q.shape[1] :].bool()
            scores = scores.masked_fill(~seen[None, :, :, None, None], -torch.inf)
        pattern = self.tap(f"blocks.{i}.attn.hook_pattern", scores.softmax(dim=2))
        z = self.tap(f"blocks.{i}.attn.hook_z", (pattern[..., None] * v[:, None].to(wide)).sum(dim=2))
        return z.flatten(-2)

    def mixed_by_products(self, i: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """`mixed`, input by input and head by head a product of matrices over the positions."""
        wide = torch.promote_types(q.dtype, torch.float32)
        q, k, v = (part.to(wide).permute(0, 2, 3, 1, 4) for part in (q, k, v))  # [runs, inputs, heads, positions, e]
        scores = q @ k.transpose(-1, -2) / sqrt(self.architecture.head_width)
        if self.architecture.causal:
            seen = torch.ones(k.shape[3], k.shape[3], device=q.device).tril()[-q.shape[3] :].bool()
            scores = scores.masked_fill(~seen, -torch.inf)
        pattern = self.tap(f"blocks.{i}.attn.hook_pattern", scores.softmax(dim=-1).permute(0, 3, 4, 1, 2))
        z = pattern.permute(0, 3, 4, 1, 2) @ v
        return self.tap(f"blocks.{i}.attn.hook_z", z.permute(0, 3, 1, 2, 4)).flatten(-2)

    def hidden(self, i: int, x: Tensor) -> Tensor:
        """A block's neurons."""
        normed = self.branch_norm(f"blocks.{i}.ln2", x)
        before = self.tap(f"blocks.{i}.mlp.hook_pre", self.linear(f"blocks.{i}.mlp", "in", normed))
        return self.tap(f"blocks.{i}.mlp.hook_post", self.activated(before))

    def head(self, x: Tensor) -> Tensor:
        """Logits of the stream at the read position, in at least float32, before the temperature."""
        logits = self.linear("unembed", "U", self.branch_norm("ln_final", x))
        return logits.to(torch.promote_types(logits.dtype, torch.float32))
