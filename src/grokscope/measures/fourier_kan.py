"""A sparse Fourier series for every neuron: the paper's FourierKAN, solved exactly, trained, and written out."""

from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from grokscope.errors import require
from grokscope.measures.formula import Formula, Wave
from grokscope.measures.question import BLOCK_0, MOSTLY_CONSTANT, Columns, Measure, Question
from grokscope.measures.spectrum import Spectrum, mostly_varies, spectrum
from grokscope.randomness import normal
from grokscope.shapes import Bool, Float, Int
from grokscope.tasks import Basis

__all__ = ["ENTRIES", "FourierKan", "formulas", "fourier_kan", "refitted", "trained_fourier_kan"]

PENALTY = 0.1
STEPS = 500
LEARNING_RATE = 0.05  # of targets with variance 1; 500 steps falling to 0 reach 12, the largest coefficient is √2
INITIAL_STD = 0.1
ROUNDING = 1e-12  # a mean this small relative to the waves is what rounding leaves of 0
ADAM = (0.9, 0.999, 1e-8)


@dataclass(frozen=True, eq=False)
class FourierKan:
    """Â_j(s) = a_0 + Σ_{k=1..K} a_k cos(2πks/n) + b_k sin(2πks/n), for each run's neurons."""

    basis: Basis
    """The cyclic group over whose elements s runs; for the multiplicative one s is a discrete logarithm."""
    intercept: Float[Tensor, "*runs neurons"]
    """a_0, the mean: it is never penalised."""
    coefficients: Float[Tensor, "*runs 2 frequencies neurons"]
    """a_k, then b_k, for k = 1 … K; b at n/2 is 0, as the sine is there, and all are for a constant neuron."""
    alpha: Float[Tensor, "*runs neurons"]
    """The weight of the L1 term that was solved for; 0 for a refit."""
    r_squared: Float[Tensor, "*runs neurons"]
    """1 − Σ(A − Â)²/Σ(A − Ā)²; NaN for a neuron that does not vary."""
    strongest_mode: Int[Tensor, "*runs neurons"]
    """Index of the fit's strongest mode, ranked as FSD ranks; −1 where there is none."""
    is_constant: Bool[Tensor, "*runs neurons"]
    """Neurons that do not vary beyond rounding."""
    agreement: Float[Tensor, "*runs"]
    """Share of the varying neurons whose strongest mode is also the DFT's; NaN where most do not vary."""

    @property
    def amplitude(self) -> Float[Tensor, "*runs frequencies neurons"]:
        """c_k ≥ 0 of c_k cos(2πks/n − φ_k)."""
        return torch.hypot(*self.coefficients.unbind(dim=-3))

    @property
    def phase(self) -> Float[Tensor, "*runs frequencies neurons"]:
        """φ_k in (−π, π]."""
        cosine, sine = self.coefficients.unbind(dim=-3)
        return torch.atan2(sine + 0.0, cosine)  # −0.0 would turn π into −π

    @property
    def kept(self) -> Int[Tensor, "*runs neurons"]:
        """Frequencies with a coefficient other than 0: R² means little without their number."""
        return (self.coefficients != 0).any(dim=-3).sum(dim=-2)

    @property
    def curve(self) -> Float[Tensor, "*runs elements neurons"]:
        """Â_j at each element of the basis."""
        return self.intercept[..., None, :] + _waves_of(self.coefficients, len(self.basis.answers))


