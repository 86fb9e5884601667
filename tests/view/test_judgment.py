from math import nan

import pytest

from grokscope.errors import InputError
from grokscope.runs.foreign_logs import ForeignLog
from grokscope.timeline import Outcome
from grokscope.view.judgment import judge_log

STEPS = [*range(0, 5001, 500)]


def log(validation, **columns):
    return ForeignLog(
        "mine", {"step": STEPS, "validation_accuracy": validation, **columns}, columns.pop("failed", None)
    )


def test_events_are_those_of_our_own_runs():
    train = [0.1, *[1.0] * 10]
    found = judge_log(log([0.0] * 4 + [1.0, 0.3] + [1.0] * 5, train_accuracy=train))
    assert (found.memorized, found.grokked, found.stable.step, found.stable.dips) == (500, 2000, 3000, 1)
    assert found.outcome is Outcome.UNSTABLE_AFTER
    stable = found.to_dict()["stable"]
    assert (stable["status"], stable["step"], stable["stable_from"]) == ("not_stable", None, 3000)
    assert found.forecast is None
    assert "Later its validation accuracy fell below one half." in found.sentences


def test_columns_that_were_logged_at_other_steps_do_not_make_a_failure():
    train = [1.0 if step % 1000 == 0 else nan for step in STEPS[:-1]] + [nan]
    found = judge_log(log([0.0] * 11, train_accuracy=train))
    assert found.outcome is Outcome.NEVER
    assert (found.forecast, found.why_no_forecast) != (None, "")


def test_what_was_not_logged_is_not_claimed():
    found = judge_log(log([0.0] * 11))
    assert found.memorized is None
    assert not any(sentence.startswith(("It memorised", "It has not memorised")) for sentence in found.sentences)
    assert "not known" in found.sentences[-1]


LEARNT = [min(1.0, step / 500) for step in STEPS]
RATES = {"weight_decay": 1.0, "learning_rate": 0.001, "classes": 97.0}
NOTHING = (
    "it needs λ, η and the number of classes, which the log does not have "
    "(give --weight-decay, --learning-rate and --classes)"
)
EARLY = log([0.02] * 11, train_accuracy=LEARNT, validation_loss=[6.0] * 11)
RISING = log(
    [0.93 * step / 5000 for step in STEPS],
    train_accuracy=LEARNT,
    validation_loss=[3.0 - 2.5 * step / 5000 for step in STEPS],
)
FLAT = log([0.01] * 11, train_accuracy=[0.01] * 11, validation_loss=[4.6] * 11)
SHUFFLED = ForeignLog(
    "shuffled",
    {
        "step": [20 * step for step in STEPS],
        "train_accuracy": LEARNT,
        "validation_accuracy": [0.01] * 11,
        "validation_loss": [9.0] * 11,
    },
)


@pytest.mark.parametrize(
    ("run", "given", "why"),
    [
        (EARLY, {}, NOTHING),
        (
            EARLY,
            {"weight_decay": 1.0, "classes": 97.0},
            "it needs η, which the log does not have (give --learning-rate)",
        ),
        (
            EARLY,
            {"weight_decay": 1.0, "learning_rate": 0.001},
            "it needs the number of classes, which the log does not have (give --classes)",
        ),
        (EARLY, {**RATES, "weight_decay": 100.0}, "λ = 100, fitted to 0.1 to 1"),
        (EARLY, {**RATES, "learning_rate": 0.1}, "η = 0.1, fitted to 0.001"),
        (RISING, {}, NOTHING),
        (FLAT, RATES, "it has not memorised its training data, and all runs fitted to did"),
        (SHUFFLED, RATES, "it is at step 100,000, fitted to steps up to 15,000"),
        (
            log([0.0] * 11, train_accuracy=LEARNT),
            RATES,
            "it needs validation loss, which the log does not have",
        ),
    ],
)
def test_a_run_of_which_too_little_is_known_has_no_forecast_and_says_why(run, given, why):
    found = judge_log(run, given)
    assert (found.forecast, found.why_no_forecast) == (None, why)
    assert f"No forecast: {why}." in found.sentences
    assert found.to_dict()["why_no_forecast"] == why


@pytest.mark.parametrize("run", [EARLY, RISING])
def test_a_forecast_names_its_basis_and_what_is_not_known(run):
    found = judge_log(run, RATES)
    [said] = [sentence for sentence in found.sentences if sentence.startswith("Forecast: ")]
    assert "Basis: tier 5 (λ, η and the step, validation loss), fitted to " in said
    assert "not known are share of the rows that is trained on, batch size" in said
    assert found.to_dict()["forecast"]["outside"]


def test_a_run_about_to_grok_is_forecast_so_and_an_early_one_is_left_open():
    assert "half of such runs by step " in judge_log(RISING, RATES).forecast.sentence
    rising, early = judge_log(RISING, RATES).forecast, judge_log(EARLY, RATES).forecast
    assert rising.probability > 0.9
    assert 0.01 < early.probability < 0.95


def test_an_outcome_has_the_word_that_tables_have():
    assert judge_log(EARLY).to_dict()["outcome"] == "not grokked"
    fallen = log([0.0] * 4 + [1.0, 0.3] + [1.0] * 5, train_accuracy=LEARNT)
    assert judge_log(fallen).to_dict()["outcome"] == "grokked, then unstable"
    assert judge_log(FLAT).to_dict()["outcome"] == "not memorised"


def test_a_failed_run_has_no_forecast():
    failed = ForeignLog("mine", {"step": STEPS, "validation_accuracy": [0.0] * 11}, failed_at=4000)
    assert judge_log(failed).outcome is Outcome.DIVERGED
    assert judge_log(failed).forecast is None


def test_grokking_needs_a_validation_accuracy():
    with pytest.raises(InputError, match="--columns validation_accuracy=NAME"):
        judge_log(ForeignLog("mine", {"step": [0], "train_loss": [1.0]}))
