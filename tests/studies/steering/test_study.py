"""The study of steering: equal tuning, rules that can fail, tables and figures of planted and of real runs."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from math import inf, log
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steering_runs import evidence, planted, record

from grokscope.cli import run
from grokscope.errors import InputError
from grokscope.runs.packing import read_head, save_records, unpack_records
from grokscope.runs.records import RunRecord
from grokscope.specs import Membership, RunSpec
from grokscope.studies import find_study, judge
from grokscope.studies.message import write_message
from grokscope.studies.part_run import slim
from grokscope.studies.rule import Verdict
from grokscope.studies.steering import STUDY, arms, choice, experiments, parts, speed
from grokscope.studies.steering.arms import ADAMW, FAMILIES, PUBLISHED, Setting, chosen_settings, final_arms
from grokscope.studies.steering.comparisons import geometric_mean_ratio, standing
from grokscope.studies.steering.device_time import device_seconds, evaluation_cost, orthogonalization
from grokscope.studies.steering.experiments import CELLS, RECIPE, TUNING_TASKS, UNSEEN, without_parts
from grokscope.studies.steering.quantities import choose_settings, outcome, stable_time
from grokscope.studies.steering.seconds import Speed, read_speed, save_speed, update_of
from grokscope.view.charts.figure import Figure
from grokscope.view.table import Table
from scripts import DOCS

BEST = {ADAMW: "λ = 3", "Muon, let go": "λ = 5, η = 0.02"}


def tuned(cell: str, arm: str, place: int) -> float:
    """Every family's first setting is best but where BEST names another; Muon let go at generalisation leads."""
    family, _, setting = arm.partition("/")
    best = BEST.get(family, next(iter(FAMILIES[family])))
    return 500 + 100 * [*FAMILIES].index(family) + 50 * place if setting == best and family != "Muon, let go" else (
        400 if setting == best else 1200
    )  # fmt: skip


@cache
def tuning_runs() -> Mapping[str, RunRecord]:
    """Two seeds of every setting."""
    return planted("tuning", tuned)


@pytest.fixture(autouse=True)
def forget_choice() -> Iterator[None]:
    """What was chosen in one test is not known in the next."""
    chosen_settings.cache_clear()
    yield
    chosen_settings.cache_clear()


