"""What claims say of the paper's own runs and of all runs is what the tables show of them: one number, two ways."""

from typing import Any

import pytest
from paper_runs import evidence

from grokscope.studies import Evidence, Quantity
from grokscope.studies.synchronization import STUDY, readings
from grokscope.studies.synchronization.ablation import RUNS, drops
from grokscope.studies.synchronization.crossprime import task_law, times_at
from grokscope.studies.synchronization.events import lead_signs, mean_lead
from grokscope.studies.synchronization.formulas import fit
from grokscope.studies.synchronization.groups import SIX, seeds_at
from grokscope.studies.synchronization.restricted_loss import fsd_first, loss_leads
from grokscope.studies.synchronization.threshold import THRESHOLD, at_decay, norm_rate
from grokscope.studies.synchronization.timing_law import FITTED, branch_law

CLAIMS = {claim.name: claim for claim in STUDY.claims}
OWN: list[tuple[str, str, Quantity, str]] = [
    ("lead-mean", "mean lead", mean_lead(readings.REPORTED_ADDITIONS), "value"),
    ("lead-mean-clustered", "mean over primes", mean_lead(readings.REPORTED_ADDITIONS, by_prime=True), "value"),
    ("lead-signs", "positive", lead_signs(readings.REPORTED_ADDITIONS), "positive"),
    ("fsd-before-restricted", "FSD first", fsd_first(readings.REPORTED_ADDITIONS), "FSD first"),
    ("restricted-never-leads", "mean lead", loss_leads(readings.REPORTED_ADDITIONS), "mean lead"),
    ("fork-constant-all", "C", branch_law(FITTED), "C"),
    ("fork-constant-all", "R²", branch_law(FITTED), "R²"),
    ("s5-mean-lead", "mean lead", mean_lead(SIX, cadence=None), "value"),
]
ALL: list[tuple[str, str, Quantity, str]] = [
    ("lead-mean", "mean lead", mean_lead(readings.ADDITIONS), "value"),
    ("lead-signs", "positive", lead_signs(readings.ADDITIONS), "positive"),
    ("ablation-drops", "median mlp0", drops(RUNS), "mlp0"),
    ("kan-fails-at-131", "median", fit("kan_r2", readings.all_seeds("add_mod131")), "value"),
    ("law-fits-three-primes", "R² (p = 53)", task_law("add_mod53"), "R²"),
    ("law-constant-falls", "C (p = 97)", task_law("add_mod97"), "C"),
    ("table-10-cells", "Δt (p = 53, λ = 2)", times_at("add_mod53", 2.0), "mean"),
    ("table-10-spread-131", "Δt (λ = 3)", times_at("add_mod131", 3.0), "std"),
    ("threshold-norm", "τ", THRESHOLD, "value"),
    ("threshold-variation", "CV", THRESHOLD, "variation"),
    ("decay-rate", "κ (λ = 2)", norm_rate(at_decay(2.0)), "κ"),
    ("s5-mean-lead", "mean lead", mean_lead(seeds_at(0.7), cadence=None), "value"),
]


def numbers(name: str, found: Evidence, is_own: bool) -> dict[str, Any]:
    estimand = CLAIMS[name].estimand
    sample = estimand.sample(found.records)
    chosen = sample.only({one.name: one.reported for one in estimand.strata}) if is_own else sample
    assert chosen is not None
    return estimand.compute(chosen.values)


@pytest.mark.parametrize("follows", [True, False])
@pytest.mark.parametrize(("claim", "part", "quantity", "cell"), OWN)
def test_of_the_papers_own_runs(claim: str, part: str, quantity: Quantity, cell: str, follows: bool) -> None:
    found = evidence(follows)
    shown = found.measure(quantity).number(cell)
    assert float(numbers(claim, found, is_own=True)[part]) == pytest.approx(shown, nan_ok=True)


@pytest.mark.parametrize("follows", [True, False])
@pytest.mark.parametrize(("claim", "part", "quantity", "cell"), ALL)
def test_of_all_runs(claim: str, part: str, quantity: Quantity, cell: str, follows: bool) -> None:
    found = evidence(follows)
    shown = found.measure(quantity).number(cell)
    assert float(numbers(claim, found, is_own=False)[part]) == pytest.approx(shown, nan_ok=True)
