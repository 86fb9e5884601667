"""The pass of `forward` and its gradient by kernels: for every architecture, a run's bits whatever the stack.

A pass is a chain of functions that each compute forward and back: the stream is added to and normalised, a linear map
or attention follows. Gradients of parameters are written where `Gradients` says, so that none is added up twice.
Activations are [runs, rows, columns] with a row for each (position, input).
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import Any

import torch
from torch import Tensor

from grokscope.kernels import attention, head, neurons, norm, rows, sums
from grokscope.kernels.aside import Aside
from grokscope.kernels.product import product
from grokscope.model.forward import READ, Dropout
from grokscope.model.layout import POSITIONS, Layout, Weights
from grokscope.specs import Architecture

__all__ = ["Gradients", "KernelPass"]


@dataclass
class _Parts:
    """Sums of tiles, [runs, tiles, columns], and the parameters whose gradients their columns are."""

    tensor: Tensor
    """Where kernels write them."""
    names: tuple[str | None, ...]
    """One parameter for each equal share of the columns, or None where there is none."""


class Gradients:
    """A flat buffer like the weights', and sums of tiles that are finished in one launch."""

    def __init__(self, layout: Layout, runs: int, like: Tensor) -> None:
        # Products need a stack of at least two.
        self.stack = torch.zeros(max(2, runs), layout.size, dtype=like.dtype, device=like.device)
        self.flat = self.stack[:runs]
        self.matrices = layout.views(self.stack)
        self.places = layout.places
        self.ordered: tuple[Tensor, Tensor]
        """The batch in the order of its tokens, for sums over the rows of the table."""
        self.parts: dict[str, _Parts] = {}
        self.joined: Tensor | None = None
        self.plan: Tensor | None = None
        # Nothing waits for the weights' gradients but the end of the pass; two at a time keep up with the rest of it.
        self.products = cycle([Aside(like.device, runs), Aside(like.device, runs)])
        self.aside = Aside(like.device, runs)

    def reserve(self, key: str, tiles: int, columns: int, names: Sequence[str | None]) -> Tensor:
        """Room for the sums of an operation's tiles; the same at every step."""
        if key not in self.parts:
            tensor = self.flat.new_zeros(len(self.flat), tiles, columns)
            self.parts[key] = _Parts(tensor, tuple(names))
            self.joined = self.plan = None
        return self.parts[key].tensor

    def multiply(self, x: Tensor, dy: Tensor, out: Tensor) -> None:
        """A weight's gradient xᵀ dy."""
        with next(self.products)(x, dy):
            product(x.transpose(1, 2), dy, out)

    def finish(self) -> None:
        """Add up all tiles' sums into the flat buffer, and wait for all gradients."""
        if self.joined is None or self.plan is None:
            self._join()
        assert self.joined is not None
        assert self.plan is not None
        if len(self.plan):
            sums.finish_parts(self.joined, self.plan, self.flat, self.widest)
        for aside in (next(self.products), next(self.products), self.aside):
            aside.join()

    def _join(self) -> None:
        """Put all sums into one buffer, so that one launch finishes them from now on."""
        self.joined = torch.cat([self.flat[0, :0], *(parts.tensor.flatten() for parts in self.parts.values())])
        plan, start = [], 0
        for parts in self.parts.values():
            (_, tiles, columns), size = parts.tensor.shape, parts.tensor.numel()
            width = columns // len(parts.names)
            for i, name in enumerate(parts.names):
                if name is not None:
                    plan.append((start + i * width, tiles * columns, columns, tiles, width, self.places[name]))
            parts.tensor = self.joined[start : start + size].view(parts.tensor.shape)
            start += size
        self.widest = max((width for *_, width, _ in plan), default=0)
        self.plan = torch.tensor(plan, dtype=torch.int64, device=self.flat.device).reshape(-1, 6)


class _Table(torch.autograd.Function):
    """Rows over (token, position) of the embeddings."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, weights: Weights, separators: Tensor, gradients: Gradients | None) -> Tensor:
        ctx.separators, ctx.gradients = separators, gradients
        return rows.row_table(weights["embed.W_E"], weights["pos_embed.W_pos"], separators)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[None, ...]:
        runs, grad = len(ctx.separators), upstream[0].contiguous()
        own = (ctx.gradients.matrices[name][:runs] for name in ("embed.W_E", "pos_embed.W_pos"))
        with ctx.gradients.aside(grad):
            rows.embedding_gradient(grad, ctx.separators, *own)
        return (None,) * 4


class _Gathered(torch.autograd.Function):
    """Each input's rows of the table."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, tokens: Tensor, gradients: Gradients | None) -> Tensor:
        ctx.gradients = gradients
        return rows.gather_rows(table, tokens)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None, None]:
        return rows.row_gradient(upstream[0].contiguous(), ctx.gradients.ordered), None, None


