"""Two configurations are compared by their grok steps; triggers that fired too late are counted apart."""

from dataclasses import replace

from planted import EMPTY, evidence

from grokscope.studies import Evidence, Selection
from grokscope.studies.synchronization.comparisons import grokking, holm_adjusted, log_rank

RUNS = {f"causal_s{seed}": {"grok": 3000 + 100 * (seed % 4)} for seed in (42, 0, 1)}
OTHERS = {f"default_s{seed}": {"grok": 6000 + 100 * (seed % 4)} for seed in (42, 0, 1)}


def test_a_configuration_without_runs_is_compared_with_nothing() -> None:
    test = log_rank("sensitivity", "causal", "default")
    both = evidence("sensitivity", RUNS | OTHERS).measure(test)
    assert 0 < both.number() < 0.05
    assert both.n == 6
    assert evidence("sensitivity", RUNS).measure(test).missing
    assert EMPTY.measure(test).missing


def test_only_known_tests_are_counted_by_holms_rule() -> None:
    tests = {name: log_rank("sensitivity", name, "default") for name in ("causal", "clip_1")}
    found = evidence("sensitivity", RUNS | OTHERS)
    adjusted = found.measure(holm_adjusted(tests, "sensitivity"))
    assert adjusted.parts == {"causal": found.measure(tests["causal"]).value}


def test_runs_are_counted_with_those_that_never_grok_and_those_raised_too_late() -> None:
    changes: dict[str, dict[str, int | None]] = {"fsd_x3_s42": {"grok": 3000}, "fsd_x3_s0": {"grok": None}}
    runs = dict(evidence("accelerator", changes).experiment("accelerator"))
    runs["fsd_x3_s42"] = replace(
        runs["fsd_x3_s42"], outcome=replace(runs["fsd_x3_s42"].outcome, trigger={"fired_at": 3000})
    )
    measured = Evidence({"accelerator": runs}).measure(grokking(Selection(("accelerator",))))
    assert measured.text == "1 of 2 grok; of the 1 in which λ was raised before grokking, 0 grok"
    assert (measured.number("grok"), measured.number("late"), measured.number("mean")) == (1, 1, 3000)
