"""Norms that are held or scaled at a fork, beside free ones."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from built import sentence, table
from exact import same_share
from lifelike import lifelike
from planted import EMPTY, evidence, run

from grokscope.stats import share
from grokscope.studies import Evidence
from grokscope.studies.synchronization.edition import NEW
from grokscope.view.render import latex_of

FREE = "free norm, λ = 1"


def held(changes: Mapping[str, Mapping[str, Any]], n_seeds: int = 4) -> Evidence:
    """Runs of both experiments, those named here alone."""
    specs = NEW["norms"](n_seeds, "float32")
    free = {name: what for name, what in changes.items() if name not in specs}
    found = evidence("threshold", free, n_seeds).records
    return Evidence({**found, "norms": {name: run(specs[name], **changes[name]) for name in changes if name in specs}})


def test_held_and_scaled_norms_are_compared_with_free_ones() -> None:
    runs: dict[str, dict[str, Any]] = {}
    for place, seed in enumerate((42, 123, 0, 1)):
        groks = {"grok": 4000 + 100 * place, "last": 8000}
        runs |= {f"free_s{seed}": groks, f"floor35_s{seed}": {"grok": None, "last": 8000}}
    for place, seed in enumerate((42, 0, 1, 2)):
        runs[f"free_x1_s{seed}"] = {"grok": 4000 + 100 * place, "last": 8000}
        log = {"train_accuracy": {1000: 0.2, 1100: 1.0, 8000: 0.3}, "norm": {1000: 15.0}}
        runs[f"scaled0.5_s{seed}"] = {"grok": None, "last": 8000, "log": log}
    made = table("sup-thresholds-mechanism", held(runs))
    floor, scaled = "norm kept at 35 and more", "weights × 0.5, λ = 1"
    same_share(made.cell(floor, "Grokked"), 0, 4)
    assert made.cell(floor, "Grok step (median)").ours == "never"
    assert made.cell(FREE, "Grok step (median)").ours == np.median([4000, 4100, 4200, 4300])
    assert made.cell(FREE, "Norm at grokking (median)").ours == 30
    assert made.cell(scaled, "Train accuracy at the first evaluation (median)").ours == 0.2
    assert made.cell(scaled, "Norm at the first evaluation (median)").ours == 15
    assert made.cell(scaled, "Unstable without grokking").ours == share(4, 4).value
    assert made.cell(floor, "Compared with").ours == FREE
    for name in (floor, scaled):
        p, adjusted = (float(made.cell(name, column).ours or 1) for column in ("Log-rank p", "Holm-adjusted p"))
        assert p < adjusted < 0.05
    assert made.cell("norm led to 23.5 by 1,500", "Seeds").ours == "no runs"
    assert made.cell("norm of blocks.1 kept", "Seeds").ours == "no runs"
    assert made.cell(FREE, "Log-rank p").ours is None
    assert sentence(made) == (
        "Forks that grok, with the median step: free norm, λ = 1: 4 of 4 at 4,150; norm kept at 35 and more: none of 4."
    )


def test_forks_of_another_run_of_their_parent_are_counted() -> None:
    runs: dict[str, dict[str, Any]] = {"parent_s42": {"grok": 4000, "log": {"norm": {0: 100.0, 1000: 50.0}}}}
    for name, norm in (("free_x1_s42", 50.0), ("free_x3_s42", 51.0), ("scaled0.5_s42", 25.0)):
        runs[name] = {"grok": 4000, "last": 8000, "log": {"norm": {1000: norm}}}
    found = table("sup-thresholds-mechanism", evidence("threshold", runs, 4)).notes
    assert found[-1].startswith("1 of 3 forks begin in another run of their parent")
    del runs["free_x3_s42"]
    found = table("sup-thresholds-mechanism", evidence("threshold", runs, 4)).notes
    assert not any("another run of their parent" in note for note in found)


def test_without_runs_every_row_says_so_and_the_sentence_too() -> None:
    made = table("sup-thresholds-mechanism", EMPTY)
    assert all(row[1].ours == "no runs" for row in made.rows)
    assert "not known" in sentence(made)


def test_free_runs_alone_say_nothing_of_held_norms_and_latex_knows_all_letters() -> None:
    made = table("sup-thresholds-mechanism", lifelike(4, ("threshold",)))
    assert made.cell(FREE, "Seeds").ours == 4
    assert "not known" in sentence(made)
    assert b"U+" not in latex_of(made)
