"""§5.6 and §5.7: other operations, other architectures."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isinf

from grokscope.runs.records import RunRecord
from grokscope.stats import share
from grokscope.studies.claims.chosen import (
    Score,
    crossed,
    grok_checkpoint,
    grokked,
    known,
    lead_of,
    mean,
    middle,
    named,
)
from grokscope.studies.claims.claim import (
    Claim,
    Finding,
    Verdict,
    graded,
    inconsistent,
    near,
    number,
    of_runs,
    spoken,
    too_few,
)
from grokscope.studies.evidence import Evidence
from grokscope.timeline import LeadStatus

__all__ = ["CLAIMS"]

SUBTRACTION = ("sub_mod97_s42", "sub_mod97_s123")
PRINTED_97 = tuple(f"add_mod97_s{seed}" for seed in (42, 123, 0, 1, 2))
SIMILAR = "; beside it, the majority of all seeds"


def _of_architecture(evidence: Evidence, name: str, score: Score) -> Finding:
    everyone = {key: run for key, run in evidence.study("architecture").items() if key.rpartition("_s")[0] == name}
    printed = {key: run for key, run in everyone.items() if key == f"{name}_s42"}
    return of_runs(printed, everyone, 1, f"runs {name}_s42", score)


def _direction(records: Sequence[RunRecord], sign: int) -> Finding:
    """Whether runs grok with a lead (+1) or a lag (−1) of FSD."""
    found = [record.timeline.sync.lead for record in records]
    good = sum(lead.sign == sign for lead in found)
    groks = len(grokked(records))
    bound = "below " if any(lead.status is LeadStatus.NEVER for lead in found) else ""
    lead = f"{'mean lead' if len(found) > 1 else 'lead'} {bound}{number(mean(map(lead_of, records)))}"
    value = f"{lead}, {good} of {len(found)} {'before' if sign > 0 else 'after'}"
    return Finding(value, graded(good > len(found) / 2, groks > len(found) / 2), f"{groks} grok.", len(found))


def _never(records: Sequence[RunRecord]) -> Finding:
    groks = len(grokked(records))
    trained = mean(max(known(record.evaluations["train_accuracy"]), default=0.0) for record in records)
    why = f"Their best train accuracy is {number(trained, 2)} on average."
    value = f"{groks} of {len(records)} {'groks' if len(records) == 1 else 'grok'} without attention"
    return Finding(value, graded(groks == 0, groks < len(records) / 2), why, len(records))


def _artefact(evidence: Evidence) -> Finding:
    def score(records: Sequence[RunRecord]) -> Finding:
        defined = sum(bool(known(record.evaluations.get("fsd", []))) for record in records)
        return Finding(f"FSD defined in {defined} of {len(records)}", Verdict.NOT, "", len(records))

    found = _of_architecture(evidence, "mlp_only", score)
    why = "Without attention the last position never sees a or b, and neurons that do not vary have no frequency."
    value = "not measured" if found.verdict is Verdict.TOO_FEW else found.value
    return replace(found, value=value, verdict=Verdict.NOT_TESTABLE, beside_verdict=None, why=why)


def _magnitudes(evidence: Evidence) -> Finding:
    leads = {
        name: mean(map(lead_of, named(evidence, "architecture", [f"{name}_s42"]).values()))
        for name in ("two_layers", "attention_only")
    }
    n = len(known(leads.values()))
    value = ", ".join(f"{name} {number(lead)}" for name, lead in leads.items()) if n else "not measured"
    finding = Finding(value, Verdict.NOT, "", n)
    return inconsistent(finding, "+3,000 is twice the +1,500 that it is called the same magnitude as.")


def _subtraction(evidence: Evidence, score: Score) -> Finding:
    everyone = evidence.task("sub_mod97")
    return of_runs(named(evidence, "base", SUBTRACTION), everyone, 2, "printed subtraction runs", score)


def _subtraction_leads(records: Sequence[RunRecord]) -> Finding:
    good = sum(record.timeline.sync.lead.is_precursor for record in records)
    verdict = graded(good == len(records), good >= len(records) / 2)
    leads = ", ".join(number(lead_of(record)) for record in records[:2])
    return Finding(f"{good} of {len(records)}, printed seeds {leads}", verdict, "Positive leads count.", len(records))


def _delay(evidence: Evidence) -> Finding:
    later, earlier = named(evidence, "base", SUBTRACTION), named(evidence, "base", PRINTED_97)
    if len(later) < 2 or len(earlier) < 5:
        return too_few(len(later) + len(earlier), 7, "printed runs of p = 97")

    def groks(records: Sequence[RunRecord]) -> float:
        return mean(float(record.timeline.grokked or 0) for record in grokked(records))

    delay = groks(list(later.values())) - groks(list(earlier.values()))
    wide = groks(list(evidence.task("sub_mod97").values())) - groks(list(evidence.task("add_mod97").values()))
    n = len(evidence.task("sub_mod97")) + len(evidence.task("add_mod97"))
    beside = f"{number(wide)} over {n} runs" if n > 7 else ""
    return Finding(number(delay), graded(near(delay, 1500), delay > 0), "Means of the grokked.", 7, beside=beside)


def _frequency(evidence: Evidence) -> Finding:
    pairs = []
    for name in SUBTRACTION:
        runs = named(evidence, "base", [name, name.replace("sub", "add")])
        modes = known(record.at(int(record.evaluations["step"][-1]), "fsd_mode") for record in runs.values())
        pairs += [tuple(modes)] if len(modes) == 2 else []
    if len(pairs) < 2:
        return too_few(len(pairs), 2, "pairs of a subtraction and an addition run")
    same = sum(one == other for one, other in pairs)
    value = ", ".join(f"{one:.0f} and {other:.0f}" for one, other in pairs)
    return Finding(value, graded(same == 2, same == 1), f"{same} of 2 pairs share their frequency at the last look.", 2)


def _multiplication(evidence: Evidence) -> dict[str, RunRecord]:
    return evidence.task("mult_mod97") | dict(evidence.study("multiplication"))


def _lag(evidence: Evidence) -> Finding:
    def score(records: Sequence[RunRecord]) -> Finding:
        found = [(record, *crossed(record, "fsd@sum", 0.80)) for record in grokked(records)]
        seen = [(record, step) for record, measured, step in found if measured]
        if not seen:
            return too_few(0, len(records), "grokked runs read by sums")
        lags = [
            None if step is None else float((grok_checkpoint(record) or record.timeline.last) - step)
            for record, step in seen
        ]
        late = sum(lag is None or lag < 0 for lag in lags)
        close = sum(lag is not None and near(lag, -10_000) for lag in lags)
        half = len(lags) / 2
        why = f"{late} of {len(lags)} lag or never cross, {close} by about 10,000 steps."
        steps = middle(-inf if lag is None else lag for lag in lags)
        value = f"{'median lead' if len(lags) > 1 else 'lead'} {number(steps)}"
        if isinf(steps):
            only = f"never crosses in {number(records[0].timeline.last)} steps"
            value = only if len(lags) == 1 else f"{late} of {len(lags)} lag or never cross"
        return Finding(value, graded(close > half, late > half), why, len(lags))

    runs = _multiplication(evidence)
    longest = {name: run for name, run in runs.items() if name == "mult_mod97_s42_long"}
    printed = longest or {name: run for name, run in runs.items() if name == "mult_mod97_s42"}
    seeds = {name: run for name, run in runs.items() if name != "mult_mod97_s42" or not longest}  # each seed once
    return of_runs(printed, seeds, 1, "runs mult_mod97_s42", score)


def _own_basis(evidence: Evidence) -> Finding:
    runs = grokked(evidence.task("mult_mod97").values())
    if len(runs) < 5:
        return too_few(len(runs), 5, "grokked multiplication runs")
    before = sum(record.timeline.sync.lead.is_precursor for record in runs)
    found = share(before, len(runs))
    verdict = graded(found.high < 0.5, found.value < 0.5)
    why = f"In the characters of the group FSD leads in {spoken(found, 2)}."
    return Finding(f"{before} of {len(runs)} lead", verdict, why, len(runs), found)


CLAIMS = (
    Claim(
        "subtraction-leads",
        "Subtraction shows the same precursor on both seeds.",
        "§5.1, §5.6",
        "+1,000 and +2,000",
        "sub_mod97_s42 and _s123 both have a positive lead: reproduced; one: partly; none: not; beside it, all or half "
        "of all seeds.",
        "tab-cross",
        lambda evidence: _subtraction(evidence, _subtraction_leads),
    ),
    Claim(
        "subtraction-delay",
        "Subtraction groks about 1,500 steps later than addition.",
        "§5.6",
        "1,500",
        "Mean grok step of the two printed subtraction runs less that of the five printed addition runs of p = 97: "
        "within 20 % of 1,500: reproduced; positive: partly; else not.",
        "tab-cross",
        _delay,
    ),
    Claim(
        "subtraction-frequency",
        "Subtraction synchronises on the same dominant frequency as addition.",
        "§5.6",
        "the same",
        "Last dominant frequencies of subtraction and addition at seeds 42 and 123: equal at both: reproduced; at one: "
        "partly; else not.",
        "tab-cross",
        _frequency,
    ),
    Claim(
        "multiplication-lags",
        "In multiplication FSD lags grokking by 10,000 steps.",
        "§5.1, §5.6, Table 2",
        "−10,000",
        "FSD conditioned on a + b, at checkpoints of mult_mod97_s42 (the 55,000-step run if there): crosses 0.80 "
        "10,000 ± 20 % steps after grokking: reproduced; later than grokking or never: partly; else not"
        + SIMILAR
        + ".",
        "tab-cross",
        _lag,
    ),
    Claim(
        "multiplication-has-no-precursor",
        "The precursor is specific to addition: multiplication has none.",
        "§5.6, asked in its own basis at large n",
        "no precursor",
        "Share of grokked multiplication runs, at least five, whose FSD in the characters of the multiplicative group "
        "leads: upper Clopper–Pearson end below 1/2: reproduced; share below 1/2: partly; else not.",
        "tab-cross",
        _own_basis,
    ),
    Claim(
        "attention-only-leads",
        "An attention-only model groks with an FSD precursor.",
        "§5.7, Table 8",
        "+3,000",
        "attention_only_s42 groks with a positive lead: reproduced; groks: partly; else not" + SIMILAR + ".",
        "tab-arch",
        lambda evidence: _of_architecture(evidence, "attention_only", lambda records: _direction(records, 1)),
    ),
    Claim(
        "attention-only-magnitude",
        "The attention-only lead has the same magnitude as the baseline's.",
        "§5.7, Table 8",
        "+3,000 and +1,500",
        "Always inconsistent; our values are the leads of attention_only_s42 and two_layers_s42.",
        "fig-arch",
        _magnitudes,
    ),
    Claim(
        "one-layer-lags",
        "A one-layer model groks, and its FSD lags.",
        "§5.7, Table 8",
        "−1,000",
        "one_layer_s42 groks before FSD ≥ 0.80, or without it: reproduced; groks: partly; else not" + SIMILAR + ".",
        "tab-arch",
        lambda evidence: _of_architecture(evidence, "one_layer", lambda records: _direction(records, -1)),
    ),
    Claim(
        "mlp-only-never",
        "An MLP-only model does not grok within 15,000 steps.",
        "§5.7, Table 8",
        "never",
        "mlp_only_s42 does not grok: reproduced; else not; beside it, none, or fewer than half of all seeds.",
        "tab-arch",
        lambda evidence: _of_architecture(evidence, "mlp_only", _never),
    ),
    Claim(
        "attention-is-necessary",
        "Attention is necessary for the Fourier algorithm.",
        "§5.7",
        "necessary",
        "mlp_only_pooled_s42, which sees a and b without attention, does not grok: reproduced; else not; beside it, "
        "none, or fewer than half of all seeds.",
        "tab-arch",
        lambda evidence: _of_architecture(evidence, "mlp_only_pooled", _never),
    ),
    Claim(
        "mlp-only-sync",
        "FSD of the MLP-only model synchronises at step 500.",
        "§5.7, Table 8",
        "500",
        "Always not testable; our value is in how many runs mlp_only FSD is defined at any look.",
        "tab-arch",
        _artefact,
    ),
)
