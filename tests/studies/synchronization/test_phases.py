"""The claims of §5.3 can hold and can fail; runs without a phase are counted and named."""

import re
from dataclasses import replace
from math import nan

import pytest
from judged import CLAIMS, finding, is_decisive, only, with_runs
from paper_runs import evidence, record_of
from planted import EMPTY

from grokscope.studies import Evidence, Verdict, judge

OWN = "add_mod97_s42"


@pytest.mark.parametrize(
    "name", ["rank-collapse", "phase-2-length", "validation-in-phase-2", "memorised-by-1000", "norm-minimum"]
)
def test_claims_hold_on_runs_that_follow_the_paper_and_fail_on_others(name: str) -> None:
    assert is_decisive(name)


def test_the_gap_collapses_at_grokking_in_planted_runs_of_either_kind() -> None:
    assert finding("gap-collapse").verdict is finding("gap-collapse", False).verdict is Verdict.REPRODUCED
    record = evidence(True).records["base"][OWN]
    rising = [min(step / 20_000, 0.96) for step in record.evaluations["step"]]
    slow = replace(record, evaluations=record.evaluations | {"validation_accuracy": rising})
    assert judge(CLAIMS["gap-collapse"], with_runs("base", **{OWN: slow})).verdict is Verdict.NOT


@pytest.mark.parametrize("name", ["norm-phase-1", "norm-phase-2"])
def test_a_norm_that_grows_does_not_fall(name: str) -> None:
    spec = evidence(True).records["base"][OWN].spec
    growing = record_of(spec, 4000, 1500, rank_1=2500, grok_norm=100.0)
    assert judge(CLAIMS[name], with_runs("base", **{OWN: growing})).verdict is Verdict.NOT
    assert finding(name).verdict in (Verdict.REPRODUCED, Verdict.PARTLY)


@pytest.mark.parametrize("name", ["gap-peak", "gap-in-phase-2", "circuit-complete"])
def test_contradictions_of_the_paper_stay_contradictions(name: str) -> None:
    for found in (finding(name), finding(name, False), judge(CLAIMS[name], EMPTY)):
        assert found.verdict is Verdict.INCONSISTENT
        assert len(found.why) > 20
        assert found.all_seeds_verdict is None
    assert judge(CLAIMS[name], EMPTY).value == "not measured"
    assert finding(name).value != "not measured"


def test_phase_1_has_no_end_where_rank_1_comes_after_grokking() -> None:
    spec = evidence(True).records["base"][OWN].spec
    found = with_runs("base", **{OWN: record_of(spec, 4000, 1500, rank_1=5600)})
    for name in ("norm-phase-1", "norm-phase-2", "phase-2-length", "validation-in-phase-2"):
        one = judge(CLAIMS[name], found)
        assert (one.value, one.verdict) == ("undefined", Verdict.NOT), name
    assert judge(CLAIMS["gap-in-phase-2"], found).value == "no checkpoint in Phase 2"


def test_the_length_of_phase_2_is_from_rank_1_and_from_no_other_rank() -> None:
    spec = evidence(True).records["base"][OWN].spec
    to_rank_2 = record_of(spec, 4000, 1500, rank_1=2500, final_rank=2.0)
    assert to_rank_2.timeline.liberated == 2500
    assert judge(CLAIMS["phase-2-length"], with_runs("base", **{OWN: to_rank_2})).value == "undefined"


def test_runs_without_a_phase_are_counted_with_those_that_have_one() -> None:
    base = evidence(True).records["base"]
    name = next(name for name in base if name.startswith("add_mod97_s") and name != OWN)
    found = with_runs("base", **{name: record_of(base[name].spec, 4000, 1500, rank_1=5600)})
    assert "(1 have no such phase) over " in judge(CLAIMS["norm-phase-1"], found).all_seeds


def test_all_seeds_are_all_runs_and_not_the_first() -> None:
    base = evidence(True).records["base"]
    seeds = [name for name in base if name.startswith("add_mod97_s")]
    late = {
        name: record_of(base[name].spec, 9000, 2000 + 500 * i, rank_1=2500 + 500 * i) for i, name in enumerate(seeds)
    }
    crossing, rank_1 = (f"{start + 250 * (len(seeds) - 1):,}" for start in (2000, 2500))
    found = judge(CLAIMS["circuit-complete"], with_runs("base", **late))
    assert f"FSD at {crossing}, rank 1 at {rank_1} over" in found.all_seeds


def test_in_the_quick_version_one_run_decides_only_what_no_other_seed_contradicts() -> None:
    agreeing = {f"add_mod97_s{seed}": evidence(True).records["base"][f"add_mod97_s{seed}"] for seed in (42, 0, 1)}
    contradicted = agreeing | {"add_mod97_s0": evidence(False).records["base"]["add_mod97_s0"]}
    for base, is_quick, verdict in (
        (agreeing, True, Verdict.REPRODUCED),
        (contradicted, True, Verdict.TOO_FEW),
        (contradicted, False, Verdict.REPRODUCED),
    ):
        found = judge(CLAIMS["norm-minimum"], Evidence(only("base", **base).records, is_quick))
        assert found.verdict is verdict
        assert found.value == judge(CLAIMS["norm-minimum"], only("base", **agreeing)).value


@pytest.mark.parametrize(
    ("hollow", "claim"), [("fsd", "circuit-complete"), ("rank", "rank-collapse"), ("norm", "norm-minimum")]
)
def test_runs_that_measured_nothing_raise_nothing(hollow: str, claim: str) -> None:
    base = {
        name: replace(run, evaluations=run.evaluations | {hollow: [nan] * len(run.evaluations["step"])})
        for name, run in evidence(True).records["base"].items()
    }
    found = only("base", **base)
    assert all(judge(one, found).why for one in CLAIMS.values())
    assert judge(CLAIMS[claim], found).verdict is not Verdict.REPRODUCED


def test_a_minus_is_a_minus_and_not_a_hyphen() -> None:
    for name, claim in CLAIMS.items():
        texts = [claim.describe_rule()]
        for follows in (True, False):
            found = finding(name, follows)
            texts += [found.value, found.why, found.all_seeds]
        assert not re.search(r"(?<![a-z0-9])-[0-9]", " ".join(texts)), name
