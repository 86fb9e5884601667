"""Estimands: units are runs, parents or seeds; what was not measured is left out; the paper's own are found by name."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from planted import run

from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies import Estimand, Selection, Stratum
from grokscope.studies.estimand import unit_of
from grokscope.studies.reduction import mean


def read_pair(runs: Mapping[str, RunRecord]) -> Mapping[str, float]:
    steps = [runs[name].timeline.grokked for name in ("x1", "x3") if name in runs]
    known = [step for step in steps if step is not None]
    return {"difference": float(known[0] - known[1])} if len(known) == 2 else {}


def read_cadence(record: RunRecord) -> Mapping[str, float]:
    return {"evaluations": float(len(record.evaluations["step"]))}


RUNS = {
    f"a_s{seed}_x{decay}": run(RunSpec().with_seed(10 * seed + decay), grok=3000 * (seed + 1) // decay // 100 * 100)
    for seed in range(3)
    for decay in (1, 3)
}
PARENTS = (Stratum("parents", Selection(("fork",)), 1, ("a_s1",)),)
PAIRS = Estimand("difference", PARENTS, read_pair, {"d": mean("difference")}, "{d:.0f}", ("d", ".0f"), unit="parent")


def test_a_parent_is_one_unit_with_its_branches() -> None:
    sample = PAIRS.sample({"fork": RUNS})
    assert sample.units == {"parents": ("a_s0", "a_s1", "a_s2")}
    assert sample.values["parents"]["difference"].tolist() == [2000, 4000, 6000]
    own = sample.only({"parents": ("a_s1",)})
    assert own is not None
    assert PAIRS.compute(own.values)["d"] == 4000
    assert sample.only({"parents": ("a_s7",)}) is None


def test_units_that_were_not_measured_are_left_out_and_counted() -> None:
    sample = PAIRS.sample({"fork": {name: one for name, one in RUNS.items() if name != "a_s1_x3"}})
    assert (sample.n, sample.unmeasured) == (2, 1)


@pytest.mark.parametrize(
    ("name", "unit", "expected"),
    [
        ("add_mod97_s42", "run", ("add_mod97_s42", "add_mod97_s42")),
        ("add_mod53_d7_x2", "parent", ("add_mod53_d7", "x2")),
        ("add_mod53_d7", "parent", ("add_mod53_d7", "parent")),
        ("fsd_x10_s42", "seed", ("s42", "fsd_x10")),
    ],
)
def test_names_say_which_unit_a_run_belongs_to(name: str, unit: str, expected: tuple[str, str]) -> None:
    assert unit_of(name, unit) == expected  # type: ignore[arg-type]


def test_runs_are_seen_at_the_cadence_of_the_paper() -> None:
    one = {"a_s0": run(RunSpec(), last=1000)}
    every = Estimand(
        "n", (Stratum("a", Selection(("base",))),), read_cadence, {"n": mean("evaluations")}, "", ("n", "")
    )
    assert every.sample({"base": one}).values["a"]["evaluations"].tolist() == [11]
    assert replace(every, cadence=500).sample({"base": one}).values["a"]["evaluations"].tolist() == [3]


def test_only_what_is_wanted_is_computed() -> None:
    values = PAIRS.sample({"fork": RUNS}).values
    assert PAIRS.compute(values, ["d"]).keys() == {"d", "n"}
    both = replace(PAIRS, parts={"d": mean("difference"), "other": mean("difference")})
    assert both.compute(values, ["d"]).keys() == {"d", "n"}
    assert both.compute(values).keys() == {"d", "other", "n"}
