"""What can be measured of any model: functions of its activations and logits over all pairs, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from grokscope.activations import ConditionedMeans, means_of
from grokscope.errors import InputError, did_you_mean, shown
from grokscope.measures import (
    MEASURES,
    Spectrum,
    fourier_kan,
    fourier_rank,
    fsd,
    fsd_gen,
    fsd_top_k,
    gini,
    inverse_participation_ratio,
    mean_explained,
    spectral_entropy,
    spectrum,
)
from grokscope.measures.filters import kept_means, mode_part, voted_modes
from grokscope.measures.nulls import exact_test, strongest_mode_chances
from grokscope.shapes import Bool, Float, Int
from grokscope.tasks import Basis, Task

__all__ = ["ATTACHED", "AttachedMeasure", "SiteReading", "attached_measure", "why_undefined"]

Columns = Mapping[str, Tensor]


@dataclass(frozen=True, eq=False)
class SiteReading:
    """One site of one model at one step, as a stack of one run."""

    task: Task
    """What is learnt."""
    basis: Basis | None
    """The basis in which it is read; None where the operation has none."""
    means: ConditionedMeans
    """A[s, j] of the site."""
    condition: Int[Tensor, " inputs"]
    """What each pair is conditioned on: its answer, or its sum."""
    is_train: Bool[Tensor, " inputs"] | None
    """The pairs trained on, if they are known."""
    keys: Bool[Tensor, "1 modes"] | None
    """Key modes that were given; those of this very step if None."""
    neurons: Float[Tensor, "1 inputs neurons"] | None = None
    """The activations themselves, for measures that ask for them."""
    logits: Float[Tensor, "1 inputs classes"] | None = None
    """The logits, for measures that ask for them."""

    @cached_property
    def spectrum(self) -> Spectrum:
        """Power of the means in the modes of the basis."""
        assert self.basis is not None
        return spectrum(self.means.means, self.basis)

    @cached_property
    def key_modes(self) -> Bool[Tensor, "1 modes"]:
        """The given key modes, or Nanda et al.'s: those that explain most of any neuron's variance over (a, b)."""
        assert self.basis is not None
        assert self.neurons is not None
        if self.keys is not None:
            return self.keys.to(self.neurons.device)
        return voted_modes(self.neurons, self.task, self.basis)


@dataclass(frozen=True)
class AttachedMeasure:
    """A measure that any model has."""

    compute: Callable[[SiteReading], Columns]
    """Its columns, one value each."""
    needs_basis: bool = True
    """Whether the operation must be a group's, or have a basis by name."""
    needs_all: bool = False
    """Whether activations and logits of all pairs are held at once."""


def attached_measure(name: str) -> AttachedMeasure:
    """The measure with this name, if it can be taken of any model."""
    if name in ATTACHED:
        return ATTACHED[name]
    offered = f"any model has {', '.join(ATTACHED)}"
    if not isinstance(name, str):
        raise InputError(f"a measure is given by its name, got {shown(name)}; {offered}")
    if name in MEASURES:
        raise InputError(f"{shown(name)} needs grokscope's own transformer and cannot be taken of others; {offered}")
    raise InputError(f"there is no measure {shown(name)}{did_you_mean(name, ATTACHED)}; {offered}")


def why_undefined(reading: SiteReading, site: str) -> str:
    """Why something at a site is not a number."""
    if not bool(reading.means.finite):
        return f"activations at {site} are not numbers"
    if reading.basis is not None:
        share = float(reading.spectrum.is_constant.double().mean())
        if share >= 0.5:
            return f"{share:.0%} of the neurons at {site} are constant over the answers"
        if len(reading.basis.modes) == 1:
            return "the basis has a single mode: there is nothing to agree on"
    return f"not defined for this model at {site}"


def _fsd(reading: SiteReading) -> Columns:
    found = fsd(reading.spectrum.density)
    mode = (found.mode + 1).double().where(~found.fsd.isnan(), torch.nan)
    return {"fsd": found.fsd, "fsd_mode": mode, "constant_share": _if_finite(reading, found.constant_share)}


def _if_finite(reading: SiteReading, value: Tensor) -> Tensor:
    return value.double().where(reading.means.finite, torch.nan)


