"""Which branches a law is fitted to, and when there is one."""

from dataclasses import replace
from math import isnan

import pytest
from fork_records import PARENT, demo, fork_record, record
from hypothesis import given, settings
from hypothesis import strategies as st

from grokscope.law import (
    begins_in,
    count_foreign_forks,
    fit_censored,
    fit_constant,
    fit_exponent,
    fit_law,
    fit_mean_constant,
    fork_families,
    forked_run,
    law_of,
)
from grokscope.runs.outcome import RunOutcome
from grokscope.specs import Membership
from grokscope.timeline import Outcome

CROSS, SPREAD = Membership("synchronization", "crossprime", "x"), Membership("synchronization", "spread", "y")


def seeds(count: int, *made_for: Membership) -> list:
    """Forks of several seeds at three λ, with λ·Δt near 3,000."""
    found = []
    for seed in range(count):
        parent = PARENT.with_seed(seed)
        found += [fork_record(parent, d, 100 * round((30 + 3 * seed) / d), *made_for) for d in (1.0, 2.0, 3.0)]
    return found


def test_the_parent_is_the_branch_it_is() -> None:
    (family,) = fork_families(demo())
    assert [(b.run.weight_decay, b.run.steps_to_grok, b.is_parent) for b in family.branches] == [
        (1.0, 2700, True),
        (2.0, 1800, False),
        (3.0, 1200, False),
    ]
    assert [branch.place for branch in family.branches] == [0, 1, 2]
    assert family.size == "2 forks and 1 parent"
    law = law_of(family.runs)
    assert repr(law.constant) == repr(fit_censored(family.runs))  # an interval of NaN is not equal to itself
    assert law.constant.parameters["constant"].value == pytest.approx(3169, abs=1)  # not the mean, 3300
    assert law.power is None
    assert law.reason == "4 points are needed to test 2 parameters, and there are 3"


def test_a_parent_is_left_out_where_a_fork_has_its_decay_or_it_was_trained_again() -> None:
    same = [*demo(), fork_record(PARENT, 1.0, 2500)]
    (family,) = fork_families(same)
    assert not any(branch.is_parent for branch in family.branches)
    (family,) = fork_families([record(PARENT, 3700, norm=51.0), *demo()[1:]])
    assert family.size == "2 forks"
    (family,) = fork_families(demo()[1:])
    assert family.size == "2 forks"


def test_two_points_have_no_law() -> None:
    (family,) = fork_families(demo()[1:])
    law = law_of(family.runs)
    assert (law.constant, law.power) == (None, None)
    assert isnan(law.aic_difference)
    assert law.reason == "3 points are needed to test 1 parameter, and there are 2"
    assert law_of(family.runs[:1]).reason == "one value of λ: nothing to compare"


def test_studies_are_not_pooled() -> None:
    cross, spread = seeds(3, CROSS), [fork_record(PARENT.with_seed(seed), 1.0, 900, SPREAD) for seed in range(7, 12)]
    both = fork_record(PARENT.with_seed(20), 1.0, 3000, CROSS, SPREAD)
    families = {family.study: family for family in fork_families([*cross, *spread, both])}
    assert {study: len(family.branches) for study, family in families.items()} == {
        "synchronization/crossprime": 10,
        "synchronization/spread": 6,
    }
    alone = law_of(fork_families([*cross, both])[0].runs)
    assert law_of(families["synchronization/crossprime"].runs).constant.parameters == alone.constant.parameters
    assert law_of(families["synchronization/spread"].runs).constant is None


def test_other_configurations_steps_and_unfinished_runs_are_other_families_or_none() -> None:
    usual = seeds(2)
    wide = [replace(one, spec=replace(one.spec, train_fraction=0.5)) for one in usual]
    scaled = [fork_record(PARENT, d, 900, scale=2.0) for d in (1.0, 2.0, 3.0)]
    late = [replace(one, spec=replace(one.spec, fork=replace(one.spec.fork, step=500))) for one in usual]
    running = [replace(one, outcome=RunOutcome()) for one in usual]
    families = fork_families([*usual, *wide, *scaled, *late, *running])
    assert [(family.step, len(family.branches)) for family in families] == [(1000, 6), (1000, 6), (500, 6)]
    assert {family.study for family in families} == {""}


def test_the_fits_are_those_of_the_results() -> None:
    runs = [forked_run(one.spec, one.timeline) for one in seeds(4)]
    law = law_of(runs)
    constant, power = fit_censored(runs), fit_censored(runs, "power")
    assert law.constant == fit_constant(runs) == constant
    assert law.power == fit_exponent(runs) == power
    assert law.aic_difference == power.aic - constant.aic
    assert law.reason == ""


def test_runs_that_have_not_yet_grokked_are_in_the_law() -> None:
    runs = [forked_run(one.spec, one.timeline) for one in seeds(4)]
    slow = [replace(run, steps_to_grok=None, outcome=Outcome.NEVER, watched=8000, draw=9) for run in runs[:1]]
    with_slow, without = (law_of(some).constant.parameters["constant"].value for some in ([*runs, *slow], runs))
    assert with_slow > 1.02 * without
    assert fit_mean_constant([*runs, *slow]).parameters == fit_mean_constant(runs).parameters


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(9)))
def test_the_law_does_not_know_the_order_of_runs(order: list[int]) -> None:
    records = seeds(3)
    shuffled = law_of(fork_families([records[place] for place in order])[0].runs)
    usual = law_of(fork_families(records)[0].runs)
    assert shuffled.constant.parameters == usual.constant.parameters
    assert shuffled.power.parameters == usual.power.parameters


def test_a_missing_parent_splits_no_family() -> None:
    parents = [record(PARENT.with_seed(seed), 3700) for seed in range(3)]
    forks = [fork_record(one.spec, decay, 1800) for one in parents for decay in (2.0, 3.0)]
    for known, size in ((parents, "6 forks and 3 parents"), (parents[1:], "6 forks and 2 parents"), ([], "6 forks")):
        (family,) = fork_families([*known, *forks])
        assert family.size == size


def test_parents_with_other_decay_have_other_families() -> None:
    other = replace(PARENT, training=replace(PARENT.training, weight_decay=0.5))
    forks = [fork_record(one, decay, 1800) for one in (PARENT, other) for decay in (2.0, 3.0)]
    assert len(fork_families([record(PARENT, 3700), record(other, 5000), *forks])) == 2


def test_two_values_of_decay_have_no_r_squared() -> None:
    runs = [forked_run(one.spec, one.timeline) for one in seeds(3) if one.spec.training.weight_decay < 3]
    assert isnan(fit_mean_constant(runs).r_squared)
    assert fit_mean_constant(runs).parameters == fit_law(runs, "mean").parameters
    assert not isnan(fit_mean_constant([forked_run(one.spec, one.timeline) for one in seeds(3)]).r_squared)


def test_a_fork_of_another_training_of_its_parent_is_counted() -> None:
    parent, *forks = demo()
    scaled = fork_record(PARENT, 2.0, 900, scale=2.0)
    assert all(begins_in(one, parent) for one in forks)
    assert not begins_in(parent, parent)
    assert not begins_in(scaled, parent), "its norm is not twice its parent's"
    assert begins_in(scaled, record(PARENT, 3700, norm=25.0))
    assert count_foreign_forks([parent, *forks, scaled]) == (1, 3)
    assert count_foreign_forks([record(PARENT, 3700, norm=51.0), *forks]) == (2, 2)
    assert count_foreign_forks(forks) == (0, 0)
