"""What a measure gives where there is nothing to find, of neurons that share what a network's neurons share.

Renamed tokens keep a network as it is and destroy the rule; untrained networks have all that an architecture gives for
free. These two decide whether a circuit is there.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from grokscope.activations import Conditioning, answer_sums, condition_of, conditioning_basis, subject_of
from grokscope.errors import require
from grokscope.measures.nulls import NullSample, Statistic, fsd_of
from grokscope.measures.spectrum import spectrum
from grokscope.randomness import bits, normal, permutation
from grokscope.shapes import Float, Int
from grokscope.specs import RunSpec
from grokscope.tasks import Task
from grokscope.training import Cohort

__all__ = ["Kept", "answer_permutation_null", "permuted_answers", "phase_randomized", "untrained_null"]

Kept = Literal["tokens", "counts"]
"""What permuting the answers leaves as it is: see `permuted_answers`."""


def phase_randomized(
    activation: Float[Tensor, "*runs inputs neurons"], modulus: int, seed: int = 0
) -> Float[Tensor, "*runs inputs neurons"]:
    """Each neuron over all pairs (a, b) of Z_n with random phases in its 2-D Fourier transform, drawn apart for each.

    Mean and amplitudes |F(k, l)| stay and the result is real: the phases are those of white noise. The transform of
    A[s, j] is F(f, ±f)/n, so every measure of power over answers, FSD included, is *unchanged*: this is a null for what
    reads waveforms or neurons together (losses, logits), and a proof that FSD reads no phases. For FSD's own null,
    permute the answers.

    >>> activation = torch.randn(25, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> bool(torch.isclose(phase_randomized(activation, 5).mean(), activation.mean()))
    True
    """
    require(
        activation.shape[-2] == modulus**2,
        f"phases need all {modulus**2} pairs of Z_{modulus}, got {activation.shape[-2]} inputs",
    )
    grid = activation.double().reshape(*activation.shape[:-2], modulus, modulus, activation.shape[-1])
    place = torch.zeros((), dtype=torch.int64, device=grid.device)
    noise = normal(place + seed, "null", place, grid.numel()).view_as(grid)
    phases = torch.fft.fft2(noise, dim=(-3, -2)).sgn()
    phases[..., 0, 0, :] = 1
    moved = torch.fft.ifft2(torch.fft.fft2(grid, dim=(-3, -2)) * phases, dim=(-3, -2)).real
    return moved.flatten(-3, -2).to(activation.dtype)


def permuted_answers(
    task: Task, draws: int, seed: int = 0, by: Conditioning = "", kept: Kept = "tokens"
) -> Int[Tensor, "draws inputs"]:
    """The answer (or sum) of every pair after a permutation that destroys the rule, for each draw.

    `tokens`: the symbols are renamed, and (a, b) gets the answer of (σ(a), σ(b)) for a random order σ of them; where
    some never stand second, as 0 in division, these keep their names. In a group each answer still meets every a and
    every b once, so what depends on one token alone cancels in its mean as before; and since the tokens of an untrained
    network are exchangeable, its p-values are exact. `counts`: the answers in any order over the pairs. Only how often
    each occurs is kept: single tokens' effects leak into the means, and the null is too low.

    >>> from grokscope.tasks import named_task
    >>> permuted_answers(named_task("add_mod5"), draws=3).shape
    torch.Size([3, 25])
    """
    answers = torch.tensor(condition_of(task, by).values)
    epochs, seeds = torch.arange(draws), torch.full((draws,), seed)
    if kept == "counts":
        return answers[permutation(seeds, "null", epochs, len(answers))]
    a, b = torch.tensor(task.inputs).T
    renamed = torch.tensor(np.intersect1d(a, b))
    names = torch.arange(task.symbols).repeat(draws, 1)
    names[:, renamed] = renamed[permutation(seeds, "null", epochs, len(renamed))]
    table = torch.full((task.symbols, task.symbols), -1)
    table[a, b] = answers
    return table[names[:, a], names[:, b]]


def answer_permutation_null(
    activation: Float[Tensor, "runs inputs neurons"],
    task: Task,
    statistic: Statistic = fsd_of,
    draws: int = 200,
    seed: int = 0,
    *,
    by: Conditioning = "",
    basis: str = "",
    kept: Kept = "tokens",
) -> NullSample:
    """A statistic of the same activations, read by permuted answers (see `permuted_answers`), for every run.

    For any task and group. Neurons keep what they share, for all are read by the same permutation.

    >>> from grokscope.tasks import named_task
    >>> task = named_task("add_mod5")
    >>> neurons = torch.cos(2 * torch.pi * torch.tensor(task.answers) / 5)[None, :, None].expand(1, 25, 8)
    >>> answer_permutation_null(neurons, task, draws=3).values.shape
    torch.Size([1, 3])
    """
    read_in, read_by = conditioning_basis(task, by, basis), condition_of(task, by)
    size = read_by.size
    values = activation.double()
    counts = torch.bincount(torch.tensor(read_by.values), minlength=size).clamp(min=1).to(values.device)
    found, mean_square = [], values.square().mean(dim=1)
    for answers in permuted_answers(task, draws, seed, by, kept).to(values.device):
        means = answer_sums(values, answers.expand(len(values), -1), size) / counts[:, None]
        found.append(statistic(spectrum(means, read_in, mean_square)))
    return NullSample(torch.stack(found, dim=-1))


def untrained_null(
    spec: RunSpec,
    statistic: Statistic = fsd_of,
    draws: int = 200,
    seed: int = 0,
    *,
    site: str = "",
    by: Conditioning = "",
    basis: str = "",
    device: torch.device | str = "cpu",
    at_once: int = 16,
) -> NullSample:
    """A statistic of networks as this run's, untrained, from other initialisation seeds: the null used for inference.

    Neurons of one network share a residual stream, so they agree before anything is learnt, far beyond independent
    ones. `site` is where FSD is read, unless another is named; `at_once` networks are in memory together.

    >>> from grokscope.specs import Architecture
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=64)
    >>> null = untrained_null(RunSpec("add_mod23", architecture=small), draws=16)
    >>> null.values.shape, bool((null.values > 0).all())  # an untrained network has an FSD above 0
    (torch.Size([16]), True)
    """
    words = bits(torch.tensor(seed), "null", torch.tensor(0), draws)
    others = [
        replace(spec, seeds=replace(spec.seeds, initialization=word), fork=None, trigger=None)
        for word in ((words >> 2) & (2**61 - 1)).tolist()  # 61 bits: never a seed a person would choose
    ]
    found = []
    for first in range(0, draws, at_once):
        cohort = Cohort(others[first : first + at_once], device)
        subject = subject_of(cohort.specs, cohort.initial())
        read = subject.means(site or subject.hidden_sites[0], by)
        waves = spectrum(read.means, conditioning_basis(subject.task, by, basis), read.mean_square)
        found.append(statistic(waves))
    return NullSample(torch.cat(found))
