import numpy as np
from planted_ends import planted_cases

from grokscope.forecast import SIGNALS, Prefix, signals_at

RUN = planted_cases(cells=1, seeds=1, never=0)[0].run


def test_a_signal_that_was_not_measured_is_no_number_and_others_are():
    found = dict(zip(SIGNALS, signals_at(RUN.until(2000)), strict=True))
    assert {name for name, value in found.items() if np.isnan(value)} == {
        *("log_rank", "fsd", "log_share", "share_slope", "log_update", "update_cosine"),
        *("log_restricted", "spectral_entropy"),
        *("embedding_entropy", "logit_map_fsd", "log_participation"),
        *(name for name, (tier, _) in SIGNALS.items() if tier in (3, 4)),
    }
    assert np.isnan(signals_at(Prefix(np.array([0]), {}))).sum() == len(SIGNALS) - 1  # but for the time


def test_slopes_are_those_of_power_laws_at_any_cadence():
    for every in (50, 100, 400):
        steps = np.arange(0, 8001, every)
        run = Prefix(
            steps, {"norm": 100 * np.maximum(steps, 1.0) ** -0.3, "validation_loss": np.maximum(steps, 1.0) ** 2}
        )
        slopes = signals_at(run, ["norm_slope", "loss_slope"])
        assert np.allclose(slopes, [-0.3, 2.0], rtol=0.05)


def test_one_spike_moves_no_level():
    columns = {name: values.copy() for name, values in RUN.columns.items()}
    columns["train_loss"][15] = 1e3
    spiked = Prefix(RUN.steps, columns, RUN.configuration)
    names = ["log_train_loss"]
    assert abs(signals_at(spiked.until(1800), names)[0] - signals_at(RUN.until(1800), names)[0]) < 0.1


def test_signals_of_activations_are_levels_and_slopes_of_their_columns():
    steps = np.arange(0, 8001, 100)
    columns = {
        "train_share": 0.1 + 0.05 * np.log(np.maximum(steps, 1.0)),
        "output_entropy": 2.0 * np.maximum(steps, 1.0) ** -0.5,
    }
    run = Prefix(steps, columns | {"train_margin": np.full(len(steps), 3.0)})
    share, share_slope, slope, margin = signals_at(
        run, ["train_share", "train_share_slope", "entropy_slope", "log_margin"]
    )
    assert abs(share - (0.1 + 0.05 * np.log(7200))) < 1e-3
    assert (abs(share_slope - 0.05) < 0.01, abs(slope + 0.5) < 0.05) == (True, True)
    assert abs(margin - np.log(3)) < 1e-12