@dataclass(frozen=True)
class _Stream:
    """The residual stream, and what a branch has yet to add to it."""

    rows: Tensor
    """[runs, rows, width]; in block 0 it may be the table over (token, position)."""
    tokens: Tensor | None = None
    """Which rows of a table each input has."""
    first: int = 0
    """The first position wanted of a table."""
    out: Tensor | None = None
    """The branch's output."""
    bias: str | None = None
    """Name of the branch's bias."""

    def since(self, row: int) -> "_Stream":
        """Its rows from this one on."""
        return replace(self, rows=self.rows[:, row:], out=None if self.out is None else self.out[:, row:])


@dataclass(frozen=True)
class _Norm:
    """What follows a branch: its bias, and the next branch's LayerNorm."""

    name: str
    """Of the LayerNorm."""
    bias: str | None
    """Name of the branch's bias."""
    weights: Weights
    """All vectors by name."""
    compute: torch.dtype
    """Of what is normalised."""
    gradients: Gradients | None
    """Where gradients of vectors go."""
    tokens: Tensor | None = None
    """Where the stream is a table."""
    first: int = 0
    """The first position wanted of a table."""
    tail: int = 0
    """The row from which on the stream goes on; all of it where 0."""
    goes_on: bool = True
    """Whether the stream is read again."""

    @property
    def layer_norm(self) -> tuple[Tensor, Tensor] | None:
        """Its weight and shift, if there is one."""
        own = self.weights.get(f"{self.name}.w")
        return None if own is None else (own, self.weights[f"{self.name}.b"])

    def parts(self, total: Tensor) -> Tensor:
        """Room for the sums of its tiles."""
        assert self.gradients is not None
        own = (f"{self.name}.w", f"{self.name}.b") if self.layer_norm else (None, None)
        tiles = -(-total.shape[1] // norm.ROWS)
        return self.gradients.reserve(self.name, tiles, 3 * total.shape[2], (*own, self.bias))


class _AddAndNorm(torch.autograd.Function):
    """The stream after a branch, and what the next branch reads; the last rows of both where only they go on."""

    @staticmethod
    def forward(ctx: Any, stream: Tensor, out: Tensor | None, what: _Norm) -> tuple[Tensor, ...]:
        source = norm.Source(stream, what.tokens, what.first)
        bias = None if what.bias is None else what.weights[what.bias]
        is_whole = what.gradients is not None or (what.tail == 0 and what.goes_on)
        total, normed, total_tail, normed_tail = norm.add_and_norm(
            source, out, bias, what.layer_norm, what.compute, what.tail, is_whole
        )
        ctx.what = what
        ctx.compute, ctx.has_out = stream.dtype if out is None else out.dtype, out is not None
        ctx.save_for_backward(total)
        ctx.set_materialize_grads(False)
        if total_tail is None or normed_tail is None:
            return total, normed
        return total_tail, normed, normed_tail

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor | None) -> tuple[Tensor | None, ...]:
        (total,), what = ctx.saved_tensors, ctx.what
        dtotal, dnormed, dtail = (*upstream, None)[:3]
        assert dnormed is not None
        what.gradients.aside.join()
        weight = None if what.layer_norm is None else what.layer_norm[0]
        dtotal, dtail = (None if grad is None else grad.contiguous() for grad in (dtotal, dtail))
        dx, dout = norm.add_and_norm_gradient(
            total, weight, dtotal, dnormed.contiguous(), dtail, ctx.compute, what.parts(total)
        )
        if what.tokens is not None:
            with what.gradients.aside(dx):
                dx = rows.row_gradient(dx, what.gradients.ordered, what.first)
        return dx, dout if ctx.has_out else None, None


