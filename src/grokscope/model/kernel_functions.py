"""The links of a pass by kernels: functions that each compute forward and back.

Gradients of parameters are written where `Gradients` says, so that none is added up twice. Activations are [runs, rows,
columns], of a transformer with a row for each (position, input).
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from grokscope.kernels import attention, head, neurons, norm, rows, sequence_attention, squares, tokens
from grokscope.kernels.product import product
from grokscope.model.kernel_gradients import Gradients
from grokscope.model.layout import Weights

__all__ = [
    "Activated",
    "AddAndNorm",
    "Answers",
    "Attended",
    "Biased",
    "Gathered",
    "Linear",
    "LookedUp",
    "LossOfOutputs",
    "LossOfRows",
    "Norm",
    "SequenceAttended",
    "Stream",
    "SummedRows",
    "Table",
    "unembedded",
]


class Table(torch.autograd.Function):
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


class Gathered(torch.autograd.Function):
    """Each input's rows of the table."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, tokens: Tensor, gradients: Gradients | None) -> Tensor:
        ctx.gradients = gradients
        return rows.gather_rows(table, tokens)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None, None]:
        return rows.row_gradient(upstream[0].contiguous(), ctx.gradients.ordered), None, None


class LookedUp(torch.autograd.Function):
    """Embeddings of tokens [runs, length, inputs], and of their positions where there are any."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, weights: Weights, chosen: Tensor, gradients: Gradients | None) -> Tensor:
        ctx.gradients, ctx.runs = gradients, len(chosen)
        ctx.is_placed = "pos_embed.W_pos" in weights
        return tokens.look_up(weights["embed.W_E"], weights.get("pos_embed.W_pos"), chosen)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[None, ...]:
        grad, matrices = upstream[0].contiguous(), ctx.gradients.matrices
        with ctx.gradients.aside(grad):
            tokens.token_gradient(grad, ctx.gradients.ordered, matrices["embed.W_E"][: ctx.runs])
            if ctx.is_placed:
                tokens.position_gradient(grad, matrices["pos_embed.W_pos"][: ctx.runs])
        return (None,) * 4


class SummedRows(torch.autograd.Function):
    """Σ_l W[l, t_l]: a map of one-hot vectors."""

    @staticmethod
    def forward(
        ctx: Any, anchor: Tensor, weight: Tensor, chosen: Tensor, gradients: Gradients | None, name: str
    ) -> Tensor:
        ctx.gradients, ctx.name, ctx.runs = gradients, name, len(chosen)
        return tokens.sum_rows(weight, chosen)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[None, ...]:
        grad, gradients = upstream[0].contiguous(), ctx.gradients
        with gradients.aside(grad):
            tokens.token_gradient(grad, gradients.ordered, gradients.matrices[ctx.name][: ctx.runs])
        return (None,) * 5


@dataclass(frozen=True)
class Stream:
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

    def since(self, row: int) -> "Stream":
        """Its rows from this one on."""
        return replace(self, rows=self.rows[:, row:], out=None if self.out is None else self.out[:, row:])


@dataclass(frozen=True)
class Norm:
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


class AddAndNorm(torch.autograd.Function):
    """The stream after a branch, and what the next branch reads; the last rows of both where only they go on."""

    @staticmethod
    def forward(ctx: Any, stream: Tensor, out: Tensor | None, what: Norm) -> tuple[Tensor, ...]:
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


class Linear(torch.autograd.Function):
    """Each run's x W; the anchor is what autograd follows where x is given and has no gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        gradient: Tensor | None,
        gradients: Gradients | None,
        anchor: Tensor | None = None,
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.gradient, ctx.gradients = gradient, gradients
        return product(x, weight)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        ctx.gradients.multiply(x, upstream[0], ctx.gradient)
        dx = product(upstream[0], weight.transpose(1, 2)) if ctx.needs_input_grad[0] else None
        return dx, None, None, None, None


class Attended(torch.autograd.Function):
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


class SequenceAttended(torch.autograd.Function):
    """Attention of one block over any number of positions; biases are in its queries, keys and values."""

    @staticmethod
    def forward(ctx: Any, q: Tensor | None, kv: Tensor, shape: tuple[int, int, bool], work: Tensor) -> Tensor:
        ctx.shape = shape
        z, sums = sequence_attention.attend(_sequence(q, kv, shape), work)
        ctx.save_for_backward(q, kv, sums)
        return z

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        q, kv, sums = ctx.saved_tensors
        dq, dkv = None if q is None else torch.empty_like(q), torch.empty_like(kv)
        to = _sequence(dq, dkv, ctx.shape)
        places = (to.q, to.k, to.v)
        sequence_attention.attend_gradient(_sequence(q, kv, ctx.shape), upstream[0].contiguous(), sums, places)
        return dq, dkv, None, None


