"""How a run's weights move from one stored checkpoint to the next."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from grokscope.activations import Trajectory
from grokscope.errors import InputError
from grokscope.measures.question import Columns, Measure, Question
from grokscope.shapes import Float

__all__ = ["ENTRIES", "WINDOW", "UpdateSpectrum", "Updates", "update_spectrum", "updates"]

WINDOW = 10  # updates whose spectrum is taken, as in the source
OF_ALL = {"update_top_share": "top_share", "update_gap": "gap", "update_gap_place": "gap_place"}  # column → field
OF_ATTENTION = {"attention_gap_23": "gap_23", "attention_top_share": "top_share"}
ROUNDING = 1e-7  # of σ₁: singular values that are square roots of eigenvalues are known no better


@dataclass(frozen=True)
class Updates:
    """Of the last update Δ = W − W₋ of each weight vector, W₋ being the weights before it; NaN where there is none."""

    speed: Float[Tensor, "*runs"]
    """‖Δ‖ / steps."""
    relative: Float[Tensor, "*runs"]
    """‖Δ‖ / ‖W₋‖."""
    cosine: Float[Tensor, "*runs"]
    """cos(Δ, Δ₋) with the update before it."""
    decay_cosine: Float[Tensor, "*runs"]
    """cos(Δ, −W₋): 1 where weight decay alone moves the weights."""


@dataclass(frozen=True)
class UpdateSpectrum:
    """Singular values σ₁ ≥ σ₂ ≥ … of the matrix of updates."""

    values: Float[Tensor, "*runs updates"]
    """σ, in float64."""

    @property
    def top_share(self) -> Float[Tensor, "*runs"]:
        """σ₁² / Σ σ_i²: 1 for updates along one line, 1/updates for orthogonal ones of equal length."""
        squares = self.values.square()
        return squares[..., 0] / squares.sum(dim=-1)

    @property
    def gap(self) -> Float[Tensor, "*runs"]:
        """max_k σ_k / σ_{k+1}, over those σ_{k+1} that are more than rounding."""
        return self._ratios.amax(dim=-1).where(self.values[..., 0] > 0, torch.nan)

    @property
    def gap_place(self) -> Float[Tensor, "*runs"]:
        """k*, the k of the largest ratio: how many directions dominate."""
        place = 1.0 + self._ratios.argmax(dim=-1)
        return place.where(self.values[..., 0] > 0, torch.nan)

    @property
    def gap_23(self) -> Float[Tensor, "*runs"]:
        """g₂₃ = σ₂² − σ₃², the gap below the second eigenvalue of the updates' Gram matrix; of two updates, σ₂²."""
        squares = torch.nn.functional.pad(self.values.square(), (0, 1))
        return squares[..., 1] - squares[..., 2]

    @property
    def _ratios(self) -> Tensor:
        following = self.values[..., 1:]
        ratios = self.values[..., :-1] / following
        return ratios.where(following > ROUNDING * self.values[..., :1], 0)


def updates(
    weights: Float[Tensor, "*runs checkpoints parameters"], steps: Float[Tensor, "*runs checkpoints"]
) -> Updates:
    """Length and direction of the update that leads to the last of two or more checkpoints.

    >>> weights = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.5, 0.0]])
    >>> found = updates(weights, torch.tensor([0.0, 10.0, 20.0]))
    >>> float(found.speed.round(decimals=4)), float(found.relative), float(found.cosine), float(found.decay_cosine)
    (0.05, 0.5, 1.0, 1.0)
    """
    moved, lasted = weights.double().diff(dim=-2), steps.double().diff(dim=-1)
    last, start = moved[..., -1, :], weights[..., -2, :].double()
    length, norm = last.norm(dim=-1), start.norm(dim=-1)
    nothing = torch.full_like(length, torch.nan)
    return Updates(
        length / lasted[..., -1],
        length / norm,
        _cosine(last, moved[..., -2, :]) if moved.shape[-2] > 1 else nothing,
        _cosine(last, -start),
    )


def update_spectrum(
    weights: Float[Tensor, "*runs checkpoints parameters"], steps: Float[Tensor, "*runs checkpoints"]
) -> UpdateSpectrum:
    """Singular values of the matrix with a row (W_{i+1} − W_i) / (t_{i+1} − t_i) for each update, not centred.

    They are square roots of the eigenvalues of the updates' Gram matrix. Dividing by the steps matters where
    checkpoints are not equally far apart: a longer time weighs no more.

    >>> weights = torch.tensor([[0.0, 0.0], [3.0, 0.0], [3.0, 1.0]])
    >>> found = update_spectrum(weights, torch.tensor([0.0, 1.0, 2.0]))
    >>> [round(float(value), 4) for value in (found.top_share, found.gap, found.gap_place)]
    [0.9, 3.0, 1.0]
    """
    rates = weights.double().diff(dim=-2) / steps.double().diff(dim=-1)[..., None]
    gram = rates @ rates.mT
    is_number = gram.isfinite().flatten(-2).all(dim=-1)
    values = torch.linalg.eigvalsh(gram.where(is_number[..., None, None], 0)).flip(-1).clamp(min=0).sqrt()
    return UpdateSpectrum(values.where(is_number[..., None], torch.nan))


