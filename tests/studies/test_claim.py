"""Claims: judged over the reported runs and over all seeds, and changed by nothing without changing the digest."""

from collections.abc import Mapping
from dataclasses import replace

from planted import run

from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.stats import Estimate
from grokscope.studies import Claim, Evidence, Measured, Quantity, Rule, Selection, Verdict, judge, rule, rules_digest
from grokscope.studies.claim import claim_rows


def _grokked(records: Mapping[str, RunRecord]) -> Measured:
    steps = [record.timeline.grokked for record in records.values()]
    if None in steps:
        return Measured.lacking(len(steps) - steps.count(None), len(steps), "grokked runs")
    mean = sum(step or 0 for step in steps) / len(steps)
    return Measured.of(Estimate(mean, mean - 100, mean + 100, len(steps)), f"{mean:g}", len(steps), "A mean.")


def _count(records: Mapping[str, RunRecord]) -> Measured:
    return Measured.of(len(records))


def evidence(*groks: int | None, is_quick: bool = False) -> Evidence:
    specs = [RunSpec().with_seed(seed) for seed in range(len(groks))]
    runs = {f"a_s{i}": run(spec, grok=grok) for i, (spec, grok) in enumerate(zip(specs, groks, strict=True))}
    return Evidence({"base": runs}, is_quick)


ONE = Quantity("mean grok step", Selection(("base",), ("a_s0",)), _grokked)
ALL = replace(ONE, runs=Selection(("base",)))
CLAIM = Claim(
    "early", "It groks early.", "§1", "1,000", ONE, Rule(rule.at_most(1000), rule.at_most(2000)), "tab-a", ALL
)


def test_over_the_reported_run_and_over_all_seeds() -> None:
    found = judge(CLAIM, evidence(1000, 3000, 5000))
    assert (found.value, found.verdict, found.n, found.why) == ("1000", Verdict.REPRODUCED, 1, "A mean.")
    assert (found.all_seeds, found.all_seeds_verdict) == ("3000 over 3 runs", Verdict.NOT)
    assert judge(CLAIM, evidence(1000)).all_seeds == ""


def test_what_only_grokked_runs_have_is_shown_over_those() -> None:
    assert judge(CLAIM, evidence(1000, None, 2000)).all_seeds == "1500 over 2 runs"
    assert judge(CLAIM, evidence(None, 1000)).verdict is Verdict.TOO_FEW


def test_a_missing_run_is_named_and_decides_nothing() -> None:
    found = judge(CLAIM, Evidence({"base": {}}))
    assert (found.verdict, found.value, found.n) == (Verdict.TOO_FEW, "—", 0)
    assert "0 of the 1" in found.why


def test_in_the_quick_version_one_run_decides_only_what_no_other_seed_contradicts() -> None:
    assert judge(CLAIM, evidence(1000, 900, is_quick=True)).verdict is Verdict.REPRODUCED
    assert judge(CLAIM, evidence(1000, 5000, is_quick=True)).verdict is Verdict.TOO_FEW
    assert judge(CLAIM, evidence(1000, 5000)).verdict is Verdict.REPRODUCED


def test_a_contradiction_keeps_our_value_and_judges_no_seeds() -> None:
    found = judge(replace(CLAIM, rule=Rule(contradiction="It says two things.")), evidence(1000, 3000))
    assert (found.verdict, found.value, found.why) == (Verdict.INCONSISTENT, "1000", "It says two things.")
    assert (found.all_seeds, found.all_seeds_verdict) == ("2000 over 2 runs", None)


def test_the_digest_covers_all_that_decides() -> None:
    changed = [
        replace(CLAIM, rule=Rule(rule.at_most(1001), rule.at_most(2000))),
        replace(CLAIM, quantity=replace(ONE, cadence=500)),
        replace(CLAIM, quantity=replace(ONE, runs=Selection(("base",), ("a_s1",)))),
        replace(CLAIM, quantity=replace(ONE, function=_count)),
        replace(CLAIM, all_seeds=None),
        replace(CLAIM, statement="It groks late."),
    ]
    digests = {rules_digest([claim]) for claim in (CLAIM, *changed)}
    assert len(digests) == len(changed) + 1
    assert rules_digest([replace(CLAIM, where="§2")]) == rules_digest([CLAIM])


def test_rows_have_the_rule_in_words_and_what_was_found() -> None:
    rules = claim_rows([CLAIM])
    assert "verdict" not in rules[0]
    assert rules[0]["rule"] == (
        "mean grok step of a_s0. Reproduced if the value ≤ 1,000; partly if the value ≤ 2,000; else not reproduced."
    )
    row = claim_rows([CLAIM], {"early": judge(CLAIM, evidence(1000, 3000))})[0]
    assert row["interval"] == [900, 1100]
    assert (row["verdict"], row["all_seeds_verdict"]) == ("reproduced", "partly")
