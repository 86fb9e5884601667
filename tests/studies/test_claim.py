"""Claims: judged by how often the paper's design would have shown them, and changed by nothing but the digest."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from planted import run

from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies import Claim, Estimand, Evidence, Rule, Selection, Stratum, Verdict, judge, rule, rules_digest
from grokscope.studies.claim import claim_rows
from grokscope.studies.reduction import mean, total


def read_grok(record: RunRecord) -> Mapping[str, float]:
    grokked = record.timeline.grokked
    return {} if grokked is None else {"grok": float(grokked), "early": float(grokked <= 1000)}


def read_other(record: RunRecord) -> Mapping[str, float]:
    return {"groks": 1.0, "early": 1.0}


def read_nothing(record: RunRecord) -> Mapping[str, float]:
    return {}


def evidence(*groks: int | None, is_quick: bool = False) -> Evidence:
    specs = [RunSpec().with_seed(seed) for seed in range(len(groks))]
    runs = {f"a_s{i}": run(spec, grok=grok) for i, (spec, grok) in enumerate(zip(specs, groks, strict=True))}
    return Evidence({"base": runs}, is_quick)


ONE = (Stratum("a", Selection(("base",)), 1, ("a_s0",)),)
GROK = Estimand(
    "grok step", ONE, read_grok, {"grok": mean("grok"), "early": total("early")}, "{grok:,.0f}", ("grok", ",.0f")
)
CLAIM = Claim("early", "It groks early.", "§1", "1,000", GROK, Rule(rule.at_most(1000, "grok")), "tab-a")


def test_the_share_of_single_runs_that_show_it_is_exact() -> None:
    found = judge(CLAIM, evidence(*[1000] * 8, *[3000] * 24))
    assert (found.verdict, found.n, found.own, found.own_shown) == (Verdict.REPRODUCED, 32, "1,000", True)
    assert found.share is not None
    assert found.share.value == 0.25
    assert (round(found.share.low, 3), round(found.share.high, 3)) == (0.115, 0.434)  # Clopper–Pearson
    assert found.effect_text.startswith("2,500 [")
    assert found.why == "25.0 % of 10,000 resampled designs show it."


def test_a_share_of_designs_is_that_of_the_binomial_law() -> None:
    nine = replace(GROK, strata=(replace(ONE[0], drawn=3),))
    found = judge(
        replace(CLAIM, estimand=nine, rule=Rule(rule.more_than(1, "early", operator="="))), evidence(*[1000, 3000] * 16)
    )
    assert found.share is not None
    assert found.share.value == pytest.approx(0.125, abs=0.01)
    assert found.share.low < 0.08
    assert found.share.high > 0.18
    assert found.verdict is Verdict.UNLIKELY
    assert not found.is_firm


@pytest.mark.parametrize(
    ("early", "runs", "verdict", "is_firm", "is_provisional"),
    [
        (32, 32, Verdict.REPRODUCED, True, False),
        (30, 31, Verdict.REPRODUCED, False, False),  # too few to be firm
        (8, 8, Verdict.REPRODUCED, False, True),
        (0, 8, Verdict.UNLIKELY, False, True),  # too few to refute
        (1, 3, Verdict.UNLIKELY, False, True),  # and one of three, which may be one of a hundred, to reproduce
        (2, 3, Verdict.REPRODUCED, False, True),
        (0, 32, Verdict.REFUTED, False, False),  # 0 of 32 does not exclude one in a hundred
        (0, 400, Verdict.REFUTED, True, False),
    ],
)
def test_a_verdict_is_firm_where_other_runs_would_give_the_same(
    early: int, runs: int, verdict: Verdict, is_firm: bool, is_provisional: bool
) -> None:
    found = judge(CLAIM, evidence(*[1000] * early, *[3000] * (runs - early)))
    assert (found.verdict, found.is_firm, found.is_provisional) == (verdict, is_firm, is_provisional)


def test_the_reduced_version_is_provisional_whatever_it_says() -> None:
    found = judge(CLAIM, evidence(*[1000] * 32, is_quick=True))
    assert (found.verdict, found.is_firm, found.is_provisional) == (Verdict.REPRODUCED, False, True)


def test_the_same_records_give_the_same_verdict_in_any_order() -> None:
    groks = [1000, 3000, 2000, 900] * 8
    assert judge(CLAIM, evidence(*groks)) == judge(CLAIM, evidence(*groks))


def test_missing_runs_are_named_and_decide_nothing() -> None:
    found = judge(CLAIM, Evidence({"base": {}}))
    assert (found.verdict, found.effect_text, found.n, found.share) == (Verdict.NOT_TESTABLE, "—", 0, None)
    assert found.why == "No runs stored yet: runs of base."
    assert judge(CLAIM, evidence(1000)).why == "1 of the 2 runs of a that it needs are stored."
    several = replace(GROK, strata=(replace(ONE[0], drawn=9),))
    assert judge(replace(CLAIM, estimand=several), evidence(*[1000] * 5)).why.startswith("5 of the 9 runs of a")
    unmeasured = replace(CLAIM, estimand=replace(GROK, read=read_nothing))
    assert judge(unmeasured, evidence(*[1000] * 5)).why == "What it is about was measured in 0 of the 2 runs of a."


def test_a_column_that_is_read_of_no_run_refutes_nothing() -> None:
    found = judge(replace(CLAIM, estimand=replace(GROK, read=read_other)), evidence(*[1000] * 32))
    assert (found.verdict, found.why) == (Verdict.NOT_TESTABLE, "'grok' is read of no run; did you mean 'groks'?")


def test_without_the_papers_own_runs_the_verdict_stands_and_their_column_is_empty() -> None:
    found = judge(
        replace(CLAIM, estimand=replace(GROK, strata=(replace(ONE[0], reported=("b",)),))), evidence(*[1000] * 4)
    )
    assert (found.verdict, found.own, found.own_shown) == (Verdict.REPRODUCED, "", None)


def test_what_no_run_can_decide_is_never_decided() -> None:
    found = judge(replace(CLAIM, rule=Rule(untestable="Nothing could make it false.")), evidence(*[1000] * 32))
    assert (found.verdict, found.why, found.share) == (Verdict.NOT_TESTABLE, "Nothing could make it false.", None)


def test_the_digest_covers_all_that_decides() -> None:
    changed: list[Any] = [
        replace(CLAIM, rule=Rule(rule.at_most(1001, "grok"))),
        replace(CLAIM, rule=Rule(rule.at_most(1000, "grok"), reproduced=0.3)),
        replace(CLAIM, estimand=replace(GROK, cadence=500)),
        replace(CLAIM, estimand=replace(GROK, strata=(replace(ONE[0], drawn=2),))),
        replace(CLAIM, estimand=replace(GROK, strata=(replace(ONE[0], reported=("a_s1",)),))),
        replace(CLAIM, estimand=replace(GROK, read=read_nothing)),
        replace(CLAIM, estimand=replace(GROK, parts={"grok": total("grok"), "early": total("early")})),
        replace(CLAIM, statement="It groks late."),
    ]
    digests = {rules_digest([claim]) for claim in (CLAIM, *changed)}
    assert len(digests) == len(changed) + 1
    assert rules_digest([replace(CLAIM, where="§2")]) == rules_digest([CLAIM])


def test_the_digest_covers_how_a_run_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def at(self: RunRecord, step: int, column: str) -> float:
        return 0.0

    before = rules_digest([CLAIM])
    monkeypatch.setattr(RunRecord, "at", at)
    assert rules_digest([CLAIM]) != before


def test_rows_have_the_rule_in_words_and_what_was_found() -> None:
    rules = claim_rows([CLAIM])
    assert "verdict" not in rules[0]
    assert rules[0]["rule"].startswith("grok step; design: 1 of a (runs). A design shows it if grok ≤ 1,000.")
    row = claim_rows([CLAIM], {"early": judge(CLAIM, evidence(1000, 3000))})[0]
    assert (row["verdict"], row["firm"], row["provisional"], row["own_shown"]) == ("reproduced", False, True, True)
    assert row["share"][0] == 0.5
    assert row["effects"]["grok"][0] == 2000
