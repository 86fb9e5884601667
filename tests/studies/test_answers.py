"""Answers: against counts and scipy, with planted truths, with runs missing, and in sentences."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from math import nan
from typing import Any

import numpy as np
import pytest
import scipy.stats

from grokscope.law import fit_censored, forked_run
from grokscope.runs.records import RunRecord
from grokscope.stats import share
from grokscope.studies import (
    ANSWERS,
    Evidence,
    Table,
    answer_sentence,
    answer_sentences,
    evidence_of,
)
from grokscope.studies.answers.alarms import matched_threshold
from grokscope.studies.answers.candidates import CANDIDATES, trace_of
from grokscope.studies.synchronization.experiments import STUDIES, studies
from grokscope.studies.tables import Cell
from grokscope.view.render import cell_text, csv_of, latex_of, markdown_of
from studies.test_tables import run

EMPTY = evidence_of([])
RENDERINGS = (csv_of, markdown_of, latex_of)
SEEDS = 24
Changes = Mapping[str, Mapping[str, Any]]


def clopper_pearson(hits: int, trials: int) -> tuple[float, float]:
    """By beta quantiles."""
    low = 0.0 if hits == 0 else scipy.stats.beta.ppf(0.025, hits, trials - hits + 1)
    high = 1.0 if hits == trials else scipy.stats.beta.ppf(0.975, hits + 1, trials - hits)
    return float(low), float(high)


def holm(p_values: list[float]) -> list[float]:
    """By the definition: the largest of the smaller ones' products."""
    ranked = sorted(p_values)
    return [max(min(1.0, (len(p_values) - ranked.index(q)) * q) for q in ranked if q <= p) for p in p_values]


def same_share(cell: Cell, hits: int, trials: int) -> None:
    assert cell.ours == pytest.approx(hits / trials)
    assert cell.interval == pytest.approx(clopper_pearson(hits, trials), abs=1e-6)
    assert cell.n == trials


def of_many(found: Mapping[str, Changes], n_seeds: int | None = None) -> Evidence:
    """Runs of several studies, those named here alone."""
    planned = studies(found, n_seeds)
    records = {s: {name: run(planned[s][name], **what) for name, what in runs.items()} for s, runs in found.items()}
    return Evidence(records, {})


def evidence(study: str, changes: Changes, n_seeds: int | None = None) -> Evidence:
    """Runs of one study, those named here alone."""
    return of_many({study: changes}, n_seeds)


@cache
def everything() -> Evidence:
    """Every study at a few seeds, with some runs that do not grok, or do not cross."""
    generator = np.random.default_rng(0)
    made: dict[str, RunRecord] = {}
    for spec in (spec for runs in studies(STUDIES, 4).values() for spec in runs.values()):
        start, decay = spec.fork.step if spec.fork else 0, spec.training.weight_decay
        grok = start + 100 * int(30 / max(decay, 0.3) * np.exp(0.2 * generator.normal())) + 100
        hopeless = spec.shuffled_labels or spec.train_fraction < 0.2 or decay < 0.5 or spec.task == "S5"
        groks = generator.random() > (0.7 if hopeless else 0.1)
        sync = None if generator.random() < 0.1 else max(start, grok - 100 * int(generator.integers(-3, 12)))
        columns: dict[str, Any] = {"fsd_2": sync, "control_fsd": sync} | {"fsd": sync}
        columns |= {"fsd@sum": None, "fsd@additive": 14_000} if "mod" in spec.task else {}
        made[spec.content_hash] = run(spec, grok if groks else None, sync, grok, last=spec.training.steps, **columns)
    return evidence_of(made.values(), 4)


@cache
def tables() -> dict[str, Table]:
    return {name: answer(everything()) for name, answer in ANSWERS.items()}


# What every answer keeps.


