"""Where a run is heading, on its page: its forecasts so far, drawn and told, and growing while it trains."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_pages import downloaded, opened, rows_of
from test_live import server_of, until

from grokscope.forecast import forecast_fan, run_prefix
from grokscope.runs import RunOutcome, Store
from grokscope.specs import RunSpec
from grokscope.view.page import source_of, write_page

pytestmark = pytest.mark.browser
USUAL = RunSpec("add_mod97", 0.4)
LAST = USUAL.training.steps


def evaluation(step: int) -> dict[str, float]:
    """A run like those that the forecasters were fitted to, whose validation loss falls."""
    loss = float(6 * np.exp(-step / 2500))
    known = {"train_accuracy": float(step > 200), "validation_accuracy": 0.05, "train_loss": 0.01, "norm": 60.0}
    return {"step": step, **known, "validation_loss": loss, "fsd": 0.2, "rank": 9.0}


def begun(folder: Path, last: int, spec: RunSpec = USUAL) -> Any:
    run = Store(folder).add(spec)
    for step in range(0, last + 1, 100):
        run.append(evaluation(step))
    return run


def points(page: Any, figure: str) -> int:
    """How many forecasts a figure's line has."""
    drawn = page.locator(f"#figure-{figure} path[fill=none]").first.get_attribute("d")
    return int(drawn.count("L")) + 1


def test_the_fan_of_a_run_is_its_forecasts_and_says_where_they_may_not_hold(page: Any, tmp_path: Path) -> None:
    begun(tmp_path / "runs", 3000)
    strange = replace(USUAL, training=replace(USUAL.training, weight_decay=30.0))
    begun(tmp_path / "runs", 1000, strange)
    path = tmp_path / "report.html"
    source = source_of(tmp_path / "runs")
    write_page(path, source)
    usual, other = sorted(source.runs, key=lambda run: run.record.spec.training.weight_decay or 0)
    fan = forecast_fan(run_prefix(USUAL, usual.record.evaluations), LAST)
    opened(page, path.as_uri(), "run", f"run={USUAL.content_hash}")
    assert page.inner_text("#told-forecast").startswith(f"It {fan.now.sentence}.")
    assert points(page, "chance") == points(page, "fan") == len(fan.forecasts)
    rows = rows_of(downloaded(page, "#figure-fan .tools button"))[1:]
    assert [int(row[0]) for row in rows] == [one.step for one in fan.forecasts]
    assert [float(row[1]) for row in rows] == pytest.approx([one.probability for one in fan.forecasts], abs=1e-4)
    assert [float(row[4]) for row in rows] == pytest.approx(fan.at_level(0.5), abs=1)
    assert "may not hold" not in page.inner_text("#figure-chance figcaption")
    opened(page, path.as_uri(), "run", f"run={other.record.spec.content_hash}")
    assert "This may not hold for it: λ = 30, fitted to 0.1 to 1" in page.inner_text("#figure-chance figcaption")
    page.click("#figure-fan button.log")
    assert "Infinity" not in page.inner_html("#figure-fan")
    assert page.complaints == []


def test_the_fan_grows_as_the_run_is_evaluated(page: Any, tmp_path: Path) -> None:
    run = begun(tmp_path, 2000)
    with server_of(tmp_path) as address:
        page.goto(f"{address}#/run?run={USUAL.content_hash}")
        until(page, "document.querySelector('#figure-fan path[fill=none]') !== null")
        before = points(page, "fan")
        for step in range(2100, 4001, 100):
            run.append(evaluation(step))
        whole = len(forecast_fan(run_prefix(USUAL, run.record().evaluations), LAST).forecasts)
        assert whole > before
        drawn = "document.querySelector('#figure-fan path[fill=none]').getAttribute('d').split('L').length"
        until(page, f"{drawn} === {whole}")
        run.finish(RunOutcome("never"))
        until(page, "document.getElementById('told-forecast').textContent.startsWith('It has ended')")
    assert page.complaints == []