def choose(path: Path, chosen: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a choice, which the study then reads."""
    path.write_text(json.dumps(chosen, ensure_ascii=False))
    monkeypatch.setattr(arms, "CHOICE_FILE", path)
    chosen_settings.cache_clear()


@cache
def best_settings() -> Mapping[str, str]:
    """What the planted tuning runs choose."""
    return choose_settings(tuning_runs())


@pytest.fixture
def choice_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A choice as the tuning runs write it."""
    choose(tmp_path / "chosen.json", best_settings(), monkeypatch)
    return tmp_path / "chosen.json"


def test_it_is_found_by_its_name() -> None:
    assert find_study("steering") is STUDY


def test_every_family_has_twelve_different_settings_and_eight_seeds_on_the_two_tuning_tasks() -> None:
    assert {len(settings) for settings in FAMILIES.values()} == {12}
    runs = STUDY.runs()["tuning"]
    assert len({run.content_hash for run in runs.values()}) == len(runs) == len(FAMILIES) * 12 * 2 * 8
    assert {run.task for run in runs.values()} == set(TUNING_TASKS) == {"add_mod97", "S5"}
    assert not {run.seeds.split for run in runs.values()} & set(range(1000))
    assert {frozenset(run.evaluation_steps) for run in runs.values()} == {frozenset(range(0, 5001, 50))}


def test_the_page_names_every_family_task_and_claim() -> None:
    page = " ".join((DOCS / "studies" / "steering.md").read_text(encoding="utf-8").split())
    assert all(claim.statement in page for claim in STUDY.claims)
    table = page[page.index("## The arms") : page.index("## The tasks")]
    assert [family for family in FAMILIES if family not in table] == []
    for cell in CELLS.values():
        row = page[page.index(f"| `{cell.task}` | {'yes' if cell.task in TUNING_TASKS else 'no'} |") :].partition(
            " | `"
        )[0]
        assert f"| {cell.budget:,} |" in row
        if cell.condition != "other model":
            assert f"{cell.train_fraction:g} of the rows" in row


def test_unseen_tasks_are_others_than_the_tuned_ones_and_those_of_the_lead() -> None:
    assert not {*UNSEEN} & {*TUNING_TASKS, "add_mod53", "mult_mod97"}
    assert {len(cells) for task, cells in UNSEEN.items() if "twohop" not in task} == {3}
    for task, cells in UNSEEN.items():
        base, *others = cells
        assert {cell.task for cell in cells} == {task}
        for other in others:
            changed = (other.architecture != base.architecture, other.train_fraction != base.train_fraction)
            assert sorted(changed) == [False, True]


def test_what_cannot_be_tuned_yet_is_not_run() -> None:
    if chosen_settings():
        pytest.skip("the tuning runs have chosen")
    assert final_arms() == {}
    assert {name for name, runs in STUDY.runs().items() if runs} == {"tuning", "hindsight"}


@pytest.mark.parametrize("shift", [0, 1])
def test_stable_is_the_first_step_from_which_it_stays(shift: int) -> None:
    run = next(iter(STUDY.runs(1)["tuning"].values()))
    assert stable_time(record(run, 700)) == 700
    assert stable_time(record(run, 700, falls_at=700 + 2000 + 50 * shift)) == (700 if shift else inf)
    assert stable_time(record(run, inf)) == inf


def test_the_shortest_mean_wait_over_both_tasks_is_chosen_and_what_fails_counts_as_its_budget() -> None:
    found = choose_settings(tuning_runs())
    assert found[ADAMW] == "λ = 3"
    assert next(iter(found)) == "Muon, let go"
    assert set(found) == set(FAMILIES)

    def fails_on_groups(cell: str, arm: str, place: int) -> float:
        return inf if arm.endswith(BEST[ADAMW]) and cell.startswith("S5") else tuned(cell, arm, place)

    assert choose_settings(planted("tuning", fails_on_groups))[ADAMW] != "λ = 3"


def test_a_setting_that_lacks_a_task_is_not_chosen() -> None:
    runs = {name: one for name, one in tuning_runs().items() if "S5, base/AdamW/λ = 3_" not in name}
    assert choose_settings(runs)[ADAMW] != "λ = 3"


def test_the_final_has_six_arms_with_adamw_and_the_best_families(choice_file: Path) -> None:
    assert len(final_arms()) == 6
    assert [*final_arms()][:2] == [ADAMW, "Muon, let go"]
    runs = STUDY.runs()["final"]
    everywhere = {(run.task, run.train_fraction, run.architecture, run.seeds.split) for run in runs.values()}
    assert len(runs) == len(everywhere) * 6
    assert {name for name, found in STUDY.runs(1).items() if not found} == set()


def test_every_run_is_in_one_part_and_no_part_takes_longer_than_nine_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the most expensive choice: Muon, whose steps cost most, in all arms of the final but two."""
    families = sorted(FAMILIES, key=lambda name: (not name.startswith("Muon, let go"), "Muon" not in name))
    dearest = {family: next(iter(FAMILIES[family])) for family in families}
    choose(tmp_path / "chosen.json", dearest, monkeypatch)
    known = STUDY.runs(precision="tf32")
    for name, runs in known.items():
        monkeypatch.setitem(STUDY.experiments, name, lambda n, precision, runs=runs: runs)
    planned = {part: parts.plan_of(part, "runs", precision="tf32").runs for part in parts.PARTS}
    found = [run.content_hash for runs in planned.values() for run in runs]
    assert {run.content_hash for runs in known.values() for run in runs.values()} == set(found)
    assert len(found) - len(set(found)) <= 8 * 16  # AdamW at the chosen λ, in hindsight too
    seconds = {part: device_seconds(runs) for part, runs in planned.items()}
    assert max(seconds.values()) < 400  # an estimate: nine minutes with starting, compiling and a fifth more
    first = [part for part, (experiment, _) in parts.PARTS.items() if experiment == "tuning"]
    assert [*parts.PARTS][: len(first)] == first
    assert sum(seconds[part] for part in first) < 12 * 60  # of the first quarter of an hour


def test_seconds_follow_from_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = CELLS["add mod71, base"]
    plain = cell.run(0, "tf32")
    muon = FAMILIES["Muon"]["λ = 1, η = 0.02"].apply(plain)
    # In each of two layers a matrix of 128 × 384, one of 128 × 128 and two of 128 × 512: X Xᵀ, its square, and times X.
    products = sum(2 * 128**2 * columns + 2 * 128**3 + 2 * 128**2 * columns for columns in (384, 128, 512, 512))
    assert orthogonalization(muon) == 5 * 2 * products
    assert orthogonalization(plain) == 0
    often = replace(plain, measurements=replace(plain.measurements, every=25))
    assert evaluation_cost(often) == pytest.approx(2 * evaluation_cost(plain))
    stacks = [[run.with_seed(seed) for seed in range(64)] for run in (plain, muon)]
    assert device_seconds(stacks[0] + stacks[1]) == pytest.approx(sum(map(device_seconds, stacks)))
    assert device_seconds(stacks[1]) > 1.3 * device_seconds(stacks[0])


def test_the_recipes_parts_are_taken_away_one_by_one() -> None:
    recipe = FAMILIES["Muon, let go, small embeddings"]["λ = 5, embeddings of 0.1 with 3 λ"]
    found = without_parts(recipe)
    assert len({str(one) for one in (*found.values(), recipe)}) == len(found) + 1 == 7
    assert without_parts(Setting({"weight_decay": 3.0})).keys() == {"λ = 1 throughout"}
    usual = FAMILIES["Muon, let go, small embeddings"]["λ = 5, embeddings of 0.1 with 1 λ"]
    assert "one λ for all parameters" not in without_parts(usual)


def finished(
    final: Any, hindsight: Any, published: Any = lambda *_: 800.0, ablation: Any = lambda *_: 900.0, n_seeds: int = 2
) -> Any:
    return evidence(
        tuning=tuning_runs(),
        final=planted("final", final, n_seeds),
        hindsight=planted("hindsight", hindsight, n_seeds),
        published=planted("published", published, n_seeds),
        ablation=planted("ablation", ablation, n_seeds),
        cadence=planted("cadence", final, n_seeds),
    )


def verdicts(found: Any) -> dict[str, Verdict]:
    return {claim.name: judge(claim, found).verdict for claim in STUDY.claims}


# AdamW at 2,000 everywhere, the recipe at 500; what is published in between.
GOOD = {ADAMW: 2000.0, "Muon, let go": 500.0}
ACCELERATES = {f"{name.replace(' ', '-').lower()}-accelerates" for name in PUBLISHED}


def good(cell: str, arm: str, place: int) -> float:
    return GOOD.get(arm, 900.0)


def always(step: float) -> Any:
    return lambda cell, arm, place: step


def test_every_rule_can_hold(choice_file: Path) -> None:
    assert set(verdicts(finished(good, always(2000.0))).values()) == {Verdict.REPRODUCED}


def test_every_rule_can_fail_and_sixteen_seeds_refute(choice_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipe late, unreliable and falling; letting go of no use; nothing that is published sooner than AdamW."""

    def bad(cell: str, arm: str, place: int) -> float:
        return {ADAMW: 600.0, "Muon, let go": inf if place % 2 else 3000.0}.get(arm, 1000.0)

    monkeypatch.setattr(experiments, "CELLS", {cell.name: cell for cell in experiments.BASES[:3]})
    monkeypatch.setattr(experiments, "BASES", experiments.BASES[:3])
    found = finished(bad, always(600.0), always(1000.0), always(500.0), n_seeds=16)
    fallen = {
        name: record(one.spec, 600, falls_at=4000) if "/Muon, let go_" in name else one
        for name, one in found.experiment("final").items()
    }
    refuted = verdicts(found) | {"recipe-stays": verdicts(evidence(final=fallen, tuning=tuning_runs()))["recipe-stays"]}
    assert set(refuted.values()) == {Verdict.REFUTED}
    assert set(verdicts(evidence()).values()) == {Verdict.NOT_TESTABLE}


def test_an_accelerator_that_loses_runs_is_none(choice_file: Path) -> None:
    def lossy(cell: str, arm: str, place: int) -> float:
        return inf if place == 0 else 300.0

    found = verdicts(finished(good, always(2000.0), lossy))
    losing = ACCELERATES - {f"{name.replace(' ', '-').lower()}-accelerates" for name in final_arms()}
    assert losing
    assert Verdict.REPRODUCED not in {found[name] for name in losing}


def test_the_message_says_what_the_rules_say(choice_file: Path) -> None:
    def said(found: Any) -> str:
        findings = {claim.name: judge(claim, found) for claim in STUDY.claims}
        rows = write_message(STUDY.message, STUDY.claims, findings, found)
        return " ".join(row["text"] for row in rows)

    holds, fails = said(finished(good, always(2000.0))), said(finished(always(1000.0), always(600.0), always(1100.0)))
    assert "generalises stably** 4.0 [4.0, 4.0] times as soon as AdamW at one λ" in holds
    assert "in 100.0 % [" in holds
    assert "Grokfast accelerates: " in holds
    assert "The aim (twice as soon, in 98 % of runs) is not reached" in fails
    assert "Grokfast is not shown to accelerate: it" not in fails
    assert "Grokfast is not shown to accelerate: " in fails
    assert "Not decided yet" not in holds + fails
    assert said(evidence()).count("Not decided yet") == len(STUDY.claims)


def test_runs_that_fall_are_counted(choice_file: Path) -> None:
    final = {name: record(one.spec, 500, falls_at=3000) for name, one in planted("final", lambda *_: 500.0).items()}
    found = evidence(tuning=tuning_runs(), final=final)
    assert verdicts(found)["recipe-stays"] is not Verdict.REPRODUCED
    assert found.measure(standing(RECIPE)).number("not at the end") == 1.0
    quantity = outcome("final", "add mod71, base/AdamW")
    assert found.measure(quantity).parts["fell"] == 2
    assert found.measure(quantity).number("steps") == 500  # it was stable for 2,000 steps all the same


def test_hindsight_takes_the_fastest_decay_that_is_as_reliable_or_else_the_most_reliable(choice_file: Path) -> None:
    (claim,) = [one for one in STUDY.claims if one.name == "recipe-beats-hindsight"]

    def final(cell: str, arm: str, place: int) -> float:
        return {"Muon, let go": 500.0, ADAMW: 1500.0}.get(arm, inf)

    def mixed(cell: str, arm: str, place: int) -> float:
        return 400.0 if arm == "AdamW at λ = 5" and place else 3000.0 if "5" not in arm else inf

    found = finished(final, mixed)
    assert found.measure(claim.estimand).number() == pytest.approx(3.0)

    def poor(cell: str, arm: str, place: int) -> float:
        return {"Muon, let go": 500.0}.get(arm, inf)

    def sometimes(cell: str, arm: str, place: int) -> float:
        return 1000.0 if arm == "AdamW at λ = 2" and place else inf

    assert finished(poor, sometimes).measure(claim.estimand).number() > 1


@given(st.lists(st.tuples(st.floats(10, 1e4), st.floats(10, 1e4)), min_size=1, max_size=6))
def test_a_ratio_is_the_geometric_mean_and_turns_round_with_its_arms(pairs: list[tuple[float, float]]) -> None:
    waits = {f"task{i}, base": pair for i, pair in enumerate(pairs)}
    found = geometric_mean_ratio(waits).number()
    assert log(found) == pytest.approx(sum(log(a / b) for a, b in pairs) / len(pairs), abs=1e-9)
    assert geometric_mean_ratio({name: (b, a) for name, (a, b) in waits.items()}).number() == pytest.approx(1 / found)


def test_a_task_counts_once_however_many_cells_it_has() -> None:
    waits = {"a, base": (400.0, 100.0), "a, other": (400.0, 100.0), "b, base": (100.0, 100.0)}
    assert geometric_mean_ratio(waits).number() == pytest.approx(2.0)


def test_every_table_and_figure_is_made_of_what_is_there(choice_file: Path, tmp_path: Path) -> None:
    empty, full = evidence(), finished(lambda *_: 500.0, lambda *_: 900.0)
    for item in (*STUDY.tables, *STUDY.figures):
        for found in (empty, full):
            built = item.build(found)
            assert isinstance(built, Table | Figure)
    rows = STUDY.items["tab-steering"].build(full).rows
    assert len(rows) == 6 * len(CELLS)
    assert {row[2].ours for row in rows} == {"yes", "no"}
    numeric = [cell for row in rows for cell in row[3:] if isinstance(cell.ours, float)]
    assert all(cell.quantity for cell in numeric)
    assert len(STUDY.items["fig-decay"].build(full).panels) == len(UNSEEN) + len(TUNING_TASKS)


def test_the_whole_page_is_written_from_packed_runs(choice_file: Path, tmp_path: Path) -> None:
    """Two cells of every experiment, packed as parts are: by the command, to figures, claims, message and page."""
    places = ("S5, base/AdamW/", "S5, base/Muon, let go/", "add mod71, base/", "A5, base/")
    full = finished(good, always(2000.0))
    packed = tmp_path / "packed"
    packed.mkdir()
    known: dict[RunSpec, RunRecord] = {}  # a run that several experiments have is there once, for all of them
    for experiment in ("final", *STUDY.experiments):
        own = {name: one for name, one in full.experiment(experiment).items() if name.startswith(places)}
        for name, one in own.items():
            first = known.setdefault(one.spec, slim(replace(one, made_for=()), parts.COLUMNS))
            made_for = dict.fromkeys((*first.made_for, Membership("steering", experiment, name)))
            known[one.spec] = replace(first, made_for=tuple(made_for))
    save_records(packed / "all.records.gz", [*known.values()])
    seconds = {update_of(run): 4e-5 * (1.5 if "muon" in name else 1) for name, run in speed.timed_runs().items()}
    save_speed(Speed(seconds, "a device, up to 512 runs at once", {"commit": "planted"}), packed / "speed.json")
    command = ["reproduce", "steering", "--remake", "--from", str(packed), "--out", str(tmp_path / "results")]
    assert run(command) == 0
    page = (tmp_path / "results" / "RESULTS.md").read_text()
    assert "**One recipe without tuning per task generalises stably** 4.0" in page
    assert (
        "speed-up in device-seconds against AdamW | 2.67" in page
    )  # four times as soon, at 1.5 times the cost of a step
    verdict_of = {row["name"]: row["verdict"] for row in json.loads((tmp_path / "results" / "claims.json").read_text())}
    assert set(verdict_of.values()) == {"reproduced"}
    drawn = (tmp_path / "results" / "figures" / "fig-decay.csv").read_text()
    assert "Muon, let go, 2 runs" in drawn


def test_speeds_are_measured_by_update_and_read_again(tmp_path: Path) -> None:
    runs = speed.timed_runs("float32")
    assert len({update_of(run) for run in runs.values()}) == len(runs)
    small = STUDY.runs(quick=True)["tuning"].values()
    found = speed.measure_speed([*small][::4], "cpu", slots=2, steps=2)
    assert len(found.seconds_per_step) == 2
    save_speed(found, tmp_path / "speed.json")
    assert read_speed(tmp_path / "speed.json") == found
    (tmp_path / "speed.json").write_text("{}")
    with pytest.raises(InputError, match="cannot be read"):
        read_speed(tmp_path / "speed.json")


def test_a_part_is_trained_packed_and_chosen_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    (first, run), *_ = STUDY.runs(quick=True)["tuning"].items()
    short = {**run.to_dict(), "training": {**run.training.to_dict(), "steps": 60}}
    monkeypatch.setitem(STUDY.experiments, "tuning", lambda n, precision: {first: type(run).from_dict(short)})
    for name in (name for name, (experiment, _) in parts.PARTS.items() if experiment == "tuning"):
        monkeypatch.setitem(parts.PARTS, name, ("tuning", lambda cell, arm: True))
    packed, small = tmp_path / "packed", ["--device", "cpu", "--precision", "float32"]
    given = ["tuning-muon", "--out", str(packed), "--runs", str(tmp_path / "runs"), *small]
    assert parts.main(given) == 0
    (only,) = unpack_records(packed / "part-01.records.gz")
    assert set(only.evaluations) == set(parts.COLUMNS)
    assert only.made_for[0].name == first
    save_records(tmp_path / "others.records.gz", [replace(only, made_for=(Membership("steering", "final", first),))])
    assert choice.main(["--from", str(tmp_path / "others.records.gz"), "--out", str(tmp_path / "chosen.json")]) == 2
    assert "1 of 1 tuning runs are not there, of AdamW: nothing was chosen" in capsys.readouterr().err
    assert not (tmp_path / "chosen.json").exists()
    assert parts.main(["--list", "--from", str(packed), "--precision", "float32"]) == 1
    listed = capsys.readouterr().out.splitlines()
    assert listed[0].endswith("here")
    assert listed[1].endswith("missing")
    save_records(packed / "part-02.records.gz", [only], {**read_head(packed / "part-01.records.gz"), "runs": "others"})
    assert parts.main(["--list", "--from", str(packed), "--precision", "float32"]) == 1
    assert "2 tuning-plain-1" in (line := capsys.readouterr().out.splitlines()[1])
    commit = read_head(packed / "part-01.records.gz")["commit"]
    assert line.endswith(f"made by another plan than this version's, at commit {commit}")
    save_records(packed / "part-02.records.gz", [only], read_head(packed / "part-01.records.gz") | {"part": 2})
    save_records(
        packed / "part-03.records.gz",
        [only],
        read_head(packed / "part-01.records.gz") | {"part": 3, "commit": "another"},
    )
    save_records(packed / "part-11.records.gz", [only], {"commit": "of the choice"})
    assert parts.main(["--list", "--from", str(packed), "--precision", "float32"]) == 1
    listed = capsys.readouterr().out.splitlines()
    assert [listed[i].endswith("here") for i in range(4)] == [True, True, False, False]
    assert "from commit another, the others are from" in listed[2]
    assert listed[10].endswith("made by another plan than this version's, at commit of the choice")
    assert parts.main(["tuning-moun", "--out", str(tmp_path), "--device", "cpu"]) == 2
    assert "did you mean 'tuning-muon'" in capsys.readouterr().err
    assert parts.main(["--list"]) == 0


def test_what_is_let_go_at_generalisation_with_muon_is_eased_and_the_ablation_is_without() -> None:
    for family in ("Muon, let go", "Muon, let go, small embeddings"):
        for setting in FAMILIES[family].values():
            without = without_parts(setting)["never eased"]
            assert (setting.release.patience, without.release.patience) == (1000, 0)
            assert replace(without, release=setting.release) == setting
    assert "never eased" not in without_parts(FAMILIES["AdamW, let go"]["λ = 5, at generalisation"])


def test_what_begins_gently_is_also_run_strong_from_the_first_step_and_strong_from_then_to_the_end() -> None:
    for setting in FAMILIES["Muon, strong from memorisation to generalisation"].values():
        found, release = without_parts(setting), setting.release
        assert replace(found["strong from the first step"].release, gentle=1.0) == release
        never = found["never let go"].release
        assert (never.at, never.patience, never.gentle) == ((), 0, 1.0)
        assert replace(found["never eased"].release, patience=1000) == release
    assert "strong from the first step" not in without_parts(FAMILIES["Muon, let go"]["λ = 5, η = 0.02"])