@pytest.mark.parametrize("name", ANSWERS)
def test_without_runs_every_row_says_so_and_the_sentence_too(name: str) -> None:
    table = ANSWERS[name](EMPTY)
    assert table.name == name
    assert table.title.endswith("?")
    assert all(str(row[1].ours) in ("no runs", "not measured") for row in table.rows)
    assert all(cell.ours is None for row in table.rows for cell in row[2:])
    assert "not known" in answer_sentence(table)
    assert all(render(table) for render in RENDERINGS)


@pytest.mark.parametrize("study", STUDIES)
def test_one_run_alone_gives_every_answer(study: str) -> None:
    name = list(studies([study])[study])[-1]
    for changes in ({"grok": 3000, "sync": 2000}, {"sync": 2000}, {"grok": 3000}, {"learnt": False}):
        found = evidence(study, {name: {**changes, "last": 8000}})
        for answer in ANSWERS.values():
            table = answer(found)
            assert answer_sentence(table).endswith(".")
            assert all(note.endswith(".") for note in table.notes)


def test_the_same_evidence_gives_the_same_bytes_whatever_its_order() -> None:
    again = evidence_of([r for runs in everything().records.values() for r in reversed(runs.values())], 4)
    for name, answer in ANSWERS.items():
        table = answer(again)
        assert [render(tables()[name]) for render in RENDERINGS] == [render(table) for render in RENDERINGS]


def test_every_letter_of_the_answers_has_a_name_in_latex() -> None:
    for table in tables().values():
        assert b"U+" not in latex_of(table)


NUMBER = re.compile(r"[+−]?(?:∞|\d[\d,]*(?:\.\d+)?)")


def numbers(text: str) -> set[str]:
    return {found.rstrip(",") for found in NUMBER.findall(text)}


@pytest.mark.parametrize("name", ANSWERS)
def test_every_number_in_a_sentence_is_in_its_table(name: str) -> None:
    table = tables()[name]
    sentence = answer_sentence(table)
    cells = " ".join(
        cell_text(cell, column) for row in table.rows for cell, column in zip(row, table.columns, strict=True)
    )
    assert len(numbers(sentence)) >= 3
    assert numbers(sentence) <= numbers(cells)
    assert "\n" not in sentence


def test_there_is_a_sentence_for_every_answer() -> None:
    assert list(answer_sentences(EMPTY)) == list(ANSWERS)


# Leads.


def leads_of(task: str, steps: list[tuple[int | None, int | None]]) -> dict[str, dict[str, Any]]:
    """Runs (grok, sync) of one task, by seed."""
    names = [name for name in studies(["base"], SEEDS)["base"] if name.startswith(f"{task}_s")]
    return {name: {"grok": grok, "sync": sync} for name, (grok, sync) in zip(names, steps, strict=False)}


def test_lead_shares_are_counts_with_exact_intervals() -> None:
    generator = np.random.default_rng(1)
    pairs = [(3000 + 100 * int(g), 2000 + 100 * int(s)) for g, s in generator.integers(0, 12, (16, 2))]
    steps: list[tuple[int | None, int | None]] = [*pairs, (2500, 2500), (2000, 2600), (None, 1000)]
    other: list[tuple[int | None, int | None]] = [(3000, 1000)] * 8
    table = ANSWERS["ans-lead-share"](
        evidence("base", leads_of("add_mod97", steps) | leads_of("add_mod53", other), SEEDS)
    )
    leads = [grok - sync for grok, sync in steps if grok is not None and sync is not None]
    positive, negative = sum(lead > 0 for lead in leads), sum(lead < 0 for lead in leads)
    row = "add_mod97"
    assert table.cell(row, "Seeds").ours == len(steps) == 19
    same_share(table.cell(row, "Grokked"), 18, 19)
    same_share(table.cell(row, "Positive lead"), positive, 18)
    assert table.cell(row, "Ties").ours == len(leads) - positive - negative >= 1
    mean, median = table.cell(row, "Mean lead (steps)"), table.cell(row, "Median lead (steps)")
    assert mean.ours == pytest.approx(np.mean(leads))
    assert median.ours == np.median(leads)
    resampled = generator.choice(leads, (20_000, len(leads)))
    for cell, of in ((mean, np.mean), (median, np.median)):
        assert cell.interval == pytest.approx(np.quantile(of(resampled, axis=1), [0.025, 0.975]), abs=60)
    p_values = [scipy.stats.binomtest(8, 8).pvalue, scipy.stats.binomtest(positive, positive + negative).pvalue]
    assert [table.cell(name, "Sign-test p").ours for name in ("add_mod53", row)] == pytest.approx(p_values)
    assert [table.cell(name, "p by Holm").ours for name in ("add_mod53", row)] == pytest.approx(holm(p_values))
    assert table.cell("add_mod71", "Seeds").ours == "no runs"