def _cosine(one: Tensor, other: Tensor) -> Tensor:
    return (one * other).sum(dim=-1) / (one.norm(dim=-1) * other.norm(dim=-1))


def _checkpoints(trajectory: Trajectory, step: int, before: int, among: str = "") -> tuple[Tensor, Tensor]:
    """A measured checkpoint's parameters after those of the checkpoints before it, and the steps of all."""
    steps = trajectory.until(step, before)
    return torch.stack([trajectory.parameters(one, among) for one in steps]), torch.tensor(steps, dtype=torch.float64)


def _trajectory(question: Question) -> Trajectory:
    if question.trajectory is None:
        raise InputError(f"only a stored run has earlier checkpoints, got {question.subject.names[0]}")
    return question.trajectory


def _updates_columns(question: Question) -> Columns:
    trajectory = _trajectory(question)
    names = {"update_speed": "speed", "update_relative": "relative", "update_cosine": "cosine"}
    names["update_decay_cosine"] = "decay_cosine"
    found = []
    for step in trajectory.measured:
        weights, steps = _checkpoints(trajectory, step, before=2)
        found.append(updates(weights, steps) if len(steps) > 1 else None)
    nothing = torch.tensor(torch.nan, dtype=torch.float64)
    return {
        column: torch.stack([nothing if one is None else getattr(one, field) for one in found])
        for column, field in names.items()
    }


def _spectrum_columns(question: Question, among: str, columns: Mapping[str, str]) -> Columns:
    """Fields of the spectrum, by column, of the parameters whose names contain a word."""
    trajectory, nothing = _trajectory(question), torch.tensor(torch.nan, dtype=torch.float64)
    rows = []
    for step in trajectory.measured:
        weights, steps = _checkpoints(trajectory, step, WINDOW, among)
        found = update_spectrum(weights, steps) if len(steps) == WINDOW + 1 else None
        rows.append([nothing if found is None else getattr(found, field).cpu() for field in columns.values()])
    return {column: torch.stack([row[place] for row in rows]) for place, column in enumerate(columns)}


ENTRIES = {
    "updates": Measure(
        title="Length and direction of the updates between stored checkpoints",
        formula="‖Δ‖/steps, ‖Δ‖/‖W₋‖, cos(Δ, Δ₋), cos(Δ, −W₋) with Δ = W − W₋, of all parameters together",
        source="standard",
        cost="the weights alone, of a checkpoint and the two stored before it",
        null="cos(Δ, Δ₋) is 0 for a random walk in many dimensions; cos(Δ, −W₋) is 1 where decay alone acts",
        undefined="no checkpoint is stored before it (before the one before it for update_cosine), nothing moved, or "
        "weights are not numbers",
        columns={
            "update_speed": "distance from the checkpoint stored before, per step",
            "update_relative": "that distance over the norm of the weights before",
            "update_cosine": "cosine with the update before",
            "update_decay_cosine": "cosine with the direction in which weight decay pulls",
        },
        compute=_updates_columns,
        needs=frozenset({"trajectory"}),
    ),
    "update_spectrum": Measure(
        title="Spectrum of the last ten updates between stored checkpoints",
        formula="σ₁²/Σ σ_i², max_k σ_k/σ_{k+1} and its k*, of the matrix of the last 10 updates, each over its steps",
        source="Xu 2026 (arXiv:2603.28964): k* of the Gram matrix of a rolling window of updates; "
        "the share of one direction after arXiv:2602.16746, which takes it of whole trajectories of attention weights",
        cost="the weights alone, of a checkpoint and the ten stored before it",
        null="ten orthogonal updates of equal length: share 0.1, gap 1",
        undefined="fewer than ten checkpoints are stored before it, nothing moved, or weights are not numbers",
        columns={
            "update_top_share": "share of the strongest direction, in [0.1, 1]",
            "update_gap": "largest ratio of neighbouring singular values",
            "update_gap_place": "how many directions stand above that gap",
        },
        compute=partial(_spectrum_columns, among="", columns=OF_ALL),
        needs=frozenset({"trajectory"}),
    ),
    "attention_updates": Measure(
        title="Spectrum of the last ten updates of the attention weights",
        formula="g₂₃ = σ₂² − σ₃² and σ₁²/Σ σ_i² of the matrix of the last 10 updates of all W_Q, W_K, W_V and W_O",
        source="Xu 2026 (arXiv:2603.28964): g₂₃ falls before grokking; attention weights alone, and updates between "
        "checkpoints, as in the author's code",
        cost="the attention weights alone, of a checkpoint and the ten stored before it",
        null="ten orthogonal updates of equal length: g₂₃ 0, share 0.1; the source's runs without weight decay lose "
        "more of their g₂₃ than those that grok, over a longer time",
        undefined="fewer than ten checkpoints are stored before it, or weights are not numbers",
        columns={
            "attention_gap_23": "g₂₃, of updates per step",
            "attention_top_share": "share of the strongest direction, in [0.1, 1]",
        },
        compute=partial(_spectrum_columns, among=".attn.W", columns=OF_ATTENTION),
        needs=frozenset({"trajectory"}),
    ),
}
