"""Norms that are frozen, matched or scaled at a fork, beside free ones."""

from typing import Any

import numpy as np
from built import sentence, table
from exact import same_share
from lifelike import lifelike
from planted import EMPTY, evidence

from grokscope.stats import share
from grokscope.view.render import latex_of


def test_frozen_and_scaled_norms_are_compared_with_free_ones() -> None:
    runs: dict[str, dict[str, Any]] = {}
    for place, seed in enumerate((42, 0, 1, 2)):
        runs[f"free_x1_s{seed}"] = {"grok": 4000 + 100 * place, "last": 8000}
        runs[f"frozen_x1_s{seed}"] = {"grok": None, "last": 8000}
        log = {"train_accuracy": {1000: 0.2, 1100: 1.0, 8000: 0.3}, "norm": {1000: 15.0}}
        runs[f"scaled0.5_s{seed}"] = {"grok": None, "last": 8000, "log": log}
    made = table("sup-thresholds-mechanism", evidence("threshold", runs, 4))
    free, frozen, scaled = "free norm, λ = 1", "norm frozen at the fork, λ = 1", "weights × 0.5, λ = 1"
    same_share(made.cell(frozen, "Grokked"), 0, 4)
    assert made.cell(frozen, "Grok step (median)").ours == "never"
    assert made.cell(free, "Grok step (median)").ours == np.median([4000, 4100, 4200, 4300])
    assert made.cell(free, "Norm at grokking (median)").ours == 30
    assert made.cell(scaled, "Train accuracy at the first evaluation (median)").ours == 0.2
    assert made.cell(scaled, "Norm at the first evaluation (median)").ours == 15
    assert made.cell(scaled, "Unstable without grokking").ours == share(4, 4).value
    assert made.cell(frozen, "Compared with").ours == free
    assert float(made.cell(frozen, "Log-rank p").ours or 1) < 0.05
    assert made.cell("norm matched to the parent's, λ = 3", "Seeds").ours == "no runs"
    assert made.cell(free, "Log-rank p").ours is None
    assert sentence(made) == (
        "Forks that grok, with the median step: free norm, λ = 1: 4 of 4 at 4,150; "
        "norm frozen at the fork, λ = 1: none of 4."
    )


def test_forks_of_another_run_of_their_parent_are_counted() -> None:
    runs: dict[str, dict[str, Any]] = {"parent_s42": {"grok": 4000, "log": {"norm": {0: 100.0, 1000: 50.0}}}}
    for name, norm in (("free_x1_s42", 50.0), ("frozen_x1_s42", 51.0), ("scaled0.5_s42", 25.0)):
        runs[name] = {"grok": 4000, "last": 8000, "log": {"norm": {1000: norm}}}
    found = table("sup-thresholds-mechanism", evidence("threshold", runs, 4)).notes
    assert found[-1].startswith("1 of 3 forks begin in another run of their parent")
    del runs["frozen_x1_s42"]
    found = table("sup-thresholds-mechanism", evidence("threshold", runs, 4)).notes
    assert not any("another run of their parent" in note for note in found)


def test_without_runs_every_row_says_so_and_the_sentence_too() -> None:
    made = table("sup-thresholds-mechanism", EMPTY)
    assert all(row[1].ours == "no runs" for row in made.rows)
    assert "not known" in sentence(made)


def test_whole_experiments_give_a_sentence_and_letters_that_latex_knows() -> None:
    made = table("sup-thresholds-mechanism", lifelike(4, ("threshold",)))
    assert sentence(made).count(" of 4 at ") == 4
    assert b"U+" not in latex_of(made)
