"""The JAX peer: the same model under jit, a scan over steps, and vmap over seeds.

Weights, splits and batch sizes are those of the PyTorch peers; AdamW is written out, since optax may not be there. When
PyTorch uses the same GPU, note that JAX takes three quarters of its memory at the first call unless
XLA_PYTHON_CLIENT_PREALLOCATE=false is set.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import Array

from benchmarks.peers import (
    BATCH,
    BETA1,
    BETA2,
    CHANCE,
    EPSILON,
    FREQUENCIES,
    HEADS,
    LAYERS,
    LEARNING_RATE,
    POSITIONS,
    STEPS_PER_EPOCH,
    SYMBOLS,
    WEIGHT_DECAY,
    WIDTH,
    Measurement,
    paper_data,
    seeded_encoder,
)

__all__ = ["JaxPeer"]

FULL_BATCHES = STEPS_PER_EPOCH - 1
Parameters = dict[str, Array]


class State(NamedTuple):
    """All that a step changes; weights and moments have the runs first."""

    parameters: Parameters
    first: Parameters
    second: Parameters
    count: Array
    key: Array


class Pairs(NamedTuple):
    """All pairs, and each run's split of them."""

    tokens: Array
    answers: Array
    train: Array
    validation: Array


class JaxPeer:
    """Runs that advance together, whole epochs in one program."""

    def __init__(self, device: str, runs: int = 1, seed: int = 0, precision: str | None = None) -> None:
        """`precision` is jax.default_matmul_precision's: None is TF32 on a GPU, "highest" is float32."""
        self.runs = runs
        self._precision = precision
        place = jax.devices("cpu" if device == "cpu" else "gpu")[0]
        seeds = range(seed, seed + runs)
        data = paper_data("cpu", seeds)
        pairs = Pairs(data.tokens, data.answers, data.train, data.validation)
        self._pairs = jax.device_put(Pairs(*(rows.numpy().astype(np.int32) for rows in pairs)), place)
        self._state = jax.device_put(initial_state(seeds), place)
        self._left: list[Array] = []

    def steps(self, n: int) -> None:
        """Take n optimiser steps: whole epochs in one call, the steps before and after them one by one."""
        with jax.default_matmul_precision(self._precision):
            while n:
                if not self._left and n >= STEPS_PER_EPOCH:
                    epochs, n = divmod(n, STEPS_PER_EPOCH)
                    self._state = run_epochs(self._state, self._pairs, epochs)
                    continue
                if not self._left:
                    key, self._left = shuffled(self._state.key, self._pairs.train)
                    self._state = self._state._replace(key=key)
                self._state = run_batch(self._state, self._pairs, self._left.pop(0))
                n -= 1

    def measure(self) -> Measurement:
        """All runs in one call."""
        with jax.default_matmul_precision(self._precision):
            columns = measured(self._state.parameters, self._pairs)
        return Measurement(**{name: np.asarray(values).tolist() for name, values in columns.items()})

    def wait(self) -> None:
        """Return once the device has finished."""
        jax.block_until_ready(self._state)


def initial_state(seeds: range) -> State:
    """The PyTorch peers' initial weights, stacked."""
    encoders = [dict(seeded_encoder(seed).named_parameters()) for seed in seeds]
    stacked = {name: torch.stack([e[name] for e in encoders]).detach().numpy() for name in encoders[0]}
    first, second = ({name: np.zeros_like(value) for name, value in stacked.items()} for _ in range(2))
    return State(stacked, first, second, jnp.zeros((), jnp.int32), jax.random.key(seeds[0]))


@partial(jax.jit, donate_argnums=0)
def run_epochs(state: State, pairs: Pairs, epochs: int) -> State:
    """Whole epochs: a scan over the full batches, then the partial one."""

    def epoch(_: int, state: State) -> State:
        key, batches = shuffled(state.key, pairs.train)
        state = state._replace(key=key)
        state, _ = jax.lax.scan(lambda s, rows: (advanced(s, pairs, rows), None), state, jnp.stack(batches[:-1]))
        return advanced(state, pairs, batches[-1])

    return jax.lax.fori_loop(0, epochs, epoch, state)


@partial(jax.jit, donate_argnums=0)
def run_batch(state: State, pairs: Pairs, rows: Array) -> State:
    """One step on the rows [runs, batch]."""
    return advanced(state, pairs, rows)


@jax.jit
def shuffled(key: Array, train: Array) -> tuple[Array, list[Array]]:
    """The next key, and an epoch's batches."""
    keys = jax.random.split(key, len(train) + 1)
    order = jax.vmap(jax.random.permutation)(keys[1:], train)
    return keys[0], jnp.split(order, [BATCH * (i + 1) for i in range(FULL_BATCHES)], axis=1)