def test_the_sentence_about_leads_names_every_prime_and_what_is_doubtful() -> None:
    seeds = (42, 0, 1, 2, 3)
    runs = {f"add_mod{p}_s{s}": {"grok": 3000, "sync": 2000 if p < 100 else 4000} for p in (53, 131) for s in seeds}
    groups = {f"S5_f0.7_s{seed}": {"grok": 3000, "sync": 0} for seed in (0, 1, 42)}
    sentence = answer_sentence(ANSWERS["ans-lead-share"](of_many({"base": runs, "symmetric": groups}, 5)))
    assert "add_mod53 1.00 [0.48, 1.00], n = 5 (1.00, n = 5) and add_mod131 0.00" in sentence
    assert sentence.endswith(
        "elsewhere S5_f0.7 1.00 [0.29, 1.00], n = 3 (1.00, n = 3), with doubtful crossings in 3, n = 3."
    )


def test_crossings_paired_at_random_lead_as_often_as_a_count_over_pairs_says() -> None:
    steps: list[tuple[int | None, int | None]] = [(3000, 2000), (2500, 2400), (2000, 1900), (4000, None)]
    table = ANSWERS["ans-lead-share"](evidence("base", leads_of("add_mod97", steps), SEEDS))
    pairs = [(g, s) for i, (g, _) in enumerate(steps) for j, (_, s) in enumerate(steps) if i != j]
    expected = np.mean([g is not None and s is not None and s < g for g, s in pairs])
    assert table.cell("add_mod97", "Positive if paired at random").ours == pytest.approx(expected)
    assert table.cell("add_mod97", "Positive lead").ours == 0.75
    assert table.cell("add_mod97", "Never crossed") == Cell(1, n=4)
    assert str(table.cell("add_mod97", "Mean lead (steps)").ours).startswith("below")


def test_crossings_at_the_first_look_are_counted_as_doubtful_also_on_groups() -> None:
    runs = {f"S5_f0.5_s{seed}": {"grok": 3000, "sync": sync} for seed, sync in ((0, 0), (1, 0), (42, 1000))}
    table = ANSWERS["ans-lead-share"](evidence("symmetric", runs))
    assert table.cell("S5_f0.5", "Doubtful crossings") == Cell(2, n=3)
    assert table.cell("S5_f0.7", "Seeds").ours == "no runs"


def test_multiplication_is_asked_in_each_basis() -> None:
    names = [f"mult_mod97_s{seed}" for seed in (42, 0, 1, 2, 3)]
    columns: dict[str, Any] = {"grok": 3000, "sync": 2400, "fsd": 2400, "fsd@sum": 13_000, "fsd@additive": None}
    runs = {name: dict(columns) for name in names}
    runs[names[0]]["sync"] = runs[names[0]]["fsd"] = 3200
    del runs[names[1]]["fsd@sum"]
    table = ANSWERS["ans-multiplication"](evidence("base", runs, 5))
    same_share(table.cell("own basis, every look", "Positive lead"), 4, 5)
    assert table.cell("own basis, every look", "First crossing (median step)").ours == 2400
    assert table.cell("own basis, every look", "Median lead (steps)").ours == 600
    same_share(table.cell("by a + b, checkpoints", "Positive lead"), 0, 4)
    assert table.cell("by a + b, checkpoints", "Mean lead (steps)").ours == -10_000
    assert table.cell("additive basis, checkpoints", "Never crossed") == Cell(5, n=5)
    assert table.cell("additive basis, checkpoints", "First crossing (median step)").ours == "never"
    assert "0.80 [0.28, 0.99], n = 5 (own basis, every look)" in answer_sentence(table)


