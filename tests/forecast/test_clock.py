import numpy as np

from grokscope.forecast import ClockForecaster, Prefix, decay_clock


def fresh(decay: float) -> Prefix:
    return Prefix(np.array([0]), {}, {"weight_decay": decay, "learning_rate": 1e-3})


def test_halving_the_decay_doubles_the_time():
    fast, slow = ClockForecaster().predict([fresh(2.0), fresh(1.0)], 1000)
    assert np.isclose(slow.median, 2 * fast.median, rtol=0.02)
    assert np.isclose(slow.median, 3400, rtol=0.02)


def test_the_clock_follows_a_decay_that_changes():
    run = Prefix(
        np.array([0, 100, 200]),
        {"weight_decay": np.array([1.0, 3.0, 3.0])},
        {"weight_decay": 1.0, "learning_rate": 0.1},
    )
    assert np.allclose(decay_clock(run), [0, 10, 40])


def test_without_decay_it_says_never():
    for run in (fresh(0.0), Prefix(np.array([0]), {})):
        [found] = ClockForecaster().predict([run], 10**5)
        assert (found.probability, found.median) == (0.0, np.inf)


def test_waiting_in_vain_tells_something():
    young = fresh(1.0)
    old = Prefix(np.array([0, 3400]), {}, young.configuration)
    first, second = ClockForecaster().predict([young, old], 1000)
    assert second.probability > first.probability
    assert second.step + second.median > first.median
