"""The law with censored runs: planted constants are found again, and the criteria are those of the fits."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from built import sentence, table
from exact import same_clustered_share, same_share
from planted import EMPTY, evidence

from grokscope.law import fit_censored, forked_run
from grokscope.studies.synchronization.experiments import EXPERIMENTS

ROW = "add_mod97, from the fork"


def forks(seed: int, budget: int, failed: tuple[str, ...] = (), crossed: int = 1000) -> dict[str, dict[str, Any]]:
    """Forks of p = 97 with Δt around 3,000/λ, watched only up to a budget."""
    generator = np.random.default_rng(seed)
    found = {}
    for name, spec in EXPERIMENTS["crossprime"](12, "float32").items():
        if spec.task == "add_mod97" and spec.fork:
            time = 3000 / spec.training.weight_decay * np.exp(0.2 * generator.normal())
            grok = 1000 + int(np.ceil(time / 100)) * 100
            late = grok > budget or name in failed
            found[name] = {
                "grok": None if late else grok,
                "sync": crossed,
                "last": budget,
                "learnt": name not in failed,
            }
    return found


def test_censored_runs_pull_the_law_back_to_the_planted_constant() -> None:
    runs = forks(0, 4000, failed=("add_mod97_d0_x5",))
    found = table("sup-law", evidence("crossprime", runs, 12))
    within, dropped = found.cell(ROW, "C, censored runs in"), found.cell(ROW, "C, censored runs dropped")
    assert within.interval is not None
    assert within.interval[0] < 3000 < within.interval[1]
    assert float(dropped.ours or 0) < float(within.ours or 0)
    late = sum(what["grok"] is None for what in runs.values()) - 1
    assert late >= 3
    draws = sorted({name.rpartition("_x")[0] for name in runs})
    by_draw = [sum(what["grok"] is None for name, what in runs.items() if name.startswith(f"{d}_x")) for d in draws]
    failed = [int(draw == "add_mod97_d0") for draw in draws]
    censored = [count - one for count, one in zip(by_draw, failed, strict=True)]
    same_clustered_share(found.cell(ROW, "Not yet grokked (censored)"), censored, 4)
    same_clustered_share(found.cell(ROW, "Unstable (left out)"), failed, 4)
    assert found.cell(ROW, "Δt (median steps)").interval is None, "forks of one parent share their fate"
    assert found.cell(ROW, "In the fit").ours == 47
    assert found.cell(ROW, "α, censored runs in").ours == pytest.approx(1, abs=0.15)
    same_share(found.cell("add_mod97, λ = 1", "Not yet grokked (censored)"), late, 12)
    assert found.cell("add_mod53, from the fork", "Forks").ours == "no runs"


def test_information_criteria_are_corrected_for_few_runs() -> None:
    found = evidence("crossprime", forks(1, 8000), 12)
    runs = [forked_run(r.spec, r.timeline) for r in found.experiment("crossprime").values() if r.spec.fork]
    plain, power, offset = (fit_censored(runs, f) for f in ("inverse", "power", "offset"))  # type: ignore[arg-type]

    def corrected(aic: float, k: int) -> float:
        return aic + 2 * k * (k + 1) / (48 - k - 1)

    made = table("sup-law", found)
    for name, fit in (("C λ^−α", power), ("a + C/λ", offset)):
        expected = corrected(fit.aic, 3) - corrected(plain.aic, 2)
        assert made.cell(ROW, f"ΔAICc ({name} minus C/λ)").ours == pytest.approx(expected, abs=1e-6)
    assert made.cell(ROW, "C, censored runs dropped") == made.cell(ROW, "C, censored runs in")
    means = [np.mean([float(r.steps_to_grok or 0) for r in runs if r.weight_decay == d]) * d for d in (1, 2, 3, 5)]
    paper = made.cell(ROW, "C, the paper's mean(λΔt)")
    assert paper.ours == pytest.approx(np.mean(means))
    assert replace(table("tab-crossprime", found).cell("97", "C_p"), paper=None) == paper


def test_a_time_from_the_crossing_is_shorter_by_the_steps_to_it() -> None:
    found = table("sup-law", evidence("crossprime", forks(1, 8000, crossed=1300), 12))
    runs = [what["grok"] for what in forks(1, 8000).values()]
    fork, crossing = (
        found.cell(f"add_mod97, from the {of}", "Δt (median steps)").ours for of in ("fork", "FSD crossing")
    )
    assert fork == np.median(runs) - 1000
    assert crossing == np.median([grok - 1300 for grok in runs if grok > 1300])
    before = sum(grok <= 1300 for grok in runs)
    assert found.cell("add_mod97, from the FSD crossing", "Grokked before").ours == before
    never = table("sup-law", evidence("crossprime", forks(1, 8000, crossed=10**6), 12))
    assert never.cell("add_mod97, from the FSD crossing", "Forks").ours == "no runs"


def test_without_runs_every_row_says_so_and_the_sentence_too() -> None:
    made = table("sup-law", EMPTY)
    assert all(row[1].ours == "no runs" for row in made.rows)
    assert "not known" in sentence(made)