# False alarms.


def peaked(peak: float, **what: Any) -> dict[str, Any]:
    """A run whose FSD is this once, at step 500, and less before and after."""
    return {"log": {"fsd": {0: peak / 2, 500: peak, 1000: peak / 3}}, **what}


@cache
def planted(halves: tuple[int, int]) -> Evidence:
    """Runs that do not grok, FSD peaks 0.50, 0.51, … by rank in each half of the seeds; four that do."""
    names = [name for name in studies(["negatives"], 44)["negatives"] if name.startswith("shuffled")]
    seeds = {name: int(name.rpartition("_s")[2]) for name in names}
    negative = {}
    for rest, count in enumerate(halves):
        chosen = [name for name, seed in seeds.items() if seed % 2 == rest][:count]
        negative |= {name: peaked(0.5 + 0.01 * i + 0.005 * rest) for i, name in enumerate(chosen)}
    steps = range(0, 15_001, 100)
    rising = {step: min(0.3 + step / 5000, 1.0) for step in steps}
    grokked = {f"add_mod97_s{seed}": {"grok": 3000 + 100 * seed, "log": {"fsd": rising}} for seed in (0, 1, 2)}
    grokked["add_mod97_s42"] = {"grok": 1000, "log": {"fsd": dict.fromkeys(steps, 0.3)}}
    return of_many({"negatives": negative, "base": grokked}, 44)


@pytest.mark.parametrize(("rate", "rank", "alarms"), [(0.05, 1, 2), (0.0, 0, 1), (0.10, 2, 3)])
def test_planted_negatives_give_the_known_threshold_and_false_alarms(rate: float, rank: int, alarms: int) -> None:
    """Even seeds peak at 0.50 … 0.69: of 20 one may cross at 5 %. Odd ones lie 0.005 higher, so one more does."""
    table = ANSWERS["ans-false-alarms"](planted((20, 20)))
    row = f"FSD, at most {rate:.0%}"
    threshold = 0.69 - 0.01 * rank
    assert table.cell(row, "Threshold").ours == pytest.approx(threshold)
    assert table.cell(row, "Chosen on (runs)").ours == 20
    assert table.cell(row, "Judged on").ours == "other seeds"
    same_share(table.cell(row, "False alarms"), alarms, 20)
    crossing = next(step for step in range(0, 15_001, 100) if 0.3 + step / 5000 > threshold + 1e-9)
    leads = sorted(3000 + 100 * seed - crossing for seed in (0, 1, 2))
    same_share(table.cell(row, "Warned before grokking"), 3, 4)
    assert table.cell(row, "Median lead (steps)").ours in leads  # the fourth never crossed, so it is the lower middle
    same_share(table.cell(row, "Earlier than validation accuracy"), 3, 4)
    assert table.cell(row, "Sign-test p").ours == pytest.approx(scipy.stats.binomtest(3, 4).pvalue)


def test_validation_accuracy_warns_by_its_smallest_rise_that_is_no_false_alarm() -> None:
    table = ANSWERS["ans-false-alarms"](planted((20, 20)))
    row = "Validation accuracy, at most 5%"
    assert table.cell(row, "Threshold").ours == pytest.approx(0.1)
    assert table.cell(row, "False alarms").ours == 0
    same_share(table.cell(row, "Warned before grokking"), 0, 4)
    assert table.cell(row, "Median lead (steps)").ours == 0
    assert table.cell(row, "Earlier than validation accuracy") == Cell()
    assert table.cell("Train loss, at most 5%", "Alarm").ours == "not measured"


