"""Loss and gradients of a stack of transformers by fused kernels: what `forward` and autograd give, in fewer passes."""

from dataclasses import dataclass
from itertools import accumulate
from math import prod, sqrt
from typing import Any

import torch
import triton
from torch import Tensor

from benchmarks.fused.attention import attention_gradient_kernel, attention_kernel
from benchmarks.fused.head import head_kernel
from benchmarks.fused.linear import input_gradient_kernel, linear_kernel, weight_gradient_kernel
from benchmarks.fused.mlp import mlp_input_gradient_kernel, mlp_kernel, mlp_weight_gradient_kernel
from benchmarks.fused.rows import (
    embedding_gradient_kernel,
    norm_gradient_kernel,
    row_gradient_kernel,
    table_kernel,
)

__all__ = ["MODES", "FusedGradients"]

MODES = {"float32": 0, "tf32": 1, "bf16": 2}
POSITIONS = 3
ROWS = 64  # of a tile of activations


@dataclass
class _Block:
    """Buffers of one block."""

    source: Tensor
    """The residual stream before it; block 0's is the table over (token, position)."""
    qkv: Tensor
    """Queries, keys and values; in a last block that is not the first, keys and values only."""
    q: Tensor | None
    """The read position's queries, where they stand apart."""
    z: Tensor
    """The mixed values."""
    mid: Tensor
    """The stream after the attention branch."""
    out: Tensor
    """The stream after the MLP branch."""
    dmid: Tensor
    """Gradient of `mid`."""
    dqkv: Tensor
    """Gradient of `qkv`, for every position of every input."""
    dq: Tensor | None
    """Gradient of `q`."""


