"""§5.3 and §6: six branches from one checkpoint."""

from collections.abc import Sequence

from grokscope.errors import InputError
from grokscope.law import (
    Ending,
    ForkedRun,
    LawFit,
    fit_law,
)
from grokscope.stats import share
from grokscope.studies.claims.chosen import forks
from grokscope.studies.claims.claim import Claim, Finding, Verdict, graded, near, number, spoken, too_few
from grokscope.studies.evidence import Evidence
from grokscope.studies.tables.reading import seen_every
from grokscope.timeline import Outcome

__all__ = ["CLAIMS", "fitted", "never_groks"]

PRIMES = (53, 97, 131)
SEED = 0
GROKKED = (Outcome.GROKKED, Outcome.UNSTABLE_AFTER)
LAST = "; beside it, the majority of all seeds"


def _branches(evidence: Evidence, decays: Sequence[float], seed: int | None = 42) -> list[ForkedRun]:
    """Forks of the fork study, of one parent or of all."""
    found = forks(evidence.study("fork"), "add_mod97", decays)
    return [run for run in found if seed is None or run.draw == seed]


def _at_printed_looks(evidence: Evidence, decays: Sequence[float]) -> list[ForkedRun]:
    """The branches of the printed run as the paper saw them, every 500 steps."""
    study = {name: seen_every(record) for name, record in evidence.study("fork").items()}
    return [run for run in forks(study, "add_mod97", decays) if run.draw == 42]


def fitted(runs: Sequence[ForkedRun]) -> LawFit | None:
    """Δt = C/λ by the paper's estimator; None if no run grokked after its fork."""
    try:
        return fit_law(runs, "mean", seed=SEED)
    except InputError:  # nothing grokked after its fork
        return None


def _order(evidence: Evidence) -> Finding:
    runs = _branches(evidence, (1.0, 2.0, 3.0), None)
    draws: dict[object, dict[float, float]] = {}
    for run in runs:
        wait = float("inf") if run.steps_to_grok is None else float(run.steps_to_grok)
        draws.setdefault(run.draw, {})[float(run.weight_decay)] = wait
    whole = {draw: cell for draw, cell in draws.items() if len(cell) == 3}
    if 42 not in whole:
        return too_few(len(draws.get(42, {})), 3, "branches of add_mod97_s42")
    strict = {draw: cell[1.0] > cell[2.0] > cell[3.0] for draw, cell in whole.items()}
    weak = whole[42][1.0] > whole[42][3.0]
    beside = f"strictly earlier in {sum(strict.values())} of {len(strict)} parents" if len(strict) > 1 else ""
    value = ", ".join(number(whole[42][decay]) for decay in (1.0, 2.0, 3.0))
    coarse = sorted(_at_printed_looks(evidence, (1.0, 2.0, 3.0)), key=lambda run: run.weight_decay)
    why = f"Seen every 100 steps; every 500, as in Table 4, {', '.join(number(run.steps_to_grok) for run in coarse)}."
    return Finding(value, graded(strict[42], weak), why, 3, beside=beside)


def _constant(evidence: Evidence, decays: Sequence[float], constant: float | int, r_squared: float) -> Finding:
    runs = _branches(evidence, decays)
    if len(runs) < len(decays):
        return too_few(len(runs), len(decays), "branches of add_mod97_s42")
    fit = fitted(runs)
    if fit is None:
        return Finding("none grokked", Verdict.NOT, "No branch grokked after its fork.", len(runs))
    found = fit.parameters["constant"].value
    close = near(found, constant)
    full = close and fit.r_squared >= r_squared - 0.1
    everyone = _branches(evidence, decays, None)
    other = fitted(everyone) if len(everyone) > len(runs) else None
    parents = len({run.draw for run in everyone})
    over = f" over {len(everyone)} branches of {parents} parents"
    beside = "" if other is None else _said(other, spoken(other.parameters["constant"])) + over
    value = _said(fit, number(found))
    coarse = fitted(_at_printed_looks(evidence, decays))
    why = f"{sum(run.ending is Ending.GROKKED for run in runs)} of {len(runs)} branches are in the fit"
    if coarse is not None:
        why += f"; seen every 500 steps, as in Table 9, {_said(coarse, number(coarse.parameters['constant'].value))}"
    why += "."
    return Finding(value, graded(full, close or fit.r_squared >= 0.5), why, len(runs), beside=beside)