class _Linear(torch.autograd.Function):
    """Each run's x W."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, gradient: Tensor | None, gradients: Gradients | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.gradient, ctx.gradients = gradient, gradients
        return product(x, weight)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        ctx.gradients.multiply(x, upstream[0], ctx.gradient)
        return product(upstream[0], weight.transpose(1, 2)), None, None, None


class _Attended(torch.autograd.Function):
    """Attention of one block."""

    @staticmethod
    def forward(ctx: Any, q: Tensor | None, kv: Tensor, what: attention.Attention, place: Any) -> Tensor:
        ctx.what, ctx.place, (work, *_) = what, place, place
        return attention.attend(what, work)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        what, (_, gradients, name) = ctx.what, ctx.place
        tiles = -(-what.inputs // attention.INPUTS)
        own = (None if what.bias is None else name,)
        parts = gradients.reserve(name, tiles, 3 * what.width, own)
        dq, dkv = attention.attend_gradient(what, upstream[0].contiguous(), parts)
        if what.tokens is not None:
            dkv = rows.row_gradient(dkv, gradients.ordered)
        return dq, dkv, None, None


class _Activated(torch.autograd.Function):
    """Bias and nonlinearity of an MLP."""

    @staticmethod
    def forward(ctx: Any, before: Tensor, bias: Tensor | None, is_relu: bool, place: Any) -> Tensor:
        ctx.save_for_backward(before)
        ctx.bias, ctx.is_relu, ctx.place, (work, *_) = bias, is_relu, place, place
        return neurons.activate(before, bias, is_relu, work)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        ((before,), (_, gradients, name)) = ctx.saved_tensors, ctx.place
        parts = gradients.reserve(name, neurons.tiles(before), before.shape[2], (None if ctx.bias is None else name,))
        dbefore = neurons.activate_gradient(before, ctx.bias, upstream[0].contiguous(), ctx.is_relu, parts)
        return dbefore, None, None, None


class _Biased(torch.autograd.Function):
    """A bias on its own, where something stands between it and the stream."""

    @staticmethod
    def forward(ctx: Any, out: Tensor, bias: Tensor, gradients: Gradients | None, name: str) -> Tensor:
        ctx.gradients, ctx.name = gradients, name
        return out + bias[:, None]

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        own = upstream[0].contiguous()
        parts = ctx.gradients.reserve(ctx.name, neurons.tiles(own), own.shape[2], (ctx.name,))
        neurons.column_parts(own, parts)
        return own, None, None, None


class _Loss(torch.autograd.Function):
    """Unembedding and cross-entropy: Σ of losses, tile by tile; what comes from upstream is taken as 1."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, model: "KernelPass", batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        labels, classes, counts = batch
        bias, gradients, logits = model.weights.get("unembed.b_U"), model.gradients, model.unembed(x)
        assert gradients is not None
        tiles, columns = head.loss_tiles(*logits.shape[1:]), logits.shape[2]
        parts = gradients.reserve("unembed.b_U", tiles, columns, (None if bias is None else "unembed.b_U",))
        losses = logits.new_empty(len(logits), tiles)
        gradient = logits if model.compute == logits.dtype else torch.empty_like(logits, dtype=model.compute)
        head.loss_and_gradient(logits, bias, labels, classes, counts, gradient, losses, parts)
        ctx.save_for_backward(x, gradient)
        ctx.model = model
        return losses

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        (x, gradient), model = ctx.saved_tensors, ctx.model
        model.gradients.multiply(x, gradient, model.gradients.matrices["unembed.W_U"])
        return product(gradient, model.rounded["unembed.W_U"].transpose(1, 2)), None, None


