"""Changes of what the paper leaves open, tested against the default and corrected for their number."""

from typing import Any

import numpy as np
import pytest
import scipy.stats
from built import sentence, table
from exact import holm, same_share
from lifelike import lifelike
from planted import EMPTY, evidence

from grokscope.studies.synchronization.experiments import EXPERIMENTS
from grokscope.view.table import Cell


def test_changes_are_tested_against_the_default_and_corrected() -> None:
    generator = np.random.default_rng(5)
    shift = {"default": 3000, "beta2_0.98": 3000, "dropout_0.1": 6000, "clip_1": 3600}
    runs: dict[str, dict[str, Any]] = {}
    for name in EXPERIMENTS["sensitivity"](10, "float32"):
        change = name.rpartition("_s")[0]
        if change in shift:
            runs[name] = {"grok": shift[change] + 100 * int(generator.integers(-9, 9)), "sync": 1000}
    runs["clip_1_s0"]["grok"] = None
    made = table("sup-sensitivity", evidence("sensitivity", runs, 10))
    titles = {"beta2_0.98": "β₂ = 0.98", "dropout_0.1": "dropout 0.1", "clip_1": "gradient clipped to 1"}

    def sample(change: str) -> scipy.stats.CensoredData:
        steps = [what["grok"] for name, what in runs.items() if name.startswith(f"{change}_s")]
        return scipy.stats.CensoredData([s for s in steps if s], right=[15_000 for s in steps if s is None])

    expected = [scipy.stats.logrank(sample(change), sample("default")).pvalue for change in titles]
    assert [made.cell(title, "Log-rank p").ours for title in titles.values()] == pytest.approx(expected)
    assert [made.cell(title, "Holm-adjusted p").ours for title in titles.values()] == pytest.approx(holm(expected))
    same_share(made.cell("gradient clipped to 1", "Grokked"), 9, 10)
    same_share(made.cell("gradient clipped to 1", "Positive lead"), 9, 9)
    assert made.cell("causal attention", "Seeds").ours == "no runs"
    assert made.cell("default", "Log-rank p") == Cell()
    assert "dropout 0.1" in sentence(made)
    assert "β₂" not in sentence(made)


def test_where_no_change_differs_the_nearest_is_named() -> None:
    made = table("sup-sensitivity", lifelike(4, ("sensitivity",)))
    assert "no change is shown to shift it, the nearest being " in sentence(made)


def test_without_runs_every_row_says_so_and_the_sentence_too() -> None:
    made = table("sup-sensitivity", EMPTY)
    assert all(row[1].ours == "no runs" for row in made.rows)
    assert "not known" in sentence(made)