def test_runs_that_do_not_grok_are_also_watched_no_longer_than_others_take() -> None:
    """The planted peaks are at step 500 and the last run groks at 3,200: what comes after that changes nothing."""
    found = planted((20, 20))
    late = {}
    for name, record in found.study("negatives").items():
        rows = zip(record.evaluations["step"], record.evaluations["fsd"], strict=True)
        late[name] = replace(
            record, evaluations=record.evaluations | {"fsd": [0.99 if at > 3200 else fsd for at, fsd in rows]}
        )
    table = ANSWERS["ans-false-alarms"](Evidence(found.records | {"negatives": late}, {}))
    assert table.cell("FSD, at most 5%", "Threshold").ours == 0.99
    same = ANSWERS["ans-false-alarms"](found)
    for column in ("Threshold", "False alarms", "Warned before grokking", "Median lead (steps)"):
        before = same.cell("FSD, at most 5%", column)
        assert table.cell("FSD, at most 5% by step 3,200", column) == before, column
    assert "by FSD, at most 5% by step 3,200, in 0.75" in answer_sentence(table)


def test_with_few_negatives_thresholds_are_judged_where_they_were_chosen() -> None:
    table = ANSWERS["ans-false-alarms"](planted((20, 9)))
    row = "FSD, at most 5%"
    assert table.cell(row, "Judged on").ours == "the same runs"
    assert table.cell(row, "Chosen on (runs)").ours == 29
    same_share(table.cell(row, "False alarms"), 1, 29)
    assert any(note.startswith("Runs that did not grok, each once: 29 of negatives/shuffled.") for note in table.notes)


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.1, 0.3])
def test_a_matched_threshold_is_the_most_lenient(rate: float) -> None:
    generator = np.random.default_rng(3)
    for size in (1, 2, 10, 20, 30, 60):
        peaks = generator.integers(0, 15, size).astype(float)
        found = matched_threshold(peaks.tolist(), rate)
        assert (peaks > found).sum() <= rate * size + 1e-9
        lower = peaks[peaks < found]
        assert (peaks >= found).sum() > rate * size - 1e-9 or len(lower) == 0
        assert (peaks > np.nextafter(found, -np.inf)).sum() > rate * size + 1e-9


def test_a_falling_measure_alarms_below_its_threshold() -> None:
    names = [f"shuffled_s{seed}" for seed in (42, 0, 1)]
    negative = {name: {"log": {"norm": {0: 50.0, 500: 40.0 - i}}} for i, name in enumerate(names)}
    base = {"add_mod97_s42": {"grok": 3000, "log": {"norm": {0: 50.0, 1000: 38.0, 2000: 37.9, 3000: 20.0}}}}
    table = ANSWERS["ans-false-alarms"](of_many({"negatives": negative, "base": base}, 5))
    assert table.cell("Weight norm, at most 0%", "Alarm").ours == "below"
    assert table.cell("Weight norm, at most 0%", "Threshold").ours == 38
    assert table.cell("Weight norm, at most 0%", "Median lead (steps)").ours == 1000


def test_negatives_are_whole_runs_of_the_same_model_each_counted_once() -> None:
    found = {
        "negatives": {"shuffled_s42": {}, "weak_decay_s42": {"grok": 9000}, "weak_decay_s0": {}},
        "base": {"add_mod97_s42": {}, "add_mod97_s0": {"grok": 3000}, "add_mod53_s42": {}},
        "sensitivity": {"default_s42": {}, "dropout_0.1_s42": {}, "causal_s42": {}, "std_0.02_s42": {}},
        "accelerator": {"fixed_s42": {}, "mem_x10_s42": {}},
        "fork": {"add_mod97_s42_x10": {}},
    }
    table = ANSWERS["ans-false-alarms"](of_many(found, 5))
    (note,) = (note for note in table.notes if "each once" in note)
    arms = "1 of negatives/shuffled, 1 of negatives/weak_decay, 1 of base/add_mod97, 1 of sensitivity/dropout_0.1"
    assert note == f"Runs that did not grok, each once: {arms}."
    assert table.cell("FSD, at most 5%", "Chosen on (runs)").ours == 4
    assert table.cell("FSD, at most 5%", "Warned before grokking").n == 1


