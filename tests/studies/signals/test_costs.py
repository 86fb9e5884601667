"""What an evaluation costs: every signal has a cost, and the file is read as it was written."""

from pathlib import Path

import pytest

from grokscope.errors import InputError
from grokscope.studies.signals.catalogue import SIGNALS
from grokscope.studies.signals.costs import Costs, measure_costs, read_costs, save_costs
from grokscope.studies.signals.experiments import quick_runs


def test_every_signal_has_a_cost_and_the_commutator_costs_more_than_a_step(tmp_path: Path) -> None:
    [run, *_] = quick_runs()["groks"].values()
    found = measure_costs(run, slots=2, steps=4)
    assert all((found.of(one) or 0) > 0 for one in SIGNALS)
    assert found.steps["commutator"] > 1, "it takes twenty gradients"
    save_costs(found, tmp_path / "costs.json")
    assert read_costs(tmp_path / "costs.json") == found


def test_what_is_no_file_of_costs_is_named(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    assert read_costs(path) is None
    path.write_text('{"steps": {"log": "many"}}')
    with pytest.raises(InputError, match=r"the costs in .*costs.json' cannot be read"):
        read_costs(path)
    assert Costs().of(SIGNALS[0]) is None
