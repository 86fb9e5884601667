import math
import re
from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Lasso
from torch import Tensor

from grokscope.errors import InputError
from grokscope.measures.formula import Formula, Wave
from grokscope.measures.fourier_kan import (
    FourierKan,
    formulas,
    fourier_kan,
    refitted,
    trained_fourier_kan,
)
from grokscope.randomness import normal
from grokscope.tasks import Basis, named_task

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25, deadline=None)
ORDERS = ["add_mod53", "add_mod97", "add_mod131", "add_mod96", "add_mod10", "mult_mod97", "Z12"]


def basis_of(task: str) -> Basis:
    return named_task(task).basis()


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def means_of(task: str, seed: int, neurons: int = 3) -> Tensor:
    """Small means of unequal scale around unequal constants, as activations have them."""
    answers = named_task(task).classes
    return drawn(seed, answers, neurons) * torch.tensor([1e-4, 1.0, 30.0])[:neurons] + drawn(seed + 1, neurons)


def design(n: int, K: int) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """The columns of the regression, and where each coefficient is kept; the sine at n/2 is no column."""
    columns, places = [], []
    for k in range(1, K + 1):
        angle = 2 * np.pi * k * np.arange(n) / n
        columns.append(np.cos(angle))
        places.append((0, k - 1))
        if 2 * k != n:
            columns.append(np.sin(angle))
            places.append((1, k - 1))
    return np.stack(columns, axis=1), places


# Against scikit-learn.


