"""Forecasts of runs of which the truth is known: the closed form is the run, and the page is of the stored runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from grokscope.forecast import load_forecaster, run_prefix
from grokscope.jobs import run_all
from grokscope.runs import Store, open_runs
from grokscope.runs.packing import unpack_records
from grokscope.specs import Cadence
from grokscope.studies.foresight.oracles import (
    RECORDS,
    label_runs,
    ridge_errors,
    ridge_runs,
    ridge_spec,
    shuffled_probabilities,
)

STORED = Path(__file__).parents[3] / "results" / "foresight"


def test_the_closed_form_is_what_a_trained_run_logs(tmp_path: Path) -> None:
    spec = ridge_spec(0.08, 1)
    short = replace(spec, training=replace(spec.training, steps=60), measurements=Cadence(every=20))
    run_all([short], Store(tmp_path), compiled=False)
    log = open_runs(tmp_path)[0].record.evaluations
    [one] = ridge_runs((0.08,), 1)
    for name in ("train_loss", "validation_loss", "norm"):
        assert log[name] == pytest.approx(one.case.run.column(name)[:4].tolist(), rel=5e-3), name


def test_what_is_fitted_to_other_penalties_knows_when_a_run_groks_and_what_is_not_says_so() -> None:
    runs = ridge_runs((0.03, 0.04, 0.06, 0.08), 4)
    found = {one.name.partition(",")[0]: one for one in ridge_errors(runs)}
    assert max(found["hazard-5"].errors.values()) < 0.15
    assert max(found["clock"].errors.values()) < 0.2
    assert found["shipped"].errors[0.5] > 2 * found["hazard-5"].errors[0.5]
    outside = load_forecaster(5).predict([runs[0].case.run.until(200)], 2000)[0].outside
    assert {"no transformer", "trained on the squared error"} <= {*outside}


def test_on_shuffled_labels_the_probability_falls_as_the_page_says_and_on_true_ones_it_does_not() -> None:
    records = unpack_records(STORED / RECORDS)
    assert {record.spec for record in records} == {*label_runs()}
    assert all(record.outcome.memorized for record in records)
    found = shuffled_probabilities(
        (record.spec.shuffled_labels, run_prefix(record.spec, record.evaluations)) for record in records
    )
    means = [mean for _, mean, _ in found[True]]
    assert means == sorted(means, reverse=True)
    true = [mean for _, mean, _ in found[False]]
    assert means[-1] < 0.15 < 0.9 < min(true)
    assert true[-1] > 0.99, "it does not fall, wherever it begins"
    assert all(high - low > 0.25 for (step, low, _), high in zip(found[True], true, strict=True) if step >= 1000)
    page = (STORED / "oracles.md").read_text()
    for (step, mean, most), (_, true, _) in zip(found[True], found[False], strict=True):
        assert f"| {step:,} | {mean:.2f} | {most:.2f} | {true:.2f} |" in page