def advanced(state: State, pairs: Pairs, rows: Array) -> State:
    """Gather, gradient and AdamW of all runs."""
    gradients = gradients_of(state.parameters, pairs.tokens[rows], pairs.answers[rows])
    count = state.count + 1
    first = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, state.first, gradients)
    second = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, state.second, gradients)
    rate = LEARNING_RATE / (1 - BETA1**count)
    correction = jnp.sqrt(1 - BETA2**count)

    def moved(w: Array, m: Array, v: Array) -> Array:
        return (1 - LEARNING_RATE * WEIGHT_DECAY) * w - rate * m / (jnp.sqrt(v) / correction + EPSILON)

    parameters = jax.tree.map(moved, state.parameters, first, second)
    return State(parameters, first, second, count, state.key)


def gradients_of(parameters: Parameters, tokens: Array, answers: Array) -> Parameters:
    """Of each run's loss; one run goes without vmap, which would cost it a tenth or more on a CPU."""
    if len(tokens) > 1:
        return jax.vmap(jax.grad(loss))(parameters, tokens, answers)
    alone = jax.tree.map(lambda w: w[0], parameters)
    return jax.tree.map(lambda g: g[None], jax.grad(loss)(alone, tokens[0], answers[0]))


def loss(parameters: Parameters, tokens: Array, answers: Array) -> Array:
    """Mean cross-entropy of one run's batch."""
    return cross_entropy(logits_and_hidden(parameters, tokens)[0], answers).mean()


def cross_entropy(logits: Array, answers: Array) -> Array:
    """−log p(answer) of every input."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), answers[:, None], axis=1)[:, 0]


def logits_and_hidden(p: Parameters, tokens: Array) -> tuple[Array, Array]:
    """Logits at the last position, and block 0's activations after GELU there, for one run.

    Inputs and positions are one axis outside attention: XLA's CPU matmuls are up to twice as fast on matrices.
    """
    x = (p["embed.weight"][tokens] + p["position.weight"]).reshape(-1, WIDTH)
    hidden = []
    for layer in range(LAYERS):
        x, activations = block(p, f"layers.{layer}.", x)
        hidden.append(activations[POSITIONS - 1 :: POSITIONS])
    return linear(p, "head.", layer_norm(p, "norm.", x[POSITIONS - 1 :: POSITIONS])), hidden[0]


def block(p: Parameters, at: str, x: Array) -> tuple[Array, Array]:
    """A pre-LayerNorm block on all positions, and its MLP's activations."""
    x = x + attention(p, f"{at}self_attn.", layer_norm(p, f"{at}norm1.", x))
    activations = jax.nn.gelu(linear(p, f"{at}linear1.", layer_norm(p, f"{at}norm2.", x)), approximate=False)
    return x + linear(p, f"{at}linear2.", activations), activations


def attention(p: Parameters, at: str, x: Array) -> Array:
    """Every position of an input sees every other."""
    qkv = x @ p[f"{at}in_proj_weight"].T + p[f"{at}in_proj_bias"]
    q, k, v = (part.reshape(-1, POSITIONS, HEADS, WIDTH // HEADS) for part in jnp.split(qkv, 3, axis=1))
    pattern = jax.nn.softmax(jnp.einsum("iqhd,ikhd->ihqk", q, k) / (WIDTH // HEADS) ** 0.5)
    return linear(p, f"{at}out_proj.", jnp.einsum("ihqk,ikhd->iqhd", pattern, v).reshape(x.shape))


def linear(p: Parameters, at: str, x: Array) -> Array:
    """PyTorch's: the weight is [out, in]."""
    return x @ p[f"{at}weight"].T + p[f"{at}bias"]


def layer_norm(p: Parameters, at: str, x: Array) -> Array:
    """(x − mean) / √(variance + 10⁻⁵), scaled and shifted."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = jnp.square(centred).mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + 1e-5) * p[f"{at}weight"] + p[f"{at}bias"]


@jax.jit
def measured(parameters: Parameters, pairs: Pairs) -> dict[str, Array]:
    """Every run's measurement, one run after another: all activations of all runs would not fit."""

    def one(run: tuple[Parameters, Array, Array]) -> dict[str, Array]:
        p, train, validation = run
        logits, hidden = logits_and_hidden(p, pairs.tokens)
        losses = cross_entropy(logits, pairs.answers)
        correct = (logits.argmax(axis=1) == pairs.answers).astype(jnp.float32)
        return {
            "train_loss": losses[train].mean(),
            "train_accuracy": correct[train].mean(),
            "validation_loss": losses[validation].mean(),
            "validation_accuracy": correct[validation].mean(),
            "norm": jnp.sqrt(sum(jnp.square(w).sum() for w in p.values())),
            "fsd": synchronization(hidden, pairs.answers),
        }

    return jax.lax.map(one, (parameters, pairs.train, pairs.validation))


def synchronization(hidden: Array, answers: Array) -> Array:
    """FSD of the activations [inputs, neurons]."""
    sums = jax.ops.segment_sum(hidden, answers, SYMBOLS)
    means = sums / jnp.bincount(answers, length=SYMBOLS)[:, None]
    power = jnp.square(jnp.abs(jnp.fft.rfft(means - means.mean(axis=0), axis=0)))[1:]
    participation = jnp.bincount(power.argmax(axis=0), length=FREQUENCIES) / hidden.shape[1]
    return (participation.max() - CHANCE) / (1 - CHANCE)