def _said(fit: LawFit, constant: str) -> str:
    return f"C = {constant}, R² = {number(fit.r_squared, 2)}"


def _fails(evidence: Evidence) -> Finding:
    runs, everyone = _branches(evidence, (10.0,)), _branches(evidence, (10.0,), None)
    if not runs:
        return too_few(0, 1, "branches of add_mod97_s42 at λ = 10")
    return never_groks(runs, everyone)


def never_groks(runs: Sequence[ForkedRun], everyone: Sequence[ForkedRun]) -> Finding:
    """How many forks never grok, and the share over more of them."""
    failed, unstable = (sum(bool(test(run)) for run in runs) for test in (_no_grok, _unstable))
    found = share(sum(map(_no_grok, everyone)), len(everyone))
    beside = f"share {spoken(found, 2)} over {len(everyone)} runs" if len(everyone) > len(runs) else ""
    verdict = graded(failed == len(runs), failed > len(runs) / 2)
    return Finding(
        f"{failed} of {len(runs)} never grok", verdict, f"{unstable} are unstable.", len(runs), beside=beside
    )


def _no_grok(run: ForkedRun) -> bool:
    return run.steps_to_grok is None


def _unstable(run: ForkedRun) -> bool:
    return run.outcome in (Outcome.UNSTABLE, Outcome.DIVERGED)


def _unstable_after(evidence: Evidence) -> Finding:
    runs, everyone = _branches(evidence, (4.0, 5.0)), _branches(evidence, (4.0, 5.0), None)
    if len(runs) < 2:
        return too_few(len(runs), 2, "branches of add_mod97_s42 at λ = 4 and 5")
    marked = [sum(run.outcome is Outcome.UNSTABLE_AFTER for run in some) for some in (runs, everyone)]
    beside = f"{marked[1]} of {len(everyone)} branches" if len(everyone) > 2 else ""
    groks = sum(run.outcome in GROKKED for run in runs)
    return Finding(f"{marked[0]} of 2", graded(marked[0] == 2, marked[0] == 1), f"{groks} of 2 grok.", 2, beside=beside)


CLAIMS = (
    Claim(
        "fork-order",
        "More weight decay at the fork gives strictly earlier grokking at λ = 1, 2, 3.",
        "§5.3, Table 4, Figure 3",
        "3,000, 1,500, 1,000",
        "Δt of the branches of add_mod97_s42 falls strictly over λ = 1, 2, 3 (never is infinite): reproduced; from 1 "
        "to 3: partly; else not; beside it, the parents in which it falls strictly.",
        "tab-wd",
        _order,
    ),
    Claim(
        "fork-constant-stable",
        "The stable branches follow Δt = 3,000/λ.",
        "§5.3, §6, Table 9",
        "C = 3,000, R² = 1.00",
        "C = mean(λΔt) of add_mod97_s42 over λ = 1, 2, 3 within 20 % of 3,000 with R² ≥ 0.90: reproduced; either C so "
        "or R² ≥ 0.5: partly; else not.",
        "tab-timing",
        lambda evidence: _constant(evidence, (1.0, 2.0, 3.0), 3000, 1.0),
    ),
    Claim(
        "fork-constant-all",
        "All grokked branches follow Δt = 3,600/λ.",
        "§6, Table 9",
        "C = 3,600, R² = 0.81",
        "C = mean(λΔt) of add_mod97_s42 over λ = 1 to 5 within 20 % of 3,600 with R² ≥ 0.71: reproduced; either C so "
        "or R² ≥ 0.5: partly; else not.",
        "tab-timing",
        lambda evidence: _constant(evidence, (1.0, 2.0, 3.0, 4.0, 5.0), 3600, 0.81),
    ),
    Claim(
        "fork-10-fails",
        "The branch with λ = 10 never groks.",
        "§5.3, Table 4",
        "‡",
        "The branch of add_mod97_s42 with λ = 10 does not grok within 8,000 steps: reproduced; else not.",
        "tab-wd",
        _fails,
    ),
    Claim(
        "fork-4-5-unstable",
        "The branches with λ = 4 and 5 grok and then become unstable.",
        "§5.3, Table 4",
        "†, †",
        "Both branches of add_mod97_s42 grok and later have validation accuracy below 0.5: reproduced; one: partly; "
        "else not.",
        "tab-wd",
        _unstable_after,
    ),
)