@pytest.mark.parametrize("task", ORDERS)
@pytest.mark.parametrize("penalty", [0.03, 0.1, 0.3])
def test_it_is_the_lasso_of_scikit_learn(task: str, penalty: float) -> None:
    basis, means = basis_of(task), means_of(task, 7)
    fit = fourier_kan(means, basis, penalty)
    n = len(basis.answers)
    X, places = design(n, n // 2)
    for j in range(means.shape[1]):
        y = means[basis.answers, j].numpy()
        lasso = Lasso(alpha=float(fit.alpha[j]), tol=1e-14, max_iter=10**6).fit(X, y)
        found = np.array([float(fit.coefficients[part, k, j]) for part, k in places])
        assert found == pytest.approx(lasso.coef_, abs=1e-7 * y.std())
        assert ((found == 0) == (np.abs(lasso.coef_) < 1e-9 * y.std())).all()
        assert n < 50 or 0 < (found == 0).sum() < len(found)
        assert float(fit.intercept[j]) == pytest.approx(lasso.intercept_, rel=1e-9)
        assert float(fit.r_squared[j]) == pytest.approx(lasso.score(X, y), abs=1e-7)
        assert fit.curve[:, j].numpy() == pytest.approx(lasso.predict(X), abs=1e-7 * y.std())


@pytest.mark.parametrize(("task", "K"), [("add_mod97", 5), ("add_mod96", 48), ("add_mod96", 47), ("add_mod10", 1)])
def test_fewer_frequencies_are_the_lasso_on_fewer_columns(task: str, K: int) -> None:
    basis, means = basis_of(task), means_of(task, 3)
    fit = fourier_kan(means, basis, frequencies=K)
    assert fit.coefficients.shape == (2, K, 3)
    X, places = design(len(basis.answers), K)
    y = means[:, 1].numpy()
    lasso = Lasso(alpha=float(fit.alpha[1]), tol=1e-14, max_iter=10**6).fit(X, y)
    found = np.array([float(fit.coefficients[part, k, 1]) for part, k in places])
    assert found == pytest.approx(lasso.coef_, abs=1e-7)
    assert float(fit.r_squared[1]) == pytest.approx(lasso.score(X, y), abs=1e-7)


@given(st.sampled_from(ORDERS), seeds)
@few
def test_a_penalty_of_one_is_the_least_that_leaves_nothing(task: str, seed: int) -> None:
    basis, means = basis_of(task), means_of(task, seed)
    none, one = fourier_kan(means, basis, 1.0), fourier_kan(means, basis, 1 - 1e-6)
    assert (none.coefficients.abs().amax(dim=(0, 1)) <= 1e-12 * means.std(dim=0)).all()
    assert none.r_squared.tolist() == pytest.approx([0] * 3, abs=1e-10)
    assert ((one.coefficients != 0).sum(dim=(0, 1)) == 1).all()
    assert one.kept.tolist() == [1] * 3


@pytest.mark.parametrize("task", ["add_mod97", "sub_mod53"])
def test_on_odd_groups_the_threshold_is_a_share_of_the_largest_coefficient(task: str) -> None:
    means, basis = means_of(task, 5), basis_of(task)
    full, fit = fourier_kan(means, basis, 0.0).coefficients, fourier_kan(means, basis, 0.1).coefficients
    largest = full.abs().amax(dim=(0, 1))
    kept = fit != 0
    assert torch.allclose((full - fit)[kept] / (full.sign() * largest)[kept], torch.tensor(0.1).double())
    assert torch.equal(kept, full.abs() > 0.1 * largest)


# Against loops.


@given(st.sampled_from(["add_mod11", "add_mod10", "mult_mod11"]), seeds)
@few
def test_without_a_penalty_it_is_a_naive_fourier_series(task: str, seed: int) -> None:
    basis, means = basis_of(task), means_of(task, seed)
    fit = fourier_kan(means, basis, 0.0)
    n = len(basis.answers)
    for j in range(3):
        values = [float(means[answer, j]) for answer in basis.answers]
        size = np.std(values)
        for k in range(1, n // 2 + 1):
            half = 1 if 2 * k == n else 2
            cosine = half / n * sum(v * math.cos(2 * math.pi * k * s / n) for s, v in enumerate(values))
            sine = half / n * sum(v * math.sin(2 * math.pi * k * s / n) for s, v in enumerate(values))
            assert float(fit.coefficients[0, k - 1, j]) == pytest.approx(cosine, abs=1e-9 * size)
            assert float(fit.coefficients[1, k - 1, j]) == pytest.approx(sine if 2 * k != n else 0, abs=1e-9 * size)
        assert fit.curve[:, j].tolist() == pytest.approx(values, abs=1e-9 * size)
    assert fit.r_squared.tolist() == pytest.approx([1.0] * 3)
    assert float(fit.agreement) == 1


@given(st.sampled_from(ORDERS), seeds)
@few
def test_a_refit_is_least_squares_on_the_kept_frequencies(task: str, seed: int) -> None:
    basis, means = basis_of(task), means_of(task, seed)
    sparse = fourier_kan(means, basis, 0.5)
    fit = refitted(means, sparse)
    n = len(basis.answers)
    X, places = design(n, n // 2)
    for j in range(3):
        y = means[basis.answers, j].numpy()
        kept = [bool((sparse.coefficients[:, k, j] != 0).any()) for _, k in places]
        chosen = np.concatenate([np.ones((n, 1)), X[:, kept]], axis=1)
        solution, *_ = np.linalg.lstsq(chosen, y)
        assert fit.curve[:, j].numpy() == pytest.approx(chosen @ solution, abs=1e-9 * y.std())
        assert float(fit.r_squared[j]) == pytest.approx(1 - ((y - chosen @ solution) ** 2).mean() / y.var(), abs=1e-9)
        assert float(fit.r_squared[j]) >= float(sparse.r_squared[j])
    assert not fit.alpha.any()


@given(st.sampled_from(["add_mod97", "add_mod96", "mult_mod53"]), seeds, st.floats(1e-6, 1e6), st.floats(-10, 10))
@few
def test_scale_and_constant_change_nothing_but_themselves(task: str, seed: int, scale: float, shift: float) -> None:
    basis, means = basis_of(task), drawn(seed, named_task(task).classes, 3)
    one, other = fourier_kan(means, basis), fourier_kan(scale * (means + shift), basis)
    assert torch.allclose(other.coefficients, scale * one.coefficients, rtol=1e-9, atol=1e-12 * scale)
    assert torch.allclose(other.intercept, scale * (one.intercept + shift), rtol=1e-9, atol=1e-9 * scale)
    assert torch.allclose(other.r_squared, one.r_squared)
    assert torch.equal(other.strongest_mode, one.strongest_mode)


# Planted formulas.


@given(
    st.sampled_from(["add_mod53", "add_mod97", "add_mod131", "mult_mod97"]),
    st.sampled_from([1e-4, 1e-2, 3.0]),
    st.floats(0, 0.3),
    seeds,
)
@few
def test_a_planted_wave_is_found_under_noise_of_up_to_a_third(task: str, c: float, noise: float, seed: int) -> None:
    basis, generator = basis_of(task), np.random.default_rng(seed)
    n, neurons = len(basis.answers), 8
    k = generator.integers(1, (n - 1) // 2 + 1, neurons)
    phi, constant = generator.uniform(-np.pi, np.pi, neurons), generator.normal(size=neurons)
    means = np.zeros((named_task(task).classes, neurons))
    wave = np.cos(2 * np.pi * k * np.arange(n)[:, None] / n - phi) + noise * generator.normal(size=(n, neurons))
    means[basis.answers] = constant + c * wave
    fit = refitted(torch.from_numpy(means), fourier_kan(torch.from_numpy(means), basis))
    assert (fit.strongest_mode.numpy() == k - 1).all()
    assert float(fit.agreement) == 1
    error = 6 * noise * math.sqrt(2 / n) + 1e-9  # six standard errors of a Fourier coefficient
    for j, formula in enumerate(formulas(fit)):
        best = formula.waves[0]
        assert best.frequency == k[j]
        assert best.amplitude / c == pytest.approx(1, abs=error)
        assert abs(math.remainder(best.phase - phi[j], 2 * math.pi)) <= 1.6 * error
        assert formula.constant == pytest.approx(constant[j], abs=c * error + 1e-9)
        assert [wave.amplitude for wave in formula.waves] == sorted((w.amplitude for w in formula.waves), reverse=True)


def test_two_planted_waves_give_two_terms() -> None:
    s = torch.arange(97).double()
    wave = 0.0521 - 1.23e-4 * torch.cos(2 * torch.pi * 5 * s / 97) + 5e-5 * torch.sin(2 * torch.pi * s / 97)
    means = wave[:, None]
    found = formulas(refitted(means, fourier_kan(means, basis_of("add_mod97"))))[0]
    assert len(found.waves) == int(fourier_kan(means, basis_of("add_mod97")).kept) == 2
    assert found.text() == "0.052 + 1.2·10⁻⁴·cos(2π·5s/97 − 3.14) + 5.0·10⁻⁵·cos(2πs/97 − 1.57)"


def test_thresholding_rotates_phases_and_the_refit_turns_them_back() -> None:
    s = torch.arange(97).double()
    means = torch.cos(2 * torch.pi * 5 * s / 97 - 0.3)[:, None]
    sparse = fourier_kan(means, basis_of("add_mod97"), 0.2)
    assert abs(float(sparse.phase[4, 0]) - 0.3) > 0.1
    assert float(refitted(means, sparse).phase[4, 0]) == pytest.approx(0.3)


# Trained.


@pytest.mark.parametrize("task", ["add_mod53", "add_mod97", "add_mod131", "add_mod96", "mult_mod97"])
def test_training_reaches_the_closed_form_at_every_order(task: str) -> None:
    basis, means = basis_of(task), means_of(task, 11)
    exact = fourier_kan(means, basis)
    for seed in (0, 1):
        trained = trained_fourier_kan(means, basis, seed=seed)
        error = (trained.coefficients - exact.coefficients).abs().amax(dim=(0, 1)) / means.std(dim=0)
        assert error.max() < 0.02
        assert (trained.r_squared - exact.r_squared).abs().max() < 0.01
        assert torch.equal(trained.alpha, exact.alpha)


@pytest.mark.parametrize("p", [53, 97, 131])
def test_training_agrees_with_the_dft_on_synchronised_neurons(p: int) -> None:
    generator = np.random.default_rng(p)
    k, phi = generator.integers(1, p // 2 + 1, 64), generator.uniform(0, 2 * np.pi, 64)
    wave = np.cos(2 * np.pi * k * np.arange(p)[:, None] / p - phi) + 0.1 * generator.normal(size=(p, 64))
    trained = trained_fourier_kan(torch.from_numpy(0.05 + 1e-4 * wave), basis_of(f"add_mod{p}"), seed=0)
    assert float(trained.agreement) == 1
    assert (trained.strongest_mode.numpy() == k - 1).all()
    assert trained.r_squared.min() > 0.9  # the paper's p = 131 ended at 0.04


@pytest.mark.parametrize("task", ["add_mod11", "add_mod10"])
def test_training_is_adam_through_the_design(task: str) -> None:
    """PyTorch's own Adam and autograd on the objective as it is written, with every cosine and sine."""
    basis, means, steps, rate = basis_of(task), means_of(task, 2), 30, 0.05
    n = len(basis.answers)
    K = n // 2
    found = trained_fourier_kan(means, basis, 0.1, seed=5, steps=steps, learning_rate=rate)
    X, places = design(n, K)
    first = 0.1 * normal(torch.tensor(5), "initialization", torch.tensor(-1), 2 * K * 3).view(2, K, 3)
    at = tuple(torch.tensor(place) for place in zip(*places, strict=True))
    scale = means.std(dim=0, correction=0)
    target, alpha = (means - means.mean(dim=0)) / scale, found.alpha / scale
    weights = first[at].clone().requires_grad_()
    optimizer = torch.optim.Adam([weights], lr=rate)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate * (1 - step / steps)
        optimizer.zero_grad()
        fitted = torch.from_numpy(X) @ weights
        (((fitted - target) ** 2).sum() / (2 * n) + (alpha * weights.abs()).sum()).backward()
        optimizer.step()
    assert torch.allclose(found.coefficients[at] / scale, weights.detach(), atol=1e-10)
    assert not found.coefficients[1, K - 1].any() or n % 2


def test_training_depends_on_the_seed_and_on_nothing_else() -> None:
    basis, means = basis_of("add_mod11"), drawn(0, 2, 11, 3)
    state = torch.get_rng_state()
    one, same = (trained_fourier_kan(means, basis, seed=1, steps=20) for _ in range(2))
    other = trained_fourier_kan(means, basis, seed=2, steps=20)
    assert torch.equal(one.coefficients, same.coefficients)
    assert not torch.allclose(one.coefficients, other.coefficients)
    assert torch.equal(torch.get_rng_state(), state)
    for i in range(2):  # whatever its neighbours
        alone = trained_fourier_kan(means[i], basis, seed=1, steps=20)
        assert torch.allclose(one.coefficients[i], alone.coefficients, rtol=1e-12, atol=1e-15)


def test_training_works_where_gradients_are_off() -> None:
    with torch.no_grad():
        assert trained_fourier_kan(drawn(0, 11, 2), basis_of("add_mod11"), seed=0).r_squared.min() > 0.5


# Agreement.


def test_the_penalty_can_prefer_a_wave_on_an_axis_to_a_stronger_one_between_them() -> None:
    s = 2 * torch.pi * torch.arange(97).double() / 97
    between, on_axis = torch.cos(s - torch.pi / 4), torch.cos(2 * s)
    means = torch.stack([between + 0.97 * on_axis, between + 0.5 * on_axis, on_axis], dim=1)
    fit = fourier_kan(means, basis_of("add_mod97"))
    assert fit.strongest_mode.tolist() == [1, 0, 1]  # the DFT's are 0, 0, 1
    assert float(fit.agreement) == pytest.approx(2 / 3)
    assert refitted(means, fit).strongest_mode.tolist() == [0, 0, 1]


def test_at_half_the_order_a_frequency_is_ranked_as_the_spectrum_ranks() -> None:
    s = torch.arange(10).double()
    # |Â| is n·0.6 at n/2, and n/2·1 at the other; power per dimension decides alike.
    means = (torch.cos(2 * torch.pi * s / 10) + 0.6 * torch.cos(torch.pi * s))[:, None]
    fit = fourier_kan(means, basis_of("add_mod10"), 0.0)
    assert fit.strongest_mode.tolist() == [4]
    assert float(fit.agreement) == 1


# Where there is nothing to fit.


@pytest.mark.parametrize("level", [0.0, 0.0521, -3.0])
def test_a_constant_neuron_has_no_fit_and_says_so(level: float) -> None:
    means = torch.stack([torch.full((11,), level), *drawn(0, 3, 11).float()], dim=1)
    for fit in (
        fourier_kan(means, basis_of("add_mod11")),
        trained_fourier_kan(means, basis_of("add_mod11"), seed=0, steps=200),
    ):
        assert fit.is_constant.tolist() == [True, False, False, False]
        assert fit.r_squared.isnan().tolist() == [True, False, False, False]
        assert int(fit.strongest_mode[0]) == -1
        assert not fit.coefficients[..., 0].any()
        assert fit.agreement.isfinite()
        shown = {0.0: "0 (constant)", 0.0521: "0.052 (constant)", -3.0: "−3.0 (constant)"}[level]
        assert formulas(fit)[0].text() == shown


def test_where_most_neurons_are_constant_nothing_agrees() -> None:
    means = torch.full((11, 4), 0.5)
    means[:, 0] = drawn(0, 11)
    fit = fourier_kan(means, basis_of("add_mod11"))
    assert fit.agreement.isnan()
    assert fit.r_squared[0].isfinite()


def test_a_run_of_nan_is_nan_and_leaves_its_neighbours() -> None:
    basis, means = basis_of("add_mod11"), drawn(0, 3, 11, 4)
    fits = [fourier_kan, lambda m, b: trained_fourier_kan(m, b, seed=0, steps=20), _refit]
    for of in fits:
        healthy = of(means, basis)
        sick = means.clone()
        sick[1, 2, 0] = torch.nan
        found = of(sick, basis)
        assert found.r_squared[1].isnan().tolist() == [True, False, False, False]
        assert int(found.strongest_mode[1, 0]) == -1
        assert found.agreement.isnan().tolist() == [False, True, False]
        assert formulas(found, 1)[0].text() == "undefined"
        for field in fields(FourierKan)[1:]:
            one, other = getattr(healthy, field.name), getattr(found, field.name)
            assert torch.equal(one[[0, 2]], other[[0, 2]]), field.name


def _refit(means: Tensor, basis: Basis) -> FourierKan:
    return refitted(means, fourier_kan(means, basis))


def test_leading_axes_are_runs() -> None:
    basis, means = basis_of("mult_mod11"), drawn(0, 2, 3, 11, 4)
    before = means.clone()
    together = _refit(means, basis)
    assert torch.equal(means, before)
    for i in range(2):
        for j in range(3):
            alone = _refit(means[i, j], basis)
            assert torch.allclose(together.coefficients[i, j], alone.coefficients, rtol=1e-12, atol=1e-15)
            assert torch.allclose(together.curve[i, j], alone.curve)
            assert formulas(together, i, j)[0].text() == formulas(alone)[0].text()


# What cannot be fitted.


def test_irreps_are_no_frequencies() -> None:
    for of in (fourier_kan, lambda m, b: trained_fourier_kan(m, b, seed=0)):
        with pytest.raises(InputError, match="isotypic basis on 6 elements are irreps: it needs a cyclic group"):
            of(drawn(0, 6, 2), basis_of("S3"))


@pytest.mark.parametrize("K", [0, -1, 6])
def test_frequencies_beyond_half_the_order_are_rejected(K: int) -> None:
    with pytest.raises(InputError, match=f"must lie between 1 and 5 on 11 elements, got {K}"):
        fourier_kan(drawn(0, 11, 2), basis_of("add_mod11"), frequencies=K)


@pytest.mark.parametrize("penalty", [-0.1, math.nan])
def test_a_penalty_below_zero_is_rejected(penalty: float) -> None:
    with pytest.raises(InputError, match=f"at least 0, got {penalty}"):
        fourier_kan(drawn(0, 11, 2), basis_of("add_mod11"), penalty)


# Formulas.


def test_multiplication_is_written_in_discrete_logarithms() -> None:
    basis = basis_of("mult_mod97")
    means = torch.zeros(97, 1).double()
    means[basis.answers, 0] = torch.cos(2 * torch.pi * 7 * torch.arange(96).double() / 96 - 1)
    found = formulas(fourier_kan(means, basis, 0.0, frequencies=7))[0]
    assert found.waves[0].frequency == 7
    only = Formula(found.order, found.waves[:1], 0.0, found.root)
    assert only.text() == "1.0·cos(2π·7log₅(s)/96 − 1.00)"
    assert only.latex() == r"1.0 \cos(2\pi \cdot 7\log_{5}(s)/96 - 1.00)"
    assert Formula(96, (Wave(1.0, 1, 1.0),), 0.0, 5).text() == "1.0·cos(2π·log₅(s)/96 − 1.00)"


@given(st.sampled_from(["add_mod11", "add_mod10", "mult_mod11"]), seeds)
@few
def test_a_formula_read_back_is_the_curve(task: str, seed: int) -> None:
    basis, means = basis_of(task), means_of(task, seed)
    fit = _refit(means, basis)
    for j, formula in enumerate(formulas(fit)):
        values = [_evaluated(formula.text(13), s) for s in range(len(basis.answers))]
        assert values == pytest.approx(fit.curve[:, j].tolist(), abs=1e-10 * float(means[:, j].abs().max()))


def _evaluated(text: str, s: int) -> float:
    """The written formula at an element, by Python's own arithmetic."""
    text = re.sub("10([⁻⁰¹²³⁴-⁹]+)", lambda m: f"10**({m[1].translate(RAISED)})", text)
    text = re.sub("log[₀-₉]+\\(s\\)", "s", text).replace("−", "-").replace("·", "*")
    text = re.sub(r"(\d)s/", r"\1*s/", text).replace("2πs", "2π*s").replace("2π", "2*pi")
    return eval(text, {"cos": math.cos, "pi": math.pi, "s": s})


RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


@pytest.mark.gpu
def test_a_gpu_fits_alike() -> None:
    basis, means = basis_of("mult_mod97"), means_of("mult_mod97", 0)
    for of in (fourier_kan, _refit, lambda m, b: trained_fourier_kan(m, b, seed=0)):
        here, there = of(means, basis), of(means.cuda(), basis)
        assert torch.allclose(here.coefficients, there.coefficients.cpu(), atol=1e-9)
        assert formulas(here)[2].text() == formulas(there)[2].text()
