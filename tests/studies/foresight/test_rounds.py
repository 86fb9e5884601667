"""All runs of a split in one command: rounds of probes until the boundary is found, then the rest."""

from pathlib import Path

import pytest
from sealed_folder import committed

from grokscope.runs import RunOutcome, Store
from grokscope.runs.packing import finished_records, unpack_records
from grokscope.runs.records import RunRecord
from grokscope.specs import Plan
from grokscope.studies.foresight import OPTIONS, STUDY, experiments, rounds
from grokscope.studies.foresight.bisection import MIXED
from grokscope.studies.foresight.cells import CELLS
from grokscope.studies.foresight.progress import ended_runs, replayed_probes
from grokscope.studies.foresight.rounds import main, short_budgets, train_split
from grokscope.studies.foresight.sealing import present_seal

NAMES = ("add_mod97-edge-w2-d64", "add_mod97-w2-f0.4", "shuffled-w4")
TEST = ("add_mod97-w2-f0.6",)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Three cells of development and one of test, and few seeds."""
    for name in [name for name in CELLS if name not in (*NAMES, *TEST)]:
        monkeypatch.delitem(CELLS, name)
    monkeypatch.setattr(experiments, "SEEDS", 5)
    monkeypatch.setattr(experiments, "PROBES", 4)
    return tmp_path / "runs"


def base(store: Path) -> Plan:
    return Plan(str(store), (CELLS[NAMES[0]].spec,), **OPTIONS)


def planted(plan: Plan) -> bool:
    """Every run ends: on the boundary cell those grok whose fraction is above one of its seed, near .12."""
    for spec in plan.runs:
        run = Store(plan.out).add(spec, plan.memberships.get(spec, ()))
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

    plan, is_finished = train_split("development", base(few), "tf32", {}, train)
    assert is_finished
    shares = replayed_probes(ended_runs(finished_records(plan)))[NAMES[0]]
    own = [fraction for fraction, share in shares.items() if MIXED[0] <= share <= MIXED[1]]
    assert len(own) == 1
    assert 0.11 < own[0] < 0.15
    by_fraction = [spec.train_fraction for spec in plan.runs if not spec.shuffled_labels]
    assert by_fraction.count(own[0]) == 5, "all seeds at its own fraction"
    assert {by_fraction.count(one) for one in shares if one != own[0]} == {4}, "and those of every probe"
    assert sum(spec.shuffled_labels for spec in plan.runs) == 5
    trained = [spec for one in plans for spec in one.runs]
    assert len({*trained}) == len(trained) == len(plan.runs), "none twice"
    assert not any(spec.shuffled_labels for spec in plans[0].runs)
    assert (plan.stop_after_grokking, plan.tier_signals) == (2000, True)
    assert len(STUDY.evidence(finished_records(plan)).unplaced) == 0, "each was made for an experiment of the study"


def test_a_lost_store_is_made_up_for_by_what_was_packed(few: Path) -> None:
    first: list[Plan] = []

    def interrupted(plan: Plan) -> bool:
        first.append(plan)
        return planted(plan) if len(first) < 3 else False

    plan, is_finished = train_split("development", base(few), "tf32", {}, interrupted)
    assert not is_finished
    ended = ended_runs(finished_records(plan))
    assert len(ended) == 8
    second, is_finished = train_split("development", base(few.with_name("anew")), "tf32", ended, planted)
    assert is_finished
    assert not {*plan.select(first[0].runs).runs} & {*second.runs}
    whole, _ = train_split("development", base(few.with_name("whole")), "tf32", {}, planted)
    assert {*whole.runs} == {*first[0].runs, *first[1].runs, *second.runs}
    _, is_finished = train_split(
        "development", base(few), "tf32", ended_runs(finished_records(whole)), lambda plan: False
    )
    assert is_finished


def test_further_seeds_and_other_cells_of_the_same_settings_move_no_boundary(few: Path) -> None:
    cell = CELLS[NAMES[0]]
    ended = {rounds.plain_hash(cell.run(seed, 0.2)): seed < 2 for seed in range(4)}
    assert replayed_probes(ended) == {cell.name: {0.2: 0.5}}
    more = {rounds.plain_hash(cell.run(seed, 0.2)): False for seed in range(4, 28)}
    other = {rounds.plain_hash(cell.run(seed, 0.08)): False for seed in range(8)}
    assert replayed_probes(ended | more | other) == {cell.name: {0.2: 0.5}}
    assert not replayed_probes({rounds.plain_hash(cell.run(0, 0.2)): True}), "a probe counts once all its seeds ended"


def test_no_test_run_is_trained_without_the_seal_of_what_is_shipped(
    few: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rounds, "run_locally", lambda plan, report, workers: planted(plan))
    seal, out = few.with_name("seal.json"), few.with_name("test.records.gz")
    line = ["test", "--store", str(few), "--out", str(out), "--device", "cpu"]
    assert main(line) == 2
    assert "--seal names the committed seal" in capsys.readouterr().err
    present_seal().save(seal)
    monkeypatch.setattr(experiments, "SEEDS", 4)
    assert main([*line, "--seal", str(seal)]) == 2
    assert "what differs: the test runs" in capsys.readouterr().err
    monkeypatch.setattr(experiments, "SEEDS", 5)
    monkeypatch.delenv("GROKSCOPE_COMMIT", raising=False)
    assert main([*line, "--seal", str(seal)]) == 2
    assert "is not committed as it is" in capsys.readouterr().err
    assert not few.exists()
    committed(seal)
    assert main([*line, "--seal", str(seal)]) == 0
    assert len(unpack_records(out)) == 5
    assert main([*line[:2], str(few.with_name("other")), *line[3:], "--seal", str(seal), "--from", str(out)]) == 0
    assert '"trained": 0' in capsys.readouterr().out


def test_a_limit_that_leaves_no_time_trains_nothing(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = few.with_name("none.records.gz")
    assert main(["development", "--store", str(few), "--out", str(out), "--device", "cpu", "--limit", "60"]) == 75
    assert unpack_records(out) == []


def test_budgets_that_turned_out_too_short_are_named() -> None:
    cell = CELLS[NAMES[1]]
    records = [RunRecord(cell.run(seed), RunOutcome("grokked", grokked=2000), {}, {}) for seed in range(3)]
    [(name, found)] = short_budgets(records).items()
    assert name.startswith("add_mod97 λ=2")
    assert found == (8500, 2000.0)
    assert not short_budgets([RunRecord(cell.run(0), RunOutcome("grokked", grokked=1000), {}, {})])
