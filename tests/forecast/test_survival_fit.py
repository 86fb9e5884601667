import contextlib

import numpy as np
from scipy.optimize import check_grad

from grokscope.forecast.survival_fit import fit_survival


def drawn(rows: int = 4000):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 2))
    comes = rng.random(rows) < 1 / (1 + np.exp(-1 - x[:, 1]))
    times = np.exp(7 + 0.5 * x[:, 0] + 0.4 * rng.logistic(size=rows))
    ends = rng.uniform(1000, 20_000, rows)
    came = comes & (times <= ends)
    return x, np.where(came, times, ends), came


def test_gives_back_what_was_planted_from_censored_times():
    x, left, came = drawn()
    fit = fit_survival(x, left, came, np.ones(len(x)), ridge=0.01)
    assert np.allclose(fit.time, [7, 0.5, 0], atol=0.06)
    assert np.allclose(fit.grokking, [1, 0, 1], atol=0.25)
    assert np.isclose(np.exp(fit.spread[0]), 0.4, atol=0.03)


def test_weights_count_like_repeated_rows():
    x, left, came = drawn(60)
    twice = fit_survival(np.repeat(x, 2, 0), np.repeat(left, 2), np.repeat(came, 2), np.ones(120))
    weighted = fit_survival(x, left, came, np.full(60, 2.0))
    assert np.allclose(twice.time, weighted.time, atol=1e-3)


def test_the_gradient_is_that_of_the_likelihood(monkeypatch):
    caught = {}

    def catch(loss, begin, **options):
        caught["loss"], caught["begin"] = loss, begin
        raise InterruptedError

    monkeypatch.setattr("scipy.optimize.minimize", catch)
    x, left, came = drawn(50)
    with contextlib.suppress(InterruptedError):
        fit_survival(x, left, came, np.linspace(0.5, 2, 50))
    loss, begin = caught["loss"], caught["begin"] + np.linspace(-0.2, 0.3, 9)
    assert check_grad(lambda p: loss(p)[0], lambda p: loss(p)[1], begin) < 1e-2


def test_survival_falls_from_one_to_the_share_that_never_groks():
    x, left, came = drawn(500)
    fit = fit_survival(x, left, came, np.ones(500))
    found = fit.survival(x, np.array([0.0, 10.0, 1e3, 1e5, 1e12]))
    assert np.allclose(found[:, 0], 1)
    assert (np.diff(found, axis=1) <= 0).all()
    share = 1 / (1 + np.exp(-np.column_stack([np.ones(500), x]) @ fit.grokking))
    assert np.allclose(found[:, -1], 1 - share, atol=1e-4)