def test_checkpoints_are_read_with_grokking_seen_there() -> None:
    spec = studies(["base"], 5)["base"]["add_mod97_s42"]
    made = run(spec, grok=3100, sync=1000)
    made = replace(made, checkpoints={"step": [0, 2000, 3000, 3500], "paper_restricted": [3.0, 2.0, 0.4, 0.1]})
    bad = run(studies(["negatives"], 5)["negatives"]["shuffled_s42"])
    bad = replace(bad, checkpoints={"step": [0, 5000], "paper_restricted": [3.0, 1.0]})
    table = ANSWERS["ans-false-alarms"](evidence_of([made, bad], 5))
    row = "Restricted loss of the paper, checkpoints, at most 0%"
    assert table.cell(row, "Threshold").ours == 1.0
    assert table.cell(row, "Median lead (steps)").ours == 500


# The law.


def forks(seed: int, budget: int, failed: tuple[str, ...] = (), crossed: int = 1000) -> dict[str, dict[str, Any]]:
    """Forks of p = 97 with Δt around 3,000/λ, seen only up to a budget."""
    generator = np.random.default_rng(seed)
    found = {}
    for name, spec in studies(["crossprime"], 12)["crossprime"].items():
        if spec.task == "add_mod97" and spec.fork:
            wait = 3000 / spec.training.weight_decay * np.exp(0.2 * generator.normal())
            grok = 1000 + int(np.ceil(wait / 100)) * 100
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
    table = ANSWERS["ans-law"](evidence("crossprime", runs, 12))
    row = "add_mod97, from the fork"
    within, dropped = table.cell(row, "C, censored runs in"), table.cell(row, "C, censored runs dropped")
    assert within.interval is not None
    assert within.interval[0] < 3000 < within.interval[1]
    assert dropped.ours < within.ours  # type: ignore[operator]
    late = sum(what["grok"] is None for what in runs.values()) - 1
    assert late >= 3
    same_share(table.cell(row, "Not yet grokked (censored)"), late, 48)
    same_share(table.cell(row, "Unstable (left out)"), 1, 48)
    assert table.cell(row, "In the fit").ours == 47
    assert table.cell(row, "α, censored runs in").ours == pytest.approx(1, abs=0.15)
    same_share(table.cell("add_mod97, λ = 1", "Not yet grokked (censored)"), late, 12)
    assert table.cell("add_mod53, from the fork", "Forks").ours == "no runs"


def test_information_criteria_are_corrected_for_few_runs() -> None:
    found = evidence("crossprime", forks(1, 8000), 12)
    runs = [forked_run(r.spec, r.timeline) for r in found.study("crossprime").values() if r.spec.fork]
    plain, power, offset = (fit_censored(runs, f, seed=0, resamples=0) for f in ("inverse", "power", "offset"))  # type: ignore[arg-type]

    def corrected(aic: float, k: int) -> float:
        return aic + 2 * k * (k + 1) / (48 - k - 1)

    table = ANSWERS["ans-law"](found)
    row = "add_mod97, from the fork"
    for name, fit in (("C λ^−α", power), ("a + C/λ", offset)):
        expected = corrected(fit.aic, 3) - corrected(plain.aic, 2)
        assert table.cell(row, f"AICc of {name} less C/λ").ours == pytest.approx(expected, abs=1e-6)
    assert table.cell(row, "C, censored runs dropped") == table.cell(row, "C, censored runs in")
    means = [np.mean([r.steps_to_grok for r in runs if r.weight_decay == d]) * d for d in (1.0, 2.0, 3.0, 5.0)]  # type: ignore[misc]
    assert table.cell(row, "C, the paper's mean(λΔt)").ours == pytest.approx(np.mean(means))


