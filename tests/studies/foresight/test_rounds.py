"""All runs of a split in one command: rounds of probes until the boundary is found, then the rest."""

from itertools import pairwise
from pathlib import Path

import pytest

from grokscope.runs import RunOutcome, Store
from grokscope.runs.packing import finished_records
from grokscope.runs.records import RunRecord
from grokscope.specs import Plan
from grokscope.studies.foresight import experiments
from grokscope.studies.foresight.bisection import MIXED
from grokscope.studies.foresight.cells import CELLS
from grokscope.studies.foresight.rounds import short_budgets, train_split

NAMES = ("add_mod97-edge-w2-d64", "add_mod97-w2-f0.4", "shuffled-w4")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Three cells of development, few seeds, and no probes so far."""
    for name in [name for name in CELLS if name not in NAMES]:
        monkeypatch.delitem(CELLS, name)
    monkeypatch.setattr(experiments, "SEEDS", 5)
    monkeypatch.setattr(experiments, "PROBES", 4)
    (tmp_path / "boundaries.json").write_text("{}")
    monkeypatch.setattr(experiments, "BOUNDARIES", tmp_path / "boundaries.json")
    return tmp_path / "runs"


def planted(plan: Plan) -> bool:
    """Every run ends: on the boundary cell those grok whose fraction is above one of its seed, near .12."""
    for spec in plan.runs:
        run = Store(plan.out).add(spec)
        if not run.outcome.is_finished:
            grokked = spec.train_fraction > 0.11 + 0.01 * spec.seeds.split and not spec.shuffled_labels
            run.append({"step": 0, "train_accuracy": 1.0, "validation_accuracy": 0.0})
            run.append({"step": 900, "train_accuracy": 1.0, "validation_accuracy": float(grokked)})
            run.finish(RunOutcome("grokked", grokked=900) if grokked else RunOutcome("never"))
    return True


def test_probes_come_first_and_the_cell_stands_where_some_seeds_grok(few: Path) -> None:
    plans: list[Plan] = []

    def train(plan: Plan) -> bool:
        plans.append(plan)
        return planted(plan)

    probes, plan, is_finished = train_split("development", str(few), "tf32", "cpu", train)
    assert is_finished
    shares = probes[NAMES[0]]
    own = [fraction for fraction, share in shares.items() if MIXED[0] <= share <= MIXED[1]]
    assert len(own) == 1
    assert 0.11 < own[0] < 0.15
    by_fraction = [spec.train_fraction for spec in plan.runs if spec.training.steps and not spec.shuffled_labels]
    assert by_fraction.count(own[0]) == 5, "all seeds at its own fraction"
    assert {by_fraction.count(one) for one in shares if one != own[0]} == {4}, "and those of every probe"
    assert sum(spec.shuffled_labels for spec in plan.runs) == 5
    for before, after in pairwise(plans):
        assert {*before.runs} <= {*after.runs}, "what was trained stays in the collection"
    assert not any(spec.shuffled_labels for spec in plans[0].runs)
    assert plan.stop_after_grokking == 2000
    assert plan.tier_signals
    assert len(finished_records(plan)) == len(plan.runs)


def test_an_interruption_keeps_what_is_known_and_the_next_call_goes_on(few: Path) -> None:
    calls: list[int] = []

    def interrupted(plan: Plan) -> bool:
        calls.append(len(plan.runs))
        return planted(plan) if len(calls) < 3 else False

    probes, _, is_finished = train_split("development", str(few), "tf32", "cpu", interrupted)
    assert not is_finished
    assert len(probes[NAMES[0]]) == 2
    assert train_split("development", str(few), "tf32", "cpu", planted)[2]


def test_budgets_that_turned_out_too_short_are_named() -> None:
    cell = CELLS[NAMES[1]]
    log = {"step": [0, 1000, 2000], "train_accuracy": [1.0] * 3, "validation_accuracy": [0.0, 0.0, 1.0]}
    records = [RunRecord(cell.run(seed), RunOutcome("grokked", grokked=2000), log, {}) for seed in range(3)]
    [(name, found)] = short_budgets(records).items()
    assert name.startswith("add_mod97 λ=2")
    assert found == (8500, 2000.0)
    soon = log | {"validation_accuracy": [0.0, 1.0, 1.0]}
    assert not short_budgets([RunRecord(cell.run(0), RunOutcome("grokked", grokked=1000), soon, {})])
