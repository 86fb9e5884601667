"""The transformer's pass by kernels: the stream is added to and normalised, a linear map or attention follows.

Activations are [runs, rows, columns] with a row for each (position, input). Pair tables have kernels of their own, for
three positions of which the last has one token; block 0's queries, keys and values are then made on distinct rows.
"""

import contextlib
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from grokscope.kernels import attention, rows
from grokscope.model.kernel_base import KernelPass
from grokscope.model.kernel_functions import (
    Activated,
    AddAndNorm,
    Attended,
    Biased,
    Gathered,
    LookedUp,
    Norm,
    SequenceAttended,
    Stream,
    Table,
)
from grokscope.model.layout import PAIR_POSITIONS

__all__ = ["TransformerKernels"]

READ = PAIR_POSITIONS - 1


@dataclass
class TransformerKernels(KernelPass):
    """One pass over tokens [runs, length, inputs]."""

    separators: Tensor | None = None
    """Of pair tables, each run's separator token, int32 [runs]."""
    table: tuple[Tensor, Tensor] | None = field(default=None, init=False)
    """Rows of block 0, where they serve several passes."""

    def order(self, inputs: Tensor) -> None:
        """Of pair tables position by position, for sums over rows of the table; otherwise over all positions."""
        assert self.gradients is not None
        vocabulary = self.weights["embed.W_E"].shape[1]
        if self.separators is None:
            self.gradients.ordered = rows.order_tokens(inputs.view(len(inputs), 1, -1), vocabulary)
        else:
            self.gradients.ordered = rows.order_inputs(inputs, vocabulary)

    def read(self, tokens: Tensor) -> Tensor:
        """The normalised stream at the read position."""
        layers, stream = self.architecture.layers, self._embedded(tokens)
        for i in range(layers):
            stream = self._attention(i, stream, tokens, only_read=i == layers - 1)
            if self.architecture.mlp != "dropped":
                stream = self._mlp(i, stream)
        return self._norm("ln_final", stream)[1]

    def hidden(self, tokens: Tensor) -> tuple[Tensor, Tensor | None]:
        """Block 0's neurons; for a model without MLPs, the attention's output and bias."""
        stream = self._attention(0, self._embedded(tokens), tokens, only_read=True)
        if self.architecture.mlp == "on":
            normed = self._norm("blocks.0.ln2", stream)[1]
            return self.linear(normed, "blocks.0.mlp.W_in"), self.weights.get("blocks.0.mlp.b_in")
        out = torch.zeros_like(stream.rows) if stream.out is None else stream.out
        return out, None if stream.bias is None else self.weights[stream.bias]

    @property
    def _by_rows(self) -> bool:
        """Whether block 0's QKV can be made on the distinct rows."""
        is_plain = self.architecture.attention == "on" and self.architecture.readout == "last"
        return self.separators is not None and is_plain

    def _embedded(self, tokens: Tensor) -> Stream:
        """The stream before block 0: the table, or every input's rows of it."""
        if self._by_rows and self.table is not None:
            return Stream(self.table[0], tokens)
        if self.separators is None:
            self.join()
            x: Tensor = LookedUp.apply(self.anchor, self.weights, tokens, self.gradients)  # type: ignore[no-untyped-call]
            return Stream(self._pooled(x, tokens.shape[1]))
        table: Tensor = Table.apply(self.anchor, self.weights, self.separators, self.gradients)  # type: ignore[no-untyped-call]
        if self._by_rows:
            return Stream(table, tokens)
        self.join()
        gathered: Tensor = Gathered.apply(table, tokens, self.gradients)  # type: ignore[no-untyped-call]
        return Stream(self._pooled(gathered, PAIR_POSITIONS))

    def _pooled(self, x: Tensor, length: int) -> Tensor:
        """With a pooled readout, the last position sees the others without attention."""
        if self.architecture.readout == "last":
            return x
        parts = x.view(len(x), length, -1, x.shape[2])
        return torch.cat([parts[:, :-1], parts.sum(dim=1, keepdim=True)], dim=1).flatten(1, 2)

    def _attention(self, i: int, stream: Stream, tokens: Tensor, only_read: bool) -> Stream:
        """The stream with what a block's attention branch adds, at the read position alone where only that goes on."""
        (_, length, inputs), name = tokens.shape, f"blocks.{i}"
        start = (length - 1) * inputs if only_read else 0
        if self.architecture.attention == "dropped":
            return stream.since(start)
        if self.architecture.attention == "norm":
            total, normed = self._norm(f"{name}.ln1", stream, compute=self.stored)[:2]
            return self._with(Stream(total).since(start), normed[:, start:], None, 2 * i)
        if i == 0 and stream.tokens is not None:  # queries, keys and values on the distinct rows
            first, (total, qkv) = READ if only_read else 0, self.table or self._rows_of_block_0(stream.rows)
            self.join()
            z, following = self._attend(i, None, qkv, tokens, inputs, first), Stream(total, tokens, first)
        elif self.separators is None:
            return self._attention_over_sequence(i, stream, inputs, start)
        elif only_read:
            total, normed, asking = self._norm(f"{name}.ln1", stream, tail=start)
            with self._aside(asking):
                q = self.linear(asking, f"{name}.attn.W_QKV", slice(0, self.architecture.width))
            kv = self.linear(normed, f"{name}.attn.W_QKV", slice(self.architecture.width, None))
            self.join()
            z, following = self._attend(i, q, kv, None, inputs, READ), Stream(total)
        else:
            total, normed = self._norm(f"{name}.ln1", stream)[:2]
            z = self._attend(i, None, self.linear(normed, f"{name}.attn.W_QKV"), None, inputs, 0)
            following = Stream(total)
        return self._with(following, self.linear(z, f"{name}.attn.W_O"), f"{name}.attn.b_O", 2 * i)

    def _attention_over_sequence(self, i: int, stream: Stream, inputs: int, start: int) -> Stream:
        """As above for any number of positions, of which those from the row `start` on ask and go on."""
        name, d = f"blocks.{i}", self.architecture.width
        if start:
            total, normed, asking = self._norm(f"{name}.ln1", stream, tail=start)
            q = self._biased(self.linear(asking, f"{name}.attn.W_QKV", slice(0, d)), f"{name}.attn.b_QKV", 0)
            kv = self._biased(self.linear(normed, f"{name}.attn.W_QKV", slice(d, None)), f"{name}.attn.b_QKV", d)
        else:
            total, normed = self._norm(f"{name}.ln1", stream)[:2]
            q, kv = None, self._biased(self.linear(normed, f"{name}.attn.W_QKV"), f"{name}.attn.b_QKV", 0)
        shape = (inputs, self.architecture.heads, self.architecture.causal)
        z: Tensor = SequenceAttended.apply(q, kv, shape, self.anchor)  # type: ignore[no-untyped-call]
        return self._with(Stream(total), self.linear(z, f"{name}.attn.W_O"), f"{name}.attn.b_O", 2 * i)

    def _biased(self, out: Tensor, name: str, first: int) -> Tensor:
        """A map's output with its bias, from the bias's number `first` on."""
        if name not in self.weights:
            return out
        bias = self.weights[name][:, first : first + out.shape[2]].to(out.dtype)
        found: Tensor = Biased.apply(out, bias, self.gradients, name, first)  # type: ignore[no-untyped-call]
        return found

    def _rows_of_block_0(self, table: Tensor) -> tuple[Tensor, Tensor]:
        """The table and its queries, keys and values; without gradients they are made once for all inputs."""
        total, normed = self._norm("blocks.0.ln1", Stream(table))[:2]
        found = (total, self.linear(normed, "blocks.0.attn.W_QKV"))
        if self.gradients is None:
            self.table = found
        return found

    def _mlp(self, i: int, stream: Stream) -> Stream:
        """The stream with what a block's MLP branch adds."""
        name, is_norm = f"blocks.{i}", self.architecture.mlp == "norm"
        total, normed = self._norm(f"{name}.ln2", stream, compute=self.stored if is_norm else None)[:2]
        if is_norm:
            return self._with(Stream(total), normed, None, 2 * i + 1)
        before = self.linear(normed, f"{name}.mlp.W_in")
        bias, place = self.weights.get(f"{name}.mlp.b_in"), (total, self.gradients, f"{name}.mlp.b_in", None)
        after: Tensor = Activated.apply(before, bias, self.architecture.activation, place)  # type: ignore[no-untyped-call]
        return self._with(Stream(total), self.linear(after, f"{name}.mlp.W_out"), f"{name}.mlp.b_out", 2 * i + 1)

    def _with(self, stream: Stream, out: Tensor, bias: str | None, branch: int) -> Stream:
        """A stream to which a branch's output is yet to be added."""
        own = bias if bias in self.weights else None
        if self.dropout is not None:
            if own is not None:
                out = self._biased(out, own, 0)
            out, own = self.dropout(out, branch), None
        return replace(stream, out=out, bias=own)

    def _norm(self, name: str, stream: Stream, tail: int = 0, compute: torch.dtype | None = None) -> tuple[Tensor, ...]:
        """The stream after a branch, and its LayerNorm; with `tail` the last rows of both, between them all normed."""
        own = (stream.tokens, stream.first, tail, name != "ln_final")
        what = Norm(name, stream.bias, self.weights, compute or self.compute, self.gradients, *own)
        out = None if stream.out is None else stream.out.contiguous()
        found: tuple[Tensor, ...] = AddAndNorm.apply(stream.rows.contiguous(), out, what)  # type: ignore[no-untyped-call]
        return found

    def _aside(self, *read: Tensor) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self.gradients is None else self.gradients.aside(*read)

    def _attend(self, i: int, q: Tensor | None, kv: Tensor, tokens: Tensor | None, inputs: int, first: int) -> Tensor:
        a, name = self.architecture, f"blocks.{i}.attn.b_QKV"
        what = attention.Attention(q, kv, self.weights.get(name), tokens, inputs, first, a.heads, a.causal)
        place = (self.weights["embed.W_E"], self.gradients, name)
        found: Tensor = Attended.apply(q, kv, what, place)  # type: ignore[no-untyped-call]
        return found
