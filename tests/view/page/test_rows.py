"""A run as a row of the table."""

from dataclasses import replace

import pytest
from page_runs import synthetic_records

from grokscope.runs import RunOutcome, RunRecord
from grokscope.specs import Architecture
from grokscope.view.page import ShownRun
from grokscope.view.page.rows import row_of

STEPS = [0, 100, 200, 300]


def ended(train: list[float], validation: list[float]) -> dict[str, object]:
    """The row of a finished run with these accuracies."""
    record = synthetic_records(1)[0]
    log = {"step": STEPS, "train_accuracy": train, "validation_accuracy": validation}
    return row_of(ShownRun("one", RunRecord(record.spec, RunOutcome("never"), log, {})))


@pytest.mark.parametrize(
    ("train", "outcome"),
    [
        ([0.1, 0.2, 0.3, 0.2], "not memorised"),  # it never learnt, so it cannot have become unstable
        ([0.1, 1.0, 1.0, 0.2], "unstable"),
        ([0.1, 1.0, 1.0, 1.0], "not grokked"),
    ],
)
def test_a_run_that_never_memorised_is_not_unstable(train: list[float], outcome: str) -> None:
    assert ended(train, [0.1, 0.1, 0.1, 0.1])["outcome"] == outcome


def test_dips_after_grokking_are_counted() -> None:
    row = ended([0.1, 1.0, 1.0, 1.0], [0.1, 1.0, 0.2, 1.0])
    assert (row["outcome"], row["dips"], row["longest_dip"]) == ("grokked, then unstable", 1, 100)
    row = ended([0.1, 1.0, 1.0, 1.0], [0.1, 0.2, 1.0, 1.0])
    assert (row["outcome"], row["dips"], row["longest_dip"]) == ("grokked", 0, None)
    assert ended([0.1, 1.0, 1.0, 1.0], [0.1] * 4)["dips"] is None


def test_whether_a_run_stayed_grokked_is_reported() -> None:
    row = ended([1.0] * 4, [0.1, 1.0, 0.2, 1.0])
    assert (row["stable"], row["stability"]) == (None, "not_stable")
    assert "1 dip of 100 steps" in str(row["stability_text"])
    assert ended([1.0] * 4, [0.1, 1.0, 1.0, 1.0])["stability"] == "censored"  # 200 steps are too few
    assert ended([1.0] * 4, [0.1] * 4)["stability_text"] == ""


@pytest.mark.parametrize(("mlp", "site"), [("on", "mlp0"), ("dropped", "attn0")])
def test_the_site_of_fsd_is_named_as_ablations_name_it(mlp: str, site: str) -> None:
    record = synthetic_records(1)[0]
    spec = replace(record.spec, architecture=Architecture(mlp=mlp))
    assert row_of(ShownRun("one", replace(record, spec=spec)))["site"] == site


def test_what_is_unusual_of_a_run_is_named_once() -> None:
    record = synthetic_records(1)[0]
    assert row_of(ShownRun("one", record))["other"] == ""
    training = replace(record.spec.training, weight_decay=3.0, dropout=0.1, gradient="grokfast")
    spec = replace(record.spec, training=training, architecture=Architecture(layers=1, biases=False))
    row = row_of(ShownRun("one", replace(record, spec=spec)))
    assert row["other"] == "biases = false, dropout = 0.1, gradient = grokfast"
    assert row["model"] == "1 × 128, 4 heads, mlp 512"


def test_somebody_elses_model_is_called_by_its_name() -> None:
    record = synthetic_records(1)[0]
    row = row_of(ShownRun("one", replace(record, spec=replace(record.spec, model="my_package.MLP"))))
    assert (row["model"], row["site"]) == ("my_package.MLP", "")