class FusedGradients:
    """Buffers and launches for one stack; `compute` leaves each run's gradient in `gradients` and Σ loss in `loss`."""

    def __init__(self, weights: Tensor, shapes: dict[str, tuple[int, ...]], architecture: Any, inputs: int, mode: int):
        self.weights, self.mode, self.architecture = weights, mode, architecture
        self.runs, self.size = weights.shape
        self.shapes = shapes
        ends = list(accumulate(map(prod, shapes.values())))
        self.places = {name: end - prod(shape) for (name, shape), end in zip(shapes.items(), ends, strict=True)}
        self.inputs, self.D, self.V = inputs, architecture.width, shapes["embed.W_E"][0]
        self.hidden, self.layers = architecture.mlp_width, architecture.layers
        self.gradients = torch.zeros_like(weights)
        # TF32's matrix units want the summed index contiguous in what is loaded.
        self.transposed = torch.zeros_like(weights) if mode == MODES["tf32"] else None
        stored = torch.bfloat16 if mode == MODES["bf16"] else torch.float32
        new = lambda *shape, dtype=torch.float32: torch.zeros(self.runs, *shape, dtype=dtype, device=weights.device)  # noqa: E731
        self.table_rows = 2 * self.V + 1
        self.dtable, self.dtable_res = new(self.table_rows, self.D), new(self.table_rows, self.D)
        self.dtable_qkv = new(self.table_rows, 3 * self.D)
        self.blocks = [self._block(i, new, stored) for i in range(self.layers)]
        for before, after in zip(self.blocks, self.blocks[1:], strict=False):
            after.source = before.out
        self.dstream = [new(POSITIONS * inputs, self.D), new(POSITIONS * inputs, self.D)]
        self.dlogits = new(inputs, self.V, dtype=stored)
        self.tiles = triton.cdiv(inputs, ROWS)
        self.loss = new(self.tiles)
        self._plan_norms(new)

    def _block(self, i: int, new: Any, stored: torch.dtype) -> _Block:
        D, all_inputs = self.D, POSITIONS * self.inputs
        is_last = i == self.layers - 1
        apart = is_last and i > 0
        # Block 0 always has room for every position: what no query reaches stays zero, and its rows sum to zero.
        kept = self.inputs if apart else all_inputs
        columns = 2 * D if apart else 3 * D
        return _Block(
            source=new(self.table_rows, D) if i == 0 else new(0),
            qkv=new(self.table_rows if i == 0 else all_inputs, columns, dtype=stored),
            q=new(self.inputs, D, dtype=stored) if apart else None,
            z=new(kept, D, dtype=stored),
            mid=new(kept, D),
            out=new(kept, D),
            dmid=new(kept, D),
            dqkv=new(all_inputs, columns, dtype=stored),
            dq=new(self.inputs, D, dtype=stored) if apart else None,
        )

    def _plan_norms(self, new: Any) -> None:
        """Where each LayerNorm's partial gradients stand, tile by tile."""
        self.first_tile: dict[str, int] = {}
        plan, tile = [], 0
        for i in range(self.layers):
            rows = self.table_rows if i == 0 else POSITIONS * self.inputs
            for name, count in ((f"blocks.{i}.ln1", rows), (f"blocks.{i}.ln2", self._queries(i) * self.inputs)):
                self.first_tile[name] = tile
                plan.append((tile, triton.cdiv(count, ROWS), self.places[f"{name}.w"], self.places[f"{name}.b"]))
                tile += triton.cdiv(count, ROWS)
        self.first_tile["ln_final"] = tile
        plan.append((tile, self.tiles, self.places["ln_final.w"], self.places["ln_final.b"]))
        self.dnorm = new(tile + self.tiles, 2, self.D)
        self.norm_plan = torch.tensor(plan, dtype=torch.int32, device=self.weights.device)

    def _queries(self, i: int) -> int:
        """Query positions of a block: all, or the read position in the last."""
        return 1 if i == self.layers - 1 else POSITIONS

    def _at(self, name: str, columns: int = 0) -> Tensor:
        """A parameter of run 0, from which the others are `size` apart."""
        return self.weights.view(-1)[self.places[name] + columns :]

    def _grad(self, name: str, columns: int = 0) -> Tensor:
        return self.gradients.view(-1)[self.places[name] + columns :]

    def _from(self, buffer: Tensor, i: int) -> Tensor:
        """A block's buffer from its first query position on."""
        return buffer[:, buffer.shape[1] - self._queries(i) * self.inputs :]

    def _norm_part(self, name: str) -> Tensor:
        return self.dnorm.view(-1)[self.first_tile[name] * 2 * self.D :]

    def compute(self, tokens: Tensor, labels: Tensor, counts: Tensor, classes: Tensor, counter: Tensor) -> None:
        """Forward and back for one batch; row `counter` of `counts` says how many of its pairs count."""
        self._transpose()
        self._forward(tokens)
        out, top = self._from(self.blocks[-1].out, self.layers - 1), self.dstream[0]
        head_kernel[(self.tiles, self.runs)](
            out, self._at("ln_final.w"), self._at("ln_final.b"),
            self._at("unembed.W_U"), self._at("unembed.b_U"), labels, counts, classes, counter, self.dlogits,
            top, self._norm_part("ln_final"), self.loss,
            self.inputs, self.runs, self.V, out.stride(0), self.size, self.dlogits.stride(0), self.dnorm.stride(0),
            self.tiles, top.stride(0), D=self.D, BM=ROWS, BC=32, MODE=self.mode, num_warps=4, num_stages=2,
        )  # fmt: skip
        self._weight_gradient(out, self.dlogits, "unembed.W_U", "ln_final")
        for i in reversed(range(self.layers)):
            self._back(i, tokens, self.dstream[(self.layers - 1 - i) % 2], self.dstream[(self.layers - i) % 2])
        norm_gradient_kernel[(len(self.norm_plan), self.runs)](
            self.dnorm, self.norm_plan, self.gradients, self.dnorm.stride(0), self.size, D=self.D, num_warps=1
        )

    def _transpose(self) -> None:
        if self.transposed is not None:
            for i in range(self.layers):
                for part, shape in (("W_in", (self.D, self.hidden)), ("W_out", (self.hidden, self.D))):
                    place = slice(
                        self.places[f"blocks.{i}.mlp.{part}"], self.places[f"blocks.{i}.mlp.{part}"] + prod(shape)
                    )
                    now = self.weights[:, place].view(-1, *shape)
                    self.transposed[:, place].view(-1, *shape[::-1]).copy_(now.transpose(1, 2))

    def _forward(self, tokens: Tensor) -> None:
        D, inputs, runs = self.D, self.inputs, self.runs
        first = self.blocks[0]
        table_kernel[(triton.cdiv(self.table_rows, 32), runs)](
            self._at("embed.W_E"),
            self._at("pos_embed.W_pos"),
            tokens,
            first.source,
            inputs,
            self.V,
            self.size,
            D=D,
            BV=32,
        )
        for i, block in enumerate(self.blocks):
            name, rows = f"blocks.{i}", block.source.shape[1]
            if block.q is None:
                self._linear(block.source, 0, rows, name, 0, 3 * D, block.qkv)
            else:
                self._linear(block.source, 2 * inputs, inputs, name, 0, D, block.q)
                self._linear(block.source, 0, rows, name, D, 2 * D, block.qkv)
            queries, (q, k, v) = self._queries(i), self._queries_keys_values(block)
            mid, out = self._from(block.mid, i), self._from(block.out, i)
            attention_kernel[(triton.cdiv(inputs, 32) * queries, runs)](
                q, k, v, block.source, tokens, self._at(f"{name}.attn.W_O"), self._at(f"{name}.attn.b_O"),
                self._from(block.z, i), mid,
                inputs, self.V, q.stride(0), q.stride(1), k.stride(0), k.stride(1), block.source.stride(0), self.size,
                mid.stride(0), T=32, **self._attention(i),
            )  # fmt: skip
            parts, strides = self._mlp(name, is_forward=True)
            mlp_kernel[(triton.cdiv(queries * inputs, ROWS), runs)](
                mid, *parts, self._at(f"{name}.mlp.b_out"), out,
                queries * inputs, mid.stride(0), self.size, out.stride(0), *strides,
                D=D, N=self.hidden, BM=ROWS, BN=min(64 if self._is_bf16 else 32, self.hidden), RELU=self._relu,
                MODE=self.mode, num_warps=4, num_stages=3 if self._is_bf16 else 2,
            )  # fmt: skip

    @property
    def _is_bf16(self) -> bool:
        return self.mode == MODES["bf16"]

    @property
    def _relu(self) -> bool:
        return self.architecture.activation == "relu"

    def _mlp(self, name: str, is_forward: bool) -> tuple[list[Tensor], tuple[int, ...]]:
        """LayerNorm, W₁, b₁ and W₂ of a block, and the strides of the two matrices; forward, both may be transposed."""
        parts = [self._at(f"{name}.{part}") for part in ("ln2.w", "ln2.b", "mlp.W_in", "mlp.b_in", "mlp.W_out")]
        first, second = (self.hidden, 1), (self.D, 1)
        if self.transposed is not None:
            flat = self.transposed.view(-1)
            parts[2], first = flat[self.places[f"{name}.mlp.W_in"] :], (1, self.D)
            if is_forward:
                parts[4], second = flat[self.places[f"{name}.mlp.W_out"] :], (1, self.hidden)
        return parts, (*first, *second)

    def _linear(self, x: Tensor, first_row: int, rows: int, name: str, column: int, N: int, out: Tensor) -> None:
        BN = min(128, triton.next_power_of_2(N))
        linear_kernel[(triton.cdiv(rows, ROWS) * triton.cdiv(N, BN), self.runs)](
            x, self._at(f"{name}.ln1.w"), self._at(f"{name}.ln1.b"),
            self._at(f"{name}.attn.W_QKV", column), self._at(f"{name}.attn.b_QKV", column), out,
            rows, N, x.stride(0), first_row, self.size, 3 * self.D, out.stride(0),
            D=self.D, BM=ROWS, BN=BN, MODE=self.mode, num_warps=4,
        )  # fmt: skip

    def _weight_gradient(
        self, x: Tensor, dy: Tensor, parameter: str, norm: str = "", first_row: int = 0, column: int = 0
    ) -> None:
        """Of the columns of W and b that `dy` belongs to; x passes its LayerNorm first where one is named."""
        BN = 128 if self._is_bf16 else 64
        weight, shift = (self._at(f"{norm}.w"), self._at(f"{norm}.b")) if norm else (self.weights, self.weights)
        columns = self.shapes[parameter][1]
        weight_gradient_kernel[(triton.cdiv(dy.shape[2], BN), self.runs)](
            x, weight, shift, dy, self._grad(parameter, column), self._grad(parameter.replace("W_", "b_"), column),
            dy.shape[1], dy.shape[2], x.stride(0), first_row, self.size, dy.stride(0), dy.shape[2], columns, self.size,
            D=self.D, NORM=norm != "", BR=64, BN=BN, MODE=self.mode, num_warps=4, num_stages=2 if self._is_bf16 else 1,
        )  # fmt: skip

    def _back(self, i: int, tokens: Tensor, dout: Tensor, din: Tensor) -> None:
        """From the gradient after a block to that before it, or to the embeddings'."""
        block, name, inputs = self.blocks[i], f"blocks.{i}", self.inputs
        self._back_mlp(i, dout)
        self._back_attention(i, tokens)
        if i == 0:
            self._back_to_embeddings(tokens)
            return
        if block.dq is not None:
            self._weight_gradient(block.source, block.dq, f"{name}.attn.W_QKV", f"{name}.ln1", first_row=2 * inputs)
        self._weight_gradient(
            block.source, block.dqkv, f"{name}.attn.W_QKV", f"{name}.ln1", column=0 if block.dq is None else self.D
        )
        self._input_gradient(name, block, block.dqkv, block.dmid, din)

    def _back_mlp(self, i: int, dout: Tensor) -> None:
        block, name = self.blocks[i], f"blocks.{i}"
        mid, dmid, rows = self._from(block.mid, i), self._from(block.dmid, i), self._queries(i) * self.inputs
        parts, strides = self._mlp(name, is_forward=False)
        mlp_input_gradient_kernel[(triton.cdiv(rows, ROWS), self.runs)](
            mid, *parts, self._at(f"{name}.mlp.W_in"), dout, dmid, self._norm_part(f"{name}.ln2"),
            rows, mid.stride(0), self.size, dout.stride(0), self.dnorm.stride(0), *strides, 1, self.hidden,
            D=self.D, N=self.hidden, BM=ROWS, BN=min(32, self.hidden), RELU=self._relu, MODE=self.mode, num_warps=4,
            num_stages=2 if self._is_bf16 else 1,
        )  # fmt: skip
        tile = min(64, self.hidden)
        mlp_weight_gradient_kernel[(triton.cdiv(self.hidden, tile), self.runs)](
            mid, *parts, dout, *(self._grad(f"{name}.mlp.{part}") for part in ("W_in", "b_in", "W_out", "b_out")),
            rows, mid.stride(0), self.size, dout.stride(0), self.size, *strides,
            D=self.D, N=self.hidden, BR=32, BN=tile, RELU=self._relu, MODE=self.mode, num_warps=4, num_stages=1,
        )  # fmt: skip

    def _back_attention(self, i: int, tokens: Tensor) -> None:
        block, name, D = self.blocks[i], f"blocks.{i}", self.D
        dmid, dkv = self._from(block.dmid, i), block.dqkv if block.dq is not None else block.dqkv[..., D:]
        self._weight_gradient(self._from(block.z, i), dmid, f"{name}.attn.W_O")
        q, k, v = self._queries_keys_values(block)
        dq = self._from(block.dqkv, i) if block.dq is None else block.dq
        attention_gradient_kernel[(triton.cdiv(self.inputs, 16), self.runs)](
            q, k, v, dmid, tokens, self._at(f"{name}.attn.W_O"), dq, dkv,
            self.inputs, self.V, q.stride(0), q.stride(1), k.stride(0), k.stride(1), self.size, dmid.stride(0),
            dq.stride(0), dq.stride(1), dkv.stride(0), dkv.stride(1), T=16, **self._attention(i),
        )  # fmt: skip

    def _queries_keys_values(self, block: _Block) -> tuple[Tensor, Tensor, Tensor]:
        D = self.D
        if block.q is not None:
            return block.q, block.qkv[..., :D], block.qkv[..., D:]
        return block.qkv[..., :D], block.qkv[..., D : 2 * D], block.qkv[..., 2 * D :]

    def _attention(self, i: int) -> dict[str, Any]:
        """What both attention kernels are compiled for."""
        first, own = POSITIONS - self._queries(i), self.architecture
        scale = 1 / sqrt(own.head_width)
        known = {"D": self.D, "H": own.heads, "CAUSAL": own.causal, "SCALE": scale, "MODE": self.mode}
        return {"FIRST": first, "ROWS": i == 0, "num_warps": 4, **known}

    def _back_to_embeddings(self, tokens: Tensor) -> None:
        block, D, inputs, runs = self.blocks[0], self.D, self.inputs, self.runs
        tiles = 2 * triton.cdiv(self.V, 32) + 1
        for source, out, columns, mode in (
            (block.dqkv, self.dtable_qkv, 3 * D, self.mode),
            (block.dmid, self.dtable_res, D, MODES["tf32"] if self.mode == MODES["bf16"] else self.mode),
        ):
            BN = min(128, triton.next_power_of_2(columns))
            row_gradient_kernel[(tiles * triton.cdiv(columns, BN), runs)](
                source, tokens, out, inputs, self.V, columns, BV=32, BI=64, BN=BN, MODE=mode, num_warps=4
            )
        self._weight_gradient(block.source, self.dtable_qkv, "blocks.0.attn.W_QKV", "blocks.0.ln1")
        self._input_gradient("blocks.0", block, self.dtable_qkv, self.dtable_res, self.dtable)
        embedding_gradient_kernel[(triton.cdiv(self.V, 32) + 1, runs)](
            self.dtable,
            tokens,
            self._grad("embed.W_E"),
            self._grad("pos_embed.W_pos"),
            inputs,
            self.V,
            self.size,
            D=D,
            BV=32,
        )

    def _input_gradient(self, name: str, block: _Block, dy: Tensor, dres: Tensor, dx: Tensor) -> None:
        rows = block.source.shape[1]
        apart = 0 if block.dq is None else 2 * self.inputs
        input_gradient_kernel[(triton.cdiv(rows, ROWS), self.runs)](
            block.source, self._at(f"{name}.ln1.w"), self._at(f"{name}.attn.W_QKV"), dy,
            dy if block.dq is None else block.dq, dres, dx, self._norm_part(f"{name}.ln1"),
            rows, dy.shape[2], 0 if block.dq is None else self.D, apart, apart, block.source.stride(0), self.size,
            3 * self.D, dy.stride(0), 0 if block.dq is None else block.dq.stride(0), dres.stride(0), self.dnorm.stride(0),
            dx.stride(0), D=self.D, HAS_Q=block.dq is not None, BM=ROWS, BN=32, MODE=self.mode, num_warps=4, num_stages=2,
        )  # fmt: skip
