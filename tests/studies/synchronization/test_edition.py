"""The second edition's runs: enough seeds, forks with their parents, and names that the first edition's claims find."""

from collections import Counter

import pytest

from grokscope.activations import lacking_needs
from grokscope.jobs.preparation import reject_impossible
from grokscope.measures.catalogue import measure_named
from grokscope.runs import Store
from grokscope.specs import RunSpec
from grokscope.studies import find_study
from grokscope.studies.parts import Part, parts_of
from grokscope.studies.run_set import RunSet
from grokscope.studies.selection import configuration
from grokscope.studies.synchronization.edition import FORKED, LESS, NEW, RUN_SETS, SEEDS, norm_holds
from grokscope.studies.synchronization.experiments import EXPERIMENTS
from grokscope.tasks import named_task

STUDY = find_study("synchronization")
RUNS = {name: experiment(None, "tf32") for one in RUN_SETS for name, experiment in one.experiments.items()}
FEWER = {"Aff11": LESS, "mult_mod97_long": 1, "shuffled": 64}  # no claim rests on the first two


@pytest.fixture(scope="module")
def parts() -> list[Part]:
    return parts_of(STUDY, "tf32")


def own_steps(spec: RunSpec) -> int:
    return spec.training.steps - (spec.fork.step if spec.fork else 0)


@pytest.mark.parametrize("experiment", RUNS)
def test_every_configuration_has_its_seeds(experiment: str) -> None:
    counts = Counter(configuration(name) for name in RUNS[experiment])
    for name, count in counts.items():
        assert count == FEWER.get(name, SEEDS), name


def test_the_whole_is_as_large_as_planned() -> None:
    distinct = {spec.content_hash: own_steps(spec) for runs in RUNS.values() for spec in runs.values()}
    assert 36e6 < sum(distinct.values()) < 42e6
    budgets = {spec.training.steps for spec in RUNS["long"].values()}
    assert min(budgets) >= 60_000
    assert len({configuration(name) for name in RUNS["long"]}) == 4
    assert sum(len(RUNS[name]) for name in ("negatives", "structureless")) >= 128


@pytest.mark.parametrize("experiment", sorted(RUNS.keys() & EXPERIMENTS.keys()))
def test_what_the_first_edition_has_keeps_its_names(experiment: str) -> None:
    first = {configuration(name) for name in EXPERIMENTS[experiment](None, "tf32")}
    gone = {"threshold": {"frozen_x1", "frozen_x3", "matched_x1", "matched_x3"}}  # arms that cannot fail
    gone |= {"negatives": {"weak_decay", "little_data"}, "accelerator": {"random_x10", "restored_x10"}}
    assert {configuration(name) for name in RUNS[experiment]} == first - gone.get(experiment, set())


def test_every_column_that_a_claim_names_is_measured() -> None:
    def columns(one: RunSet) -> set[str]:
        return {
            f"{column}{reading.removeprefix(reading.partition('@')[0])}"
            for reading in (*one.measures, *one.milestones)
            for column in measure_named(reading.partition("@")[0]).columns
        }

    measured = set[str]().union(*map(columns, RUN_SETS))
    named = {claim.name: claim.estimand.options.get("column") for claim in STUDY.claims}
    wanted = {name: column for name, column in named.items() if column}
    assert {"block-1-after-block-0", "no-false-alarms-without-structure"} <= wanted.keys()
    assert not {name: column for name, column in wanted.items() if column not in measured}


def test_tables_without_a_basis_are_measured_over_the_order_of_their_symbols() -> None:
    tasks = {spec.task for spec in RUNS["structureless"].values()}
    assert not any(named_task(task).bases for task in tasks)
    assert not any(measure_named("control").needs & lacking_needs(named_task(task)) for task in tasks)
    assert "structureless" in FORKED.measured
    assert "control" in FORKED.measures


def test_what_is_new_is_known_to_claims() -> None:
    assert set(RUNS) == set(EXPERIMENTS) | set(NEW)
    assert set(STUDY.experiments) == set(RUNS)


def test_no_run_belongs_to_two_run_sets() -> None:
    hashes = [{spec.content_hash for name in one.experiments for spec in RUNS[name].values()} for one in RUN_SETS]
    assert not hashes[0] & hashes[1]


def test_lambda_spans_a_hundredfold_and_the_rate_tenfold() -> None:
    trainings = [spec.training for spec in RUNS["clock"].values()]
    assert {min(t.known_weight_decay for t in trainings), max(t.known_weight_decay for t in trainings)} >= {0.03}
    assert max(t.known_weight_decay for t in trainings) >= 3
    assert {t.learning_rate for t in trainings} == {3e-4, 1e-3, 3e-3}
    assert all(t.steps * t.known_weight_decay * t.learning_rate >= 3.4 for t in trainings), "budgets suffice by λt"


def test_norms_are_held_from_the_fork_on_and_reach_below_the_reported_threshold() -> None:
    holds = [hold for hold in norm_holds().values() if hold is not None]
    assert {hold.start for hold in holds} == {1000, 1500, 2000, 2500}
    levels = [hold.level for hold in holds if hold.level is not None]
    assert sum(level > 23.5 for level in levels) >= 3
    assert sum(1 < level < 23.5 for level in levels) >= 2
    assert RUNS["norms"]["free_s42"] == RUNS["fork"]["add_mod97_s42_x1"]


def test_every_part_has_the_parents_of_its_forks_and_parts_share_no_run(parts: list[Part]) -> None:
    seen: set[str] = set()
    for part in parts:
        own = {spec.content_hash for spec in part.plan.runs}
        assert {spec.fork.parent for spec in part.plan.runs if spec.fork} <= own
        assert not own & seen
        seen |= own
    assert seen == {spec.content_hash for runs in RUNS.values() for spec in runs.values()}


def test_every_part_ends_within_minutes_and_can_be_trained(parts: list[Part], tmp_path) -> None:
    for part in parts:
        assert part.seconds <= 330
        reject_impossible(part.plan.runs, Store(tmp_path), "cpu", (*part.plan.measures, *part.plan.milestones))
        assert part.plan.signals
    assert [part.number for part in parts] == list(range(1, len(parts) + 1))


def test_every_run_of_a_part_is_placed_in_the_study(parts: list[Part]) -> None:
    placed = Counter(member for part in parts for own in part.plan.made_for for member in own)
    assert set(placed.values()) == {1}
    assert {(member.experiment, member.name) for member in placed} == {
        (experiment, name) for experiment, runs in RUNS.items() for name in runs
    }
