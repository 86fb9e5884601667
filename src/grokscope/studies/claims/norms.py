"""§6, the threshold mechanism: the norm at which runs grok, how fast it falls, and what scaling does."""

from itertools import pairwise
from math import isnan
from statistics import pstdev

from grokscope.law import Ending, norm_decay, threshold_norm
from grokscope.studies.synchronization.experiments import DECAYS
from grokscope.studies.claims.chosen import forks, known, mean
from grokscope.studies.claims.claim import Claim, Finding, Verdict, graded, inconsistent, near, number, spoken, too_few
from grokscope.studies.evidence import Evidence

__all__ = ["CLAIMS"]

SEED = 0


def _efficiencies(evidence: Evidence) -> dict[float, list[float]]:
    """κ of each grokked fork of p = 97 from the fork to grokking, by λ."""
    found: dict[float, list[float]] = {}
    for record in evidence.study("crossprime").values():
        grok, decay = record.timeline.grokked, record.spec.training.weight_decay
        if record.spec.task != "add_mod97" or record.spec.fork is None or grok is None:
            continue
        rows = zip(record.evaluations["step"], record.evaluations["norm"], strict=True)
        kept = [(step, norm) for step, norm in rows if step <= grok and norm > 0]
        if len(kept) > 1:
            steps, norms = ([row[i] for row in kept] for i in (0, 1))
            one = norm_decay(steps, norms, decay, record.spec.training.learning_rate)
            found.setdefault(decay, []).append(one.efficiency)
    return found


def _decay(evidence: Evidence) -> Finding:
    found = _efficiencies(evidence)
    total = sum(map(len, found.values()))
    if len(found) < 3:
        return too_few(total, 3, "values of λ with grokked forks of p = 97")
    ours = mean(value for values in found.values() for value in values)
    rates = [decay * mean(values) for decay, values in sorted(found.items())]
    rises = all(after > before for before, after in pairwise(rates))
    value = ", ".join(f"λ = {decay:g}: κ = {number(mean(values), 2)}" for decay, values in sorted(found.items()))
    verdict = graded(0.15 <= ours <= 0.25, 0 < ours < 1)
    why = f"Mean κ = {number(ours, 2)}; the rate {'rises' if rises else 'does not rise'} with λ throughout."
    return Finding(value, verdict, why, total)


def _form(evidence: Evidence) -> Finding:
    found = _efficiencies(evidence)
    values = [value for each in found.values() for value in each]
    text = f"rate = {number(mean(values), 2)} of ηλ" if values else "not measured"
    finding = Finding(text, Verdict.NOT, "", len(values))
    return inconsistent(
        finding, "AdamW multiplies by 1 − ηλ each step: with e^{−λt} no weight is left after ten steps."
    )


def _scaling(evidence: Evidence) -> Finding:
    losses, count = [], 0
    for name, record in evidence.study("threshold").items():
        if name.startswith("scaled"):
            accuracy = known(record.evaluations["train_accuracy"][:1])
            losses += [value < 0.9 for value in accuracy]
            count += 1
    if len(losses) < 4:
        return too_few(len(losses), 4, "forks with scaled weights")
    verdict = graded(all(losses), sum(losses) > len(losses) / 2)
    return Finding(f"{sum(losses)} of {len(losses)} collapse", verdict, "Train accuracy at the fork.", count)


def _spread(evidence: Evidence) -> Finding:
    steps = [r.timeline.grokked for r in evidence.study("spread").values()]
    found = [float(step) for step in steps if step is not None]
    if len(found) < 5:
        return too_few(len(found), 5, "grokked repetitions of the fork")
    span = max(found) - min(found)
    why = f"Standard deviation {number(pstdev(found))}; the repetitions differ in their data order."
    return Finding(number(span), graded(near(span, 1100) or span > 1100, span >= 500), why, len(found))


def _threshold(evidence: Evidence, of_variation: bool) -> Finding:
    runs = [
        run
        for run in forks(evidence.study("crossprime"), "add_mod97", DECAYS)
        if run.ending is Ending.GROKKED and not isnan(run.norm_at_grok)
    ]
    if len(runs) < 4 or len({run.weight_decay for run in runs}) < 3:
        return too_few(len(runs), 4, "grokked forks of p = 97 at three λ")
    cells = {decay: mean(float(r.norm_at_grok) for r in runs if r.weight_decay == decay) for decay in DECAYS}
    found = threshold_norm([norm for norm in cells.values() if not isnan(norm)], seed=SEED, resamples=10_000)
    value = f"τ = {spoken(found.mean, 1)}, variation {number(found.variation, 2)}"
    why = "Norms at grokking: " + ", ".join(f"λ = {d:g}: {number(n, 1)}" for d, n in cells.items()) + "."
    small = found.variation <= 0.16
    full, part = (small, found.variation <= 0.3) if of_variation else (near(found.mean.value, 23.5), False)
    return Finding(value, graded(full, part), why, len(runs), found.mean)


CLAIMS = (
    Claim(
        "rerun-spread",
        "Re-running the identical fork gives grok steps that span 1,100 steps.",
        "§6",
        "1,100",
        "Largest less smallest grok step of the study spread, at least five grokked: within 20 % of 1,100 or above it: "
        "reproduced; at least 500: partly; else not.",
        "tab-timing",
        _spread,
    ),
    Claim(
        "threshold-norm",
        "Runs grok at a norm of about 23.5.",
        "§6, Figure 7",
        "τ = 23.5",
        "Mean over λ of the mean norm at grokking of the forks of p = 97, at three λ or more, within 20 % "
        "of 23.5: reproduced; else not.",
        "fig-threshold",
        lambda evidence: _threshold(evidence, of_variation=False),
    ),
    Claim(
        "threshold-variation",
        "The norm at grokking is nearly constant across λ.",
        "Abstract, §6, Figure 7",
        "CV = 0.13",
        "Coefficient of variation over λ of the mean norm at grokking of the forks of p = 97: at most 0.16: "
        "reproduced; at most 0.3: partly; else not.",
        "fig-threshold",
        lambda evidence: _threshold(evidence, of_variation=True),
    ),
    Claim(
        "decay-rate",
        "The norm decays log-linearly at about 0.2 of ηλ.",
        "§6, Figure 7",
        "0.2",
        "Mean of κ = rate/(ηλ), by least squares of the log norm from the fork to grokking, over the grokked forks of "
        "p = 97: in [0.15, 0.25]: reproduced; in (0, 1): partly; else not.",
        "fig-threshold",
        _decay,
    ),
    Claim(
        "decay-form",
        "The norm decays as e^{−λt}.",
        "§6, Eq. 3",
        "e^{−λt}",
        "Always inconsistent; our value is the mean rate of the same forks as a share of ηλ.",
        "fig-threshold",
        _form,
    ),
    Claim(
        "scaling-collapses",
        "Scaling the weights at the fork collapses train accuracy, whatever the factor.",
        "§6",
        "any factor but 1",
        "Train accuracy of the forks with scaled weights at their first look: below 0.9 in all: reproduced; in more "
        "than half: partly; else not.",
        "fig-threshold",
        _scaling,
    ),
)