def _fsd_k(reading: SiteReading) -> Columns:
    density = reading.spectrum.density
    return {f"fsd_{k}": fsd_top_k(density, k).fsd for k in (2, 3) if k < density.shape[-2]}


def _fsd_gen(reading: SiteReading) -> Columns:
    density = reading.spectrum.density
    found = {k: fsd_gen(density, k) for k in (1, 2, 3) if k == 1 or k < density.shape[-2]}
    mode = (found[1].mode + 1).double().where(~found[1].fsd.isnan(), torch.nan)
    return {**{f"fsd_gen_{k}": result.fsd for k, result in found.items()}, "fsd_gen_mode": mode}


def _fsd_null(reading: SiteReading) -> Columns:
    assert reading.basis is not None
    chances = strongest_mode_chances(tuple(reading.basis.modes.dimensions.tolist()))
    return {"p_exact": exact_test(fsd(reading.spectrum.density), chances, seed=0).p_value}


def _rank(reading: SiteReading) -> Columns:
    power = reading.spectrum.power
    found = fourier_rank(power)
    return {"rank": found.median, "rank_one_share": found.rank_one_share, "r2_rank_1": mean_explained(power)}


def _concentration(reading: SiteReading) -> Columns:
    kinds = {"ipr": inverse_participation_ratio, "gini": gini, "entropy": spectral_entropy}
    return {name: of(reading.spectrum.power).median for name, of in kinds.items()}


def _fourier_kan(reading: SiteReading) -> Columns:
    assert reading.basis is not None
    found = fourier_kan(reading.means.means, reading.basis)
    kept = found.kept.double().where(~found.is_constant, torch.nan).nanquantile(0.5, dim=-1)
    return {"kan_r2": found.r_squared.nanmean(dim=-1), "kan_kept": _if_finite(reading, kept)}


def _answer_share(reading: SiteReading) -> Columns:
    return {"answer_share": reading.means.answer_share}


def _trig(reading: SiteReading) -> Columns:
    """Nanda et al.'s restricted loss: key modes of the logits and each class's mean, scored on all pairs."""
    assert reading.basis is not None
    means, part = _logit_part(reading)
    kept = kept_means(means, part, reading.basis)[:, reading.condition]
    return {"trig": _loss(kept, reading.task, None), "trig_modes": reading.key_modes.sum(dim=-1).double()}


def _excluded(reading: SiteReading) -> Columns:
    """Nanda et al.'s excluded loss: logits without key modes, scored on the training pairs (on all if unknown)."""
    assert reading.logits is not None
    _, part = _logit_part(reading)
    loss = _loss(reading.logits.double() - part[:, reading.condition], reading.task, reading.is_train)
    return {"excluded": loss, "excluded_modes": reading.key_modes.sum(dim=-1).double()}


def _logit_part(reading: SiteReading) -> tuple[Tensor, Tensor]:
    """A[s, c] of the logits, and its part in the key modes."""
    assert reading.basis is not None
    assert reading.logits is not None
    means = means_of(reading.logits, reading.condition, reading.task.symbols).means
    return means, mode_part(means, reading.basis, reading.key_modes)


def _loss(logits: Tensor, task: Task, chosen: Tensor | None) -> Float[Tensor, " runs"]:
    answers = torch.tensor(task.answers, device=logits.device).expand(len(logits), -1)
    loss = logits.double().logsumexp(dim=-1) - logits.double().gather(-1, answers[..., None])[..., 0]
    return (loss if chosen is None else loss[:, chosen.to(loss.device)]).mean(dim=-1)


# Each by its name in the registry of grokscope's own runs, with columns that it has there.
ATTACHED: dict[str, AttachedMeasure] = {
    "fsd": AttachedMeasure(_fsd),
    "fsd_k": AttachedMeasure(_fsd_k),
    "fsd_gen": AttachedMeasure(_fsd_gen),
    "fsd_null": AttachedMeasure(_fsd_null),
    "rank": AttachedMeasure(_rank),
    "concentration": AttachedMeasure(_concentration),
    "fourier_kan": AttachedMeasure(_fourier_kan),
    "answer_share": AttachedMeasure(_answer_share, needs_basis=False),
    "trig": AttachedMeasure(_trig, needs_all=True),
    "excluded": AttachedMeasure(_excluded, needs_all=True),
}
