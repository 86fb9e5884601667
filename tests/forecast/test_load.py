import subprocess
import sys

import numpy as np
from planted_ends import planted_cases

from grokscope.forecast import SIGNALS, Prefix, doubts_of, forecast_runs, forecast_to, load_forecaster
from grokscope.forecast.hazard import COLUMNS
from grokscope.forecast.load import available_tier

RUN = planted_cases(cells=1, seeds=1, never=0)[0].run.until(1500)


def test_each_tier_has_a_forecaster_that_reads_no_more():
    assert [load_forecaster(tier).tier for tier in range(6)] == [0, 1, 2, 2, 2, 5]
    for tier in range(6):
        assert load_forecaster(tier).provenance["runs"] > 500


def test_the_tier_is_the_highest_that_the_columns_allow():
    names = ("validation_loss", "validation_accuracy", "norm", "train_loss", "train_accuracy")
    kept = dict(RUN.columns)
    tiers = []
    for name in names:
        tiers.append(available_tier(Prefix(RUN.steps, kept, RUN.configuration)))
        kept = {column: values for column, values in kept.items() if column != name}
    assert (tiers, available_tier(Prefix(RUN.steps, kept))) == ([5, 5, 2, 1, 1], 0)


def test_a_run_is_forecast_alike_alone_and_beside_others():
    bare = Prefix(RUN.steps, {"norm": RUN.columns["norm"]}, RUN.configuration)
    both = forecast_runs([RUN, bare], 5000)
    assert both == [*forecast_runs([RUN], 5000), *forecast_runs([bare], 5000)]
    assert forecast_to([RUN, bare], [5000, 900]) == [both[0], *forecast_runs([bare], 900)]


def test_forecasting_loads_no_torch():
    code = "import sys, grokscope.forecast, grokscope.forecast.benchmark; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_run_unlike_those_fitted_to_says_how():
    strange = Prefix(RUN.steps, RUN.columns, {**RUN.configuration, "weight_decay": 30.0, "is_transformer": 0.0})
    [found] = forecast_runs([strange], 1000)
    assert found.outside == ("λ = 30, fitted to 0.1 to 1", "no transformer")
    unknown = Prefix(np.array([0, 100]), {"norm": np.array([9.0, 8.0])})
    *_, last = forecast_runs([unknown], 1000)[0].outside
    assert last.startswith("not known are λ, η, share of the rows")


def test_a_run_that_has_not_memorised_is_unlike_those_fitted_to():
    flat = {**RUN.columns, "train_accuracy": np.full(len(RUN.steps), 0.01)}
    [found] = forecast_runs([Prefix(RUN.steps, flat, RUN.configuration)], 1000)
    assert found.outside == ("it has not memorised its training data, and all runs fitted to did",)
    del flat["train_accuracy"]
    [found] = forecast_runs([Prefix(RUN.steps, flat, RUN.configuration)], 1000)
    assert found.outside[0].startswith("whether it memorised its training data is not known")


def test_a_forecast_names_what_was_read_and_which_runs_it_was_fitted_to():
    [found] = forecast_runs([RUN], 1000)
    assert found.outside == ()
    assert found.basis.startswith("tier 5 (λ, η and the step, validation loss), fitted to ")
    assert f"{load_forecaster(5).provenance['runs']:,} runs" in found.basis
    assert found.to_dict()["basis"] == found.basis


def test_what_a_forecaster_needs_and_a_run_lacks_is_named():
    assert doubts_of(RUN) == ((), ())
    few = {name: values for name, values in RUN.columns.items() if name != "validation_loss"}
    assert doubts_of(Prefix(RUN.steps, few)) == (("λ", "η", "the number of classes", "validation loss"), ())


def test_every_signal_that_a_stored_forecaster_reads_names_its_columns():
    for tier in range(6):
        for name in load_forecaster(tier).signals:
            assert SIGNALS[name][0] == 0 or name in COLUMNS
