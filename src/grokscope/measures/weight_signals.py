"""What a state says without any activation, for every evaluation of a stack in training: norms, steps, a fingerprint.

Everything is a function of the stored state (weights, Adam's moments, age), so a run that is continued logs what it
would have logged, and no sum depends on the other runs of the stack.
"""

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from grokscope.model import Layout, block_of
from grokscope.randomness import bits
from grokscope.shapes import Float, Int
from grokscope.training import Cohort, State

__all__ = ["adam_step", "fingerprints", "weight_signals"]

RUNS_AT_ONCE = 64  # a few copies of their buffers: some hundred MB
DIGITS = 53  # bits of a fingerprint: whole numbers that a float64, JSON and a data frame hold exactly
Squares = Callable[[Tensor, Tensor], Tensor]


def weight_signals(state: State, cohort: Cohort) -> list[dict[str, float]]:
    """One row for each run: `norm_BLOCK`, `update_norm`, `update_cosine` and `fingerprint`.

    `norm_BLOCK` is ‖·‖_F of each block as the measure `norms` names it; `update_norm` is ‖u‖ of Adam's last step
    u = η m̂ / (√v̂ + ε), without weight decay; `update_cosine` is ⟨u, w⟩ / (‖u‖ ‖w‖), positive where the step −u
    shortens the weights. Both are NaN before the first step, and of runs that Muon moves. `fingerprint` is that of
    `fingerprints`.

    >>> from grokscope.specs import RunSpec
    >>> from grokscope.training import initial_state
    >>> cohort = Cohort([RunSpec("add_mod5")])
    >>> list(weight_signals(initial_state(cohort), cohort)[0])[-4:]
    ['norm_unembed', 'update_norm', 'update_cosine', 'fingerprint']
    """
    parts = [slice(start, start + RUNS_AT_ONCE) for start in range(0, len(cohort), RUNS_AT_ONCE)]
    with torch.no_grad():
        columns = [_signals(state, cohort, part) for part in parts]
        marks = torch.cat([_marks(state, part) for part in parts]).tolist()
    found = {name: torch.cat([part[name] for part in columns]).tolist() for name in columns[0]}
    return [
        {name: values[run] for name, values in found.items()} | {"fingerprint": mark} for run, mark in enumerate(marks)
    ]


def adam_step(
    first: Float[Tensor, "runs parameters"],
    second: Float[Tensor, "runs parameters"],
    age: Int[Tensor, " runs"],
    cohort: Cohort,
    runs: slice = slice(None),
) -> Float[Tensor, "runs parameters"]:
    """U = η m̂ / (√v̂ + ε) of Adam's last step, m̂ = m / (1 − β₁ᵗ), v̂ = v / (1 − β₂ᵗ), with the η of after warm-up."""
    rate, beta1, beta2, epsilon = (
        cohort.column(name)[runs, None] for name in ("learning_rate", "beta1", "beta2", "epsilon")
    )
    t = age[:, None].to(rate)
    size, root = (rate / (1 - beta1**t)).to(first.dtype), (1 - beta2**t).sqrt().to(first.dtype)
    return size * first / (second.sqrt() / root + epsilon.to(first.dtype))


def fingerprints(*buffers: Float[Tensor, "runs numbers"]) -> Int[Tensor, " runs"]:
    """53 bits of the exact bits of each run's buffers: Σᵢ bᵢ rᵢ mod 2⁶⁴ with fixed random odd rᵢ, its highest bits.

    Equal states have equal fingerprints; two that differ in one number or more agree with a chance of about 2⁻⁵³. A sum
    of whole numbers has no rounding, so its order, and so the device and the stack, do not matter.

    >>> one = torch.tensor([[1.0, 2.0], [1.0, 2.0], [2.0, 1.0]])
    >>> a, b, c = fingerprints(one).tolist()
    >>> a == b, a == c
    (True, False)
    """
    total = torch.zeros(len(buffers[0]), dtype=torch.int64, device=buffers[0].device)
    for place, buffer in enumerate(buffers):
        kind = torch.int64 if buffer.dtype == torch.float64 else torch.int32
        words = buffer.contiguous().view(kind).to(torch.int64)
        total += (words * _odd_words(buffer.shape[1], place).to(buffer.device)).sum(dim=1)
    return (total >> (64 - DIGITS)) & (2**DIGITS - 1)


@lru_cache(maxsize=16)
def _odd_words(count: int, place: int) -> Tensor:
    """Random odd whole numbers; other ones for each buffer."""
    return bits(torch.tensor(place), "measure", torch.tensor(0), count) | 1


def _marks(state: State, part: slice) -> Tensor:
    return fingerprints(state.weights[part], state.first[part], state.second[part])


def _signals(state: State, cohort: Cohort, part: slice) -> dict[str, Tensor]:
    weights, age = state.weights[part], state.age[part]
    dot = _dots(cohort)
    found = {f"norm_{block}": value for block, value in _block_norms(cohort.layout, weights, dot).items()}
    step = adam_step(state.first[part], state.second[part], age, cohort, part)
    norm, own = dot(step, step).sqrt(), dot(weights, weights).sqrt()
    has_stepped = (age > 0) & (cohort.key.optimizer == "adamw")  # with Muon most of the step is no function of these
    found["update_norm"] = norm.where(has_stepped, torch.nan)
    found["update_cosine"] = (dot(step, weights) / (norm * own)).where(has_stepped, torch.nan)
    return {name: value.double() if value.device.type != "mps" else value for name, value in found.items()}


def _block_norms(layout: Layout, weights: Tensor, dot: Squares) -> dict[str, Tensor]:
    squares: dict[str, Tensor] = {}
    for name, view in layout.views(weights).items():
        rows, block = view.flatten(1), block_of(name)
        square = dot(rows, rows)
        squares[block] = squares[block] + square if block in squares else square
    return {name: square.sqrt() for name, square in squares.items()}


def _dots(cohort: Cohort) -> Squares:
    """Σ a·b of each run in float64: by kernels on CUDA, where no sum may depend on the stack."""
    if cohort.has_kernels:
        from grokscope.kernels.sums import dots  # Triton comes with torch's CUDA builds alone

        return dots
    return lambda a, b: (a.to(cohort.exact) * b.to(cohort.exact)).sum(dim=1)