def fourier_kan(
    means: Float[Tensor, "*runs answers neurons"],
    basis: Basis,
    penalty: float = PENALTY,
    frequencies: int | None = None,
) -> FourierKan:
    """The minimum of (1/2n) Σ_s (A[s, j] − Â_j(s))² + α_j Σ_{k≥1} (|a_k| + |b_k|). Paper: §4, FourierKAN.

    α_j is the share `penalty` of the least α that leaves no wave at all, max_i |x_i·A_j|/n over the columns x_i of the
    design. These are orthogonal, so each coefficient is its least-squares value drawn towards 0 by α_j n/‖x_i‖²: on
    odd Z_n by `penalty` times the neuron's largest coefficient, whatever the neuron's scale. The mean a_0 is not
    penalised. `frequencies` is K, by default ⌊n/2⌋.

    >>> from grokscope.tasks import named_task
    >>> wave = torch.cos(2 * torch.pi * 2 * torch.arange(7) / 7 - 1.2).double()
    >>> fit = fourier_kan(1e-4 * wave[:, None] + 0.5, named_task("add_mod7").basis())
    >>> fit.strongest_mode.tolist(), round(float(fit.r_squared), 2)
    ([1], 0.98)
    """
    problem = _problem(means, basis, frequencies)
    alpha = problem.alpha(penalty)
    threshold = alpha[..., None, None, :] * problem.dimensions
    return problem.described(problem.full.sign() * (problem.full.abs() - threshold).clamp(min=0), alpha)


def refitted(means: Float[Tensor, "*runs answers neurons"], fit: FourierKan) -> FourierKan:
    """The frequencies that a fit has kept, without the penalty, which shrinks amplitudes and rotates phases.

    A frequency is kept if its cosine or its sine is, and gets both back. A trained fit keeps all: none is exactly 0.

    >>> from grokscope.tasks import named_task
    >>> s = 2 * torch.pi * torch.arange(5) / 5
    >>> means = torch.cos(2 * s)[:, None].double()
    >>> refitted(means, fourier_kan(means, named_task("add_mod5").basis())).r_squared.round(decimals=3)
    tensor([1.], dtype=torch.float64)
    """
    problem = _problem(means, fit.basis, fit.coefficients.shape[-2])
    kept = (fit.coefficients != 0).any(dim=-3, keepdim=True)
    return problem.described(problem.full.where(kept, 0), torch.zeros_like(fit.alpha))