def test_a_wait_from_the_crossing_is_shorter_by_the_steps_to_it() -> None:
    table = ANSWERS["ans-law"](evidence("crossprime", forks(1, 8000, crossed=1300), 12))
    runs = [what["grok"] for what in forks(1, 8000).values()]
    fork, crossing = (
        table.cell(f"add_mod97, from the {of}", "Δt (median steps)").ours for of in ("fork", "FSD crossing")
    )
    assert fork == np.median(runs) - 1000
    assert crossing == np.median([grok - 1300 for grok in runs if grok > 1300])
    before = sum(grok <= 1300 for grok in runs)
    assert table.cell("add_mod97, from the FSD crossing", "Grokked before").ours == before
    never = ANSWERS["ans-law"](evidence("crossprime", forks(1, 8000, crossed=10**6), 12))
    assert never.cell("add_mod97, from the FSD crossing", "Forks").ours == "no runs"


# Groups, changes, norms.


def test_false_alarms_on_s5_are_counted_by_train_fraction_and_outcome() -> None:
    seeds = (0, 1, 42, 2, 7)
    never = {f"S5_f0.3_s{s}": {"sync": 500 if s < 2 else None, "control_fsd": 1000 if s == 0 else None} for s in seeds}
    grokked = {f"S5_f0.7_s{seed}": {"grok": 3000, "sync": 2000 if seed else 3500} for seed in seeds}
    table = ANSWERS["ans-s5-false"](evidence("symmetric", never | grokked))
    same_share(table.cell("30%, never grokked", "FSD_gen fired"), 2, 5)
    same_share(table.cell("all, never grokked", "FSD_gen fired"), 2, 5)
    same_share(table.cell("30%, never grokked", "Control ≥ 0.80 fired"), 1, 5)
    same_share(table.cell("70%, grokked", "Fired before grokking"), 4, 5)
    assert table.cell("30%, never grokked", "Median step fired").ours == "never"
    assert table.cell("30%, never grokked", "Steps after memorisation (median)").ours == 500
    assert table.cell("70%, grokked", "Control ≥ 0.80 fired") == Cell()
    assert table.cell("50%, grokked", "Runs").ours == "no runs"
    low, high = clopper_pearson(2, 5)
    assert f"fires in 0.40 [{low:.2f}, {high:.2f}], n = 5 of the runs of S5 that never grok" in answer_sentence(table)


def test_changes_are_tested_against_the_default_and_corrected() -> None:
    generator = np.random.default_rng(5)
    names = studies(["sensitivity"], 10)["sensitivity"]
    shift = {"default": 3000, "beta2_0.98": 3000, "dropout_0.1": 6000, "clip_1": 3600}
    runs: dict[str, dict[str, Any]] = {}
    for name in names:
        arm = name.rpartition("_s")[0]
        if arm in shift:
            runs[name] = {"grok": shift[arm] + 100 * int(generator.integers(-9, 9)), "sync": 1000}
    runs["clip_1_s0"]["grok"] = None
    table = ANSWERS["ans-sensitivity"](evidence("sensitivity", runs, 10))
    titles = {"beta2_0.98": "β₂ = 0.98", "dropout_0.1": "dropout 0.1", "clip_1": "gradient clipped to 1"}

    def sample(arm: str) -> scipy.stats.CensoredData:
        steps = [what["grok"] for name, what in runs.items() if name.startswith(f"{arm}_s")]
        return scipy.stats.CensoredData([s for s in steps if s], right=[15_000 for s in steps if s is None])

    expected = [scipy.stats.logrank(sample(arm), sample("default")).pvalue for arm in titles]
    assert [table.cell(t, "Log-rank p").ours for t in titles.values()] == pytest.approx(expected)
    assert [table.cell(t, "p by Holm").ours for t in titles.values()] == pytest.approx(holm(expected))
    same_share(table.cell("gradient clipped to 1", "Grokked"), 9, 10)
    same_share(table.cell("gradient clipped to 1", "Positive lead"), 9, 9)
    assert table.cell("causal attention", "Seeds").ours == "no runs"
    assert table.cell("default", "Log-rank p") == Cell()
    assert "dropout 0.1" in answer_sentence(table)
    assert "β₂" not in answer_sentence(table)


