from dataclasses import fields, replace

import numpy as np
import pytest

from grokscope.errors import InputError
from grokscope.forecast import CONFIGURATION, Prefix, run_configuration, run_prefix
from grokscope.specs import Cadence, Fork, RunSpec, Training

LOG = {
    "step": [0, 100, 200],
    "train_accuracy": [0.1, 0.995, 1.0],
    "validation_accuracy": [0.0, 0.1, 0.97],
    "norm": [90.0, 80.0, 70.0],
}


def test_what_tells_the_future_is_not_in_the_configuration():
    spec = RunSpec()
    changed = [
        spec.with_seed(7),
        replace(spec, training=replace(spec.training, steps=99)),
        replace(spec, checkpoints=Cadence(every=7)),
        replace(spec, measurements=Cadence(every=7)),
        replace(spec, shuffled_labels=True),
        replace(spec, task="random97"),
        replace(spec, precision="tf32"),
    ]
    assert all(run_configuration(one) == run_configuration(spec) for one in changed)
    assert {field.name for field in fields(Prefix)} == {"steps", "columns", "configuration"}


def test_configurations_name_every_value():
    assert run_configuration(RunSpec()).keys() == CONFIGURATION.keys()
    assert np.isnan(run_configuration(replace(RunSpec(), task="gone.npz"))["train_rows"])
    assert run_configuration(RunSpec(training=Training(batch_size=None)))["batch_size"] == 2822


def test_an_earlier_prefix_has_no_later_row():
    run = run_prefix(RunSpec(), LOG, until=150)
    assert run.step == 100
    assert run.memorized == 100
    assert run.grokked is None
    assert all(len(values) == 2 for values in run.columns.values())
    assert run_prefix(RunSpec(), LOG).grokked == 200


@pytest.mark.parametrize(
    ("steps", "columns", "words"),
    [([], {}, "at least one evaluation"), ([0, 0], {}, "must rise"), ([0, 1], {"norm": np.zeros(3)}, "norm has 3")],
)
def test_rejects_what_is_no_run(steps, columns, words):
    with pytest.raises(InputError, match=words):
        Prefix(np.array(steps, dtype=np.int64), columns)


def test_a_fork_and_a_rule_for_decay_change_it_and_of_a_foreign_model_little_is_known():
    fork = replace(RunSpec(), fork=Fork("0" * 16, 100))
    scheduled = RunSpec(training=Training(weight_decay_schedule=((100, 2.0),)))
    changed = [run_configuration(one)["changes_decay"] for one in (RunSpec(), fork, scheduled)]
    assert changed == [0.0, 1.0, 1.0]
    foreign = run_configuration(replace(RunSpec(), model="theirs"))
    known = {name for name, value in foreign.items() if not np.isnan(value)}
    assert known == {"weight_decay", "train_fraction", "train_rows", "classes"}