def trained_fourier_kan(
    means: Float[Tensor, "*runs answers neurons"],
    basis: Basis,
    penalty: float = PENALTY,
    frequencies: int | None = None,
    *,
    seed: int,
    steps: int = STEPS,
    learning_rate: float = LEARNING_RATE,
) -> FourierKan:
    """The objective of `fourier_kan` by gradient descent: the `agreement` of Table 6, whose training is not reported.

    Adam on each neuron's variation divided by its standard deviation, from coefficients N(0, 0.1²) drawn from the seed
    (the same in every run of a stack), with a rate that falls linearly to 0. Coefficients come near 0, never to it.

    >>> from grokscope.tasks import named_task
    >>> basis = named_task("add_mod7").basis()
    >>> wave = torch.cos(2 * torch.pi * 2 * torch.arange(7) / 7)[:, None].double()
    >>> found = trained_fourier_kan(wave, basis, seed=0, steps=200)
    >>> found.strongest_mode.tolist(), round(float(found.r_squared), 2)
    ([1], 0.99)
    """
    problem = _problem(means, basis, frequencies)
    alpha = problem.alpha(penalty)
    deviation = problem.centred.square().mean(dim=-2).sqrt()
    scale = deviation.where(deviation > 0, 1)[..., None, None, :]
    target, weight = problem.full / scale, alpha[..., None, None, :] / scale
    values = problem.initial(seed)
    first, second = torch.zeros_like(values), torch.zeros_like(values)
    decay, square_decay, epsilon = ADAM
    for step in range(1, steps + 1):
        # Xᵀ(Xw − y)/n + α sign(w), with XᵀX/n diagonal: 1/2, and 1 at n/2.
        gradient = (values - target) / problem.dimensions + weight * values.sign()
        first = decay * first + (1 - decay) * gradient
        second = square_decay * second + (1 - square_decay) * gradient.square()
        size = (second / (1 - square_decay**step)).sqrt() + epsilon
        rate = learning_rate * (1 - (step - 1) / steps)
        values = values - rate * first / (1 - decay**step) / size
    return problem.described(values * scale, alpha)


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is to be fitted, in the Fourier basis."""

    basis: Basis
    """The cyclic group."""
    intercept: Float[Tensor, "*runs neurons"]
    """Ā_j over the group."""
    centred: Float[Tensor, "*runs elements neurons"]
    """A − Ā over the group, in float64."""
    spectrum: Spectrum
    """The DFT's powers, and which neurons are constant."""
    full: Float[Tensor, "*runs 2 frequencies neurons"]
    """Least-squares coefficients, x·A/x·x; zeros for a constant neuron."""
    dimensions: Float[Tensor, "frequencies 1"]
    """n/‖x‖² of each frequency's columns: 2, and 1 at n/2."""

    def alpha(self, penalty: float) -> Tensor:
        require(penalty >= 0, "FourierKAN's penalty must be at least 0", penalty)
        return penalty * (self.full.abs() / self.dimensions).amax(dim=(-3, -2))

    def initial(self, seed: int) -> Tensor:
        shape = self.full.shape[-3:]
        # Epoch −1 keeps them apart from the initial weights of a run with this seed.
        seeds, epoch = (torch.tensor(number, device=self.full.device) for number in (seed, -1))
        drawn = INITIAL_STD * normal(seeds, "initialization", epoch, prod(shape)).view(shape)
        return (drawn * _is_column(self.dimensions)).expand_as(self.full)

    def described(self, coefficients: Tensor, alpha: Tensor) -> FourierKan:
        """A fit, with what can be said of it."""
        is_constant = self.spectrum.is_constant
        coefficients = coefficients.where(~is_constant[..., None, None, :], 0)
        left = (self.centred - _waves_of(coefficients, self.centred.shape[-2])).square().sum(dim=-2)
        r_squared = (1 - left / self.centred.square().sum(dim=-2)).where(~is_constant, torch.nan)
        # |Â_k| of the curve, as the spectrum ranks: (n/2)|a, b|, and n|a| at n/2.
        strength = (coefficients / self.dimensions).square().sum(dim=-3)
        mode = strength.argmax(dim=-2).where(strength.amax(dim=-2) > 0, -1)
        agreement = _agreement(mode, self.spectrum)
        return FourierKan(self.basis, self.intercept, coefficients, alpha, r_squared, mode, is_constant, agreement)