@dataclass
class KernelPass:
    """One pass over a stack: what `forward` computes, by kernels."""

    architecture: Architecture
    """What to compute."""
    weights: Weights
    """Parameters [runs, …] by name, as stored."""
    rounded: Weights
    """The same in the precision of matrix products: what these read."""
    separators: Tensor
    """Each run's separator token, int32 [runs]."""
    gradients: Gradients | None = None
    """Where gradients go; None where none are wanted."""
    dropout: Dropout | None = None
    """What drops a branch's output."""
    table: tuple[Tensor, Tensor] | None = field(default=None, init=False)
    """Rows of block 0, where they serve several passes."""
    anchor: Tensor = field(init=False)
    """What autograd follows: gradients of parameters are written, not returned."""

    def __post_init__(self) -> None:
        example = self.weights["embed.W_E"]
        self.anchor = example.new_zeros(()).requires_grad_(self.gradients is not None)

    @property
    def stored(self) -> torch.dtype:
        """Precision of the weights, the stream and the logits."""
        return self.weights["embed.W_E"].dtype

    @property
    def compute(self) -> torch.dtype:
        """Precision of matrix products."""
        return self.rounded["unembed.W_U"].dtype

    def losses(
        self, tokens: Tensor, labels: Tensor, classes: Tensor, counts: Tensor, choose: Callable[[], None] = lambda: None
    ) -> Tensor:
        """Σ of each run's losses, tile by tile [runs, tiles]; `choose` puts the batch where these tensors are."""
        assert self.gradients is not None
        with self.gradients.aside():  # block 0's rows need no batch
            choose()
            self.gradients.ordered = rows.order_inputs(tokens, self.weights["embed.W_E"].shape[1])
        found: Tensor = _Loss.apply(self._read(tokens), self, (labels, classes, counts))  # type: ignore[no-untyped-call]
        return found

    def backward(self, losses: Tensor) -> None:
        """Leave every gradient of the mean losses in `gradients`."""
        assert self.gradients is not None
        with torch.autograd.set_multithreading_enabled(False):  # another thread would have no CUDA context yet
            losses.backward(torch.empty_like(losses))  # type: ignore[no-untyped-call]
        self.gradients.finish()

    def logits(self, tokens: Tensor) -> Tensor:
        """Logits at the read position, without their bias."""
        return self.unembed(self._read(tokens))

    def unembed(self, x: Tensor) -> Tensor:
        """Logits of normalised rows, in the precision of the weights, without their bias."""
        weight = self.rounded["unembed.W_U"]
        if self.compute == self.stored:
            return product(x, weight)
        return product(x, weight, x.new_empty(max(2, len(x)), x.shape[1], weight.shape[2], dtype=self.stored))

    def _read(self, tokens: Tensor) -> Tensor:
        """The normalised stream at the read position."""
        layers, stream = self.architecture.layers, self._embedded(tokens)
        for i in range(layers):
            stream = self._attention(i, stream, tokens, only_read=i == layers - 1)
            if self.architecture.mlp != "dropped":
                stream = self._mlp(i, stream)
        return self._norm("ln_final", stream)[1]

    def hidden(self, tokens: Tensor) -> tuple[Tensor, Tensor | None]:
        """Block 0's neurons at the read position before bias and activation [runs, inputs, neurons], and their bias.

        For a model without MLPs, the attention's output and bias.
        """
        stream = self._attention(0, self._embedded(tokens), tokens, only_read=True)
        if self.architecture.mlp == "on":
            normed = self._norm("blocks.0.ln2", stream)[1]
            return self._linear(normed, "blocks.0.mlp.W_in"), self.weights.get("blocks.0.mlp.b_in")
        out = torch.zeros_like(stream.rows) if stream.out is None else stream.out
        return out, None if stream.bias is None else self.weights[stream.bias]

    @property
    def _by_rows(self) -> bool:
        """Whether block 0's QKV can be made on the distinct rows."""
        return self.architecture.attention == "on" and self.architecture.readout == "last"

    def _embedded(self, tokens: Tensor) -> _Stream:
        """The stream before block 0: the table, or every input's rows of it."""
        if self._by_rows and self.table is not None:
            return _Stream(self.table[0], tokens)
        table: Tensor = _Table.apply(self.anchor, self.weights, self.separators, self.gradients)  # type: ignore[no-untyped-call]
        if self._by_rows:
            return _Stream(table, tokens)
        self._join()
        x: Tensor = _Gathered.apply(table, tokens, self.gradients)  # type: ignore[no-untyped-call]
        if self.architecture.readout == "pooled":  # the read position sees a and b without attention
            parts = x.view(len(x), POSITIONS, -1, x.shape[2])
            x = torch.cat([parts[:, :READ], parts.sum(dim=1, keepdim=True)], dim=1).flatten(1, 2)
        return _Stream(x)

    def _attention(self, i: int, stream: _Stream, tokens: Tensor, only_read: bool) -> _Stream:
        """The stream with what a block's attention branch adds, at the read position alone where only that goes on."""
        inputs, name = tokens.shape[2], f"blocks.{i}"
        start = READ * inputs if only_read else 0
        if self.architecture.attention == "dropped":
            return stream.since(start)
        if self.architecture.attention == "norm":
            total, normed = self._norm(f"{name}.ln1", stream, compute=self.stored)[:2]
            return self._with(_Stream(total).since(start), normed[:, start:], None, 2 * i)
        if i == 0 and stream.tokens is not None:  # queries, keys and values on the distinct rows
            first, (total, qkv) = READ if only_read else 0, self.table or self._rows_of_block_0(stream.rows)
            self._join()
            z, following = self._attend(i, None, qkv, tokens, inputs, first), _Stream(total, tokens, first)
        elif only_read:
            total, normed, asking = self._norm(f"{name}.ln1", stream, tail=start)
            with self._aside(asking):
                q = self._linear(asking, f"{name}.attn.W_QKV", slice(0, self.architecture.width))
            kv = self._linear(normed, f"{name}.attn.W_QKV", slice(self.architecture.width, None))
            self._join()
            z, following = self._attend(i, q, kv, None, inputs, READ), _Stream(total)
        else:
            total, normed = self._norm(f"{name}.ln1", stream)[:2]
            z = self._attend(i, None, self._linear(normed, f"{name}.attn.W_QKV"), None, inputs, 0)
            following = _Stream(total)
        return self._with(following, self._linear(z, f"{name}.attn.W_O"), f"{name}.attn.b_O", 2 * i)

    def _rows_of_block_0(self, table: Tensor) -> tuple[Tensor, Tensor]:
        """The table and its queries, keys and values; without gradients they are made once for all inputs."""
        total, normed = self._norm("blocks.0.ln1", _Stream(table))[:2]
        found = (total, self._linear(normed, "blocks.0.attn.W_QKV"))
        if self.gradients is None:
            self.table = found
        return found

    def _mlp(self, i: int, stream: _Stream) -> _Stream:
        """The stream with what a block's MLP branch adds."""
        name, is_norm = f"blocks.{i}", self.architecture.mlp == "norm"
        total, normed = self._norm(f"{name}.ln2", stream, compute=self.stored if is_norm else None)[:2]
        if is_norm:
            return self._with(_Stream(total), normed, None, 2 * i + 1)
        before = self._linear(normed, f"{name}.mlp.W_in")
        bias, place = self.weights.get(f"{name}.mlp.b_in"), (total, self.gradients, f"{name}.mlp.b_in")
        is_relu = self.architecture.activation == "relu"
        after: Tensor = _Activated.apply(before, bias, is_relu, place)  # type: ignore[no-untyped-call]
        return self._with(_Stream(total), self._linear(after, f"{name}.mlp.W_out"), f"{name}.mlp.b_out", 2 * i + 1)

    def _with(self, stream: _Stream, out: Tensor, bias: str | None, branch: int) -> _Stream:
        """A stream to which a branch's output is yet to be added."""
        own = bias if bias in self.weights else None
        if self.dropout is not None:
            if own is not None:
                out = _Biased.apply(out, self.weights[own].to(out.dtype), self.gradients, own)  # type: ignore[no-untyped-call]
            out, own = self.dropout(out, branch), None
        return replace(stream, out=out, bias=own)

    def _norm(
        self, name: str, stream: _Stream, tail: int = 0, compute: torch.dtype | None = None
    ) -> tuple[Tensor, ...]:
        """The stream after a branch, and its LayerNorm; with `tail` the last rows of both, between them all normed."""
        own = (stream.tokens, stream.first, tail, name != "ln_final")
        what = _Norm(name, stream.bias, self.weights, compute or self.compute, self.gradients, *own)
        out = None if stream.out is None else stream.out.contiguous()
        found: tuple[Tensor, ...] = _AddAndNorm.apply(stream.rows.contiguous(), out, what)  # type: ignore[no-untyped-call]
        return found

    def _aside(self, *read: Tensor) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self.gradients is None else self.gradients.aside(*read)

    def _join(self) -> None:
        if self.gradients is not None:
            self.gradients.aside.join()

    def _linear(self, x: Tensor, name: str, columns: slice = slice(None)) -> Tensor:
        own = None if self.gradients is None else self.gradients.matrices[name][..., columns]
        found: Tensor = _Linear.apply(x, self.rounded[name][..., columns], own, self.gradients)  # type: ignore[no-untyped-call]
        return found

    def _attend(self, i: int, q: Tensor | None, kv: Tensor, tokens: Tensor | None, inputs: int, first: int) -> Tensor:
        a, name = self.architecture, f"blocks.{i}.attn.b_QKV"
        what = attention.Attention(q, kv, self.weights.get(name), tokens, inputs, first, a.heads, a.causal)
        place = (self.weights["embed.W_E"], self.gradients, name)
        found: Tensor = _Attended.apply(q, kv, what, place)  # type: ignore[no-untyped-call]
        return found