def test_held_and_scaled_norms_stand_beside_free_ones() -> None:
    runs: dict[str, dict[str, Any]] = {}
    for place, seed in enumerate((42, 0, 1, 2)):
        runs[f"free_x1_s{seed}"] = {"grok": 4000 + 100 * place, "last": 8000}
        runs[f"frozen_x1_s{seed}"] = {"grok": None, "last": 8000}
        scaled = {"train_accuracy": {1000: 0.2, 1100: 1.0, 8000: 0.3}, "norm": {1000: 15.0}}
        runs[f"scaled0.5_s{seed}"] = {"grok": None, "last": 8000, "log": scaled}
    table = ANSWERS["ans-thresholds-mechanism"](evidence("threshold", runs, 4))
    free, frozen, scaled = "free norm, λ = 1", "norm frozen at the fork, λ = 1", "weights × 0.5, λ = 1"
    same_share(table.cell(frozen, "Grokked"), 0, 4)
    assert table.cell(frozen, "Grok step (median)").ours == "never"
    assert table.cell(free, "Grok step (median)").ours == np.median([4000, 4100, 4200, 4300])
    assert table.cell(free, "Norm at grokking (median)").ours == 30
    assert table.cell(scaled, "Train accuracy at the first look (median)").ours == 0.2
    assert table.cell(scaled, "Norm at the first look (median)").ours == 15
    assert table.cell(scaled, "Unstable without grokking").ours == share(4, 4).value
    assert table.cell(frozen, "Compared with").ours == free
    assert float(table.cell(frozen, "Log-rank p").ours or 1) < 0.05
    assert table.cell("norm matched to the parent's, λ = 3", "Seeds").ours == "no runs"
    assert answer_sentence(table) == (
        "How many forks grok, and at which step in the median, with free norm, λ = 1: 4 of 4 at 4,150 [4,000, 4,300]; "
        "norm frozen at the fork, λ = 1: none of 4."
    )


def test_forks_of_another_making_of_their_parent_are_told() -> None:
    runs: dict[str, dict[str, Any]] = {"parent_s42": {"grok": 4000, "log": {"norm": {0: 100.0, 1000: 50.0}}}}
    for name, norm in (("free_x1_s42", 50.0), ("frozen_x1_s42", 51.0), ("scaled0.5_s42", 25.0)):
        runs[name] = {"grok": 4000, "last": 8000, "log": {"norm": {1000: norm}}}
    found = ANSWERS["ans-thresholds-mechanism"](evidence("threshold", runs, 4)).notes
    assert found[-1].startswith("1 of 3 forks begin in another making of their parent")
    del runs["frozen_x1_s42"]
    found = ANSWERS["ans-thresholds-mechanism"](evidence("threshold", runs, 4)).notes
    assert not any("another making" in note for note in found)


def test_what_is_measured_at_milestones_alone_is_no_rival() -> None:
    record = next(iter(everything().study("base").values()))
    followed = next(one for one in CANDIDATES if one.column == "fsd_2")
    assert trace_of(record, followed) is not None
    values = record.checkpoints["fsd_2"]
    at_the_end = [*([nan] * (len(values) - 1)), values[-1]]
    assert trace_of(replace(record, checkpoints=record.checkpoints | {"fsd_2": at_the_end}), followed) is None