def _problem(means: Tensor, basis: Basis, frequencies: int | None) -> _Problem:
    n = len(basis.answers)
    require(
        basis.modes.is_fourier,
        f"FourierKAN fits cosines and sines, and the modes of this {basis.name} basis on {n} elements are irreps: "
        "it needs a cyclic group",
    )
    K = n // 2 if frequencies is None else frequencies
    require(1 <= K <= n // 2, f"FourierKAN's frequencies must lie between 1 and {n // 2} on {n} elements", K)
    over_group = means[..., torch.tensor(basis.answers, device=means.device), :].double()
    intercept = over_group.mean(dim=-2)
    centred = over_group - intercept[..., None, :]
    found = spectrum(means, basis)
    dimensions = found.dimensions[:K, None]
    waves = torch.fft.rfft(centred, dim=-2)[..., 1 : K + 1, :]
    full = torch.stack([waves.real, -waves.imag], dim=-3) * _is_column(dimensions) * dimensions / n
    full = full.where(~found.is_constant[..., None, None, :], 0)
    return _Problem(basis, intercept, centred, found, full, dimensions)


def _is_column(dimensions: Float[Tensor, "frequencies 1"]) -> Float[Tensor, "2 frequencies 1"]:
    """1 for each column of the design, 0 for the sine at n/2, which vanishes on whole numbers."""
    return torch.stack([torch.ones_like(dimensions), dimensions - 1])


def _waves_of(
    coefficients: Float[Tensor, "*runs 2 frequencies neurons"], n: int
) -> Float[Tensor, "*runs elements neurons"]:
    """Σ_k a_k cos(2πks/n) + b_k sin(2πks/n) at s = 0 … n − 1."""
    frequencies = torch.arange(1, coefficients.shape[-2] + 1, device=coefficients.device)
    # Reduced modulo n as whole numbers first: cos of a large angle loses digits.
    angles = 2 * torch.pi / n * (frequencies[:, None] * torch.arange(n, device=coefficients.device) % n).double()
    return torch.einsum("...pkj,pks->...sj", coefficients, torch.stack([angles.cos(), angles.sin()]))


def _agreement(mode: Int[Tensor, "*runs neurons"], waves: Spectrum) -> Float[Tensor, "*runs"]:
    varies = ~waves.is_constant
    agrees = varies & (mode == waves.density.argmax(dim=-2))
    return (agrees.sum(dim=-1).double() / varies.sum(dim=-1)).where(mostly_varies(waves.power), torch.nan)


def formulas(fit: FourierKan, *run: int) -> tuple[Formula, ...]:
    """One run's neurons as formulas; `run` is its place in the stack. Meant for a refit: it has the true phases.

    >>> from grokscope.tasks import named_task
    >>> means = 0.41 * torch.cos(2 * torch.pi * 2 * torch.arange(7).double() / 7 - 1.2)[:, None]
    >>> formulas(refitted(means, fourier_kan(means, named_task("add_mod7").basis())))[0].text()
    '0.41·cos(2π·2s/7 − 1.20)'
    """
    order = len(fit.basis.answers)
    root = int(fit.basis.answers[1]) if fit.basis.name == "multiplicative" else None
    columns = (fit.amplitude[run].T, fit.phase[run].T, fit.intercept[run], fit.is_constant[run])
    found = []
    for amplitudes, phases, constant, is_constant in zip(*(column.tolist() for column in columns), strict=True):
        waves = [Wave(c, k, phi) for k, (c, phi) in enumerate(zip(amplitudes, phases, strict=True), start=1) if c > 0]
        ranked = tuple(sorted(waves, key=lambda wave: -wave.amplitude))
        is_rounding = bool(ranked) and abs(constant) < ROUNDING * ranked[0].amplitude
        found.append(Formula(order, ranked, 0.0 if is_rounding else constant, root, is_constant))
    return tuple(found)


def _columns(question: Question) -> Columns:
    """The exact fit, and the trained one where there is time for it."""
    means, reading = question.means().means, question.reading
    options = (question.basis, reading.fourier_kan_penalty, reading.fourier_kan_frequencies)
    exact = fourier_kan(means, *options)
    kept = exact.kept.double().where(~exact.is_constant, torch.nan).nanquantile(0.5, dim=-1)
    found = {"kan_r2": exact.r_squared.nanmean(dim=-1), "kan_kept": kept}
    if question.has("time"):
        trained = trained_fourier_kan(means, *options, seed=question.seed)
        found |= {"kan_trained_r2": trained.r_squared.nanmean(dim=-1), "kan_agreement": trained.agreement}
    varies = mostly_varies(question.spectrum().power)
    return {name: value.where(varies, torch.nan) for name, value in found.items()}


ENTRIES = {
    "fourier_kan": Measure(
        title="FourierKAN: each neuron as a sparse sum of cosines and sines",
        formula="A_j(s) ≈ Σ_{k ≤ K} a_k cos(2πks/p) + b_k sin(2πks/p) with an L1 penalty relative to its largest term",
        source="the paper, §4 and Table 6",
        cost=BLOCK_0 + "; the exact fit costs nothing, the trained one some seconds",
        null="untrained networks: their fits keep most frequencies, and R² and agreement are high already at step 0",
        undefined="the basis is not a Fourier basis (rejected); " + MOSTLY_CONSTANT,
        columns={
            "kan_r2": "mean R² of the exact fit over the neurons that vary",
            "kan_trained_r2": "mean R² of the fit by gradient descent (Table 6)",
            "kan_kept": "median number of frequencies the exact fit keeps",
            "kan_agreement": "share of neurons whose trained fit has the DFT's dominant frequency",
        },
        compute=_columns,
    ),
}