def _sequence(q: Tensor | None, kv: Tensor, shape: tuple[int, int, bool]) -> sequence_attention.SequenceAttention:
    """Queries apart, or beside keys and values; the shape is inputs, heads, and whether it is causal."""
    asks, keys, values = kv.chunk(3, dim=2) if q is None else (q, *kv.chunk(2, dim=2))
    inputs, heads, causal = shape
    return sequence_attention.SequenceAttention(asks, keys, values, inputs, heads, causal)


class Activated(torch.autograd.Function):
    """Bias and nonlinearity of neurons, in the precision of the product that reads them."""

    @staticmethod
    def forward(ctx: Any, before: Tensor, bias: Tensor | None, kind: str, place: Any) -> Tensor:
        ctx.save_for_backward(before)
        ctx.bias, ctx.kind, ctx.place, (work, _, _, compute) = bias, kind, place, place
        return neurons.activate(before, bias, kind, work, compute)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        ((before,), (_, gradients, name, _)) = ctx.saved_tensors, ctx.place
        parts = gradients.reserve(name, neurons.tiles(before), before.shape[2], (None if ctx.bias is None else name,))
        dbefore = neurons.activate_gradient(before, ctx.bias, upstream[0].contiguous(), ctx.kind, parts)
        return dbefore, None, None, None


class Biased(torch.autograd.Function):
    """A bias on its own, where something stands between it and the stream."""

    @staticmethod
    def forward(ctx: Any, out: Tensor, bias: Tensor, gradients: Gradients | None, name: str, offset: int = 0) -> Tensor:
        ctx.gradients, ctx.name, ctx.offset = gradients, name, offset
        return out + bias[:, None]

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        own = upstream[0].contiguous()
        key = f"{ctx.name} from {ctx.offset}"
        parts = ctx.gradients.reserve(key, neurons.tiles(own), own.shape[2], (ctx.name,), ctx.offset)
        neurons.column_parts(own, parts)
        return own, None, None, None, None


@dataclass(frozen=True)
class Answers:
    """The last map, and a batch's labels with which its outputs are compared."""

    weight: Tensor
    """W_U in the precision of products."""
    bias: Tensor | None
    """b_U."""
    batch: tuple[Tensor, Tensor, Tensor]
    """Labels, and of each run its classes and how many rows count."""
    loss: str
    """What is minimised."""
    gradients: Gradients
    """Where gradients of parameters go."""
    compute: torch.dtype
    """Of the gradient of the outputs."""
    temperature: float = 1.0
    """What outputs are divided by."""

    def losses(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Σ of each run's losses tile by tile [runs, tiles], and the gradient of their mean by the outputs."""
        labels, classes, counts = self.batch
        tiles, columns = head.loss_tiles(*outputs.shape[1:]), outputs.shape[2]
        names = (None if self.bias is None else "unembed.b_U",)
        parts = self.gradients.reserve("unembed.b_U", tiles, columns, names)
        losses = outputs.new_empty(len(outputs), tiles)
        is_same = self.compute == outputs.dtype
        gradient = outputs if is_same else torch.empty_like(outputs, dtype=self.compute)
        own = (outputs, self.bias, labels, classes, counts, gradient, losses, parts, self.temperature)
        if self.loss == "mse":
            squares.loss_and_gradient(*own)
        else:
            head.loss_and_gradient(*own, is_stable=self.loss == "stablemax")
        return losses, gradient


class LossOfRows(torch.autograd.Function):
    """The last map and the loss, Σ tile by tile; what comes from upstream is taken as 1."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, answers: Answers, anchor: Tensor) -> Tensor:
        losses, gradient = answers.losses(unembedded(x, answers.weight, anchor.dtype))
        ctx.save_for_backward(x, gradient)
        ctx.answers = answers
        return losses

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        (x, gradient), answers = ctx.saved_tensors, ctx.answers
        answers.gradients.multiply(x, gradient, answers.gradients.matrices["unembed.W_U"])
        dx = product(gradient, answers.weight.transpose(1, 2)) if ctx.needs_input_grad[0] else None
        return dx, None, None


class LossOfOutputs(torch.autograd.Function):
    """The loss of outputs that are there already, of a linear map of one-hot vectors."""

    @staticmethod
    def forward(ctx: Any, outputs: Tensor, answers: Answers) -> Tensor:
        losses, gradient = answers.losses(outputs.clone())
        ctx.save_for_backward(gradient)
        return losses

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        return ctx.saved_tensors[0], None


def unembedded(x: Tensor, weight: Tensor, stored: torch.dtype) -> Tensor:
    """Outputs of rows, in the precision of the stored weights, without their bias."""
    if weight.dtype == stored:
        return product(x, weight)
    return product(x, weight, x.new_empty(max(2, len(x)), x.shape[1], weight.shape[2], dtype=stored))
