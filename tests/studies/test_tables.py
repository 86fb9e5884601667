"""Runs whose events are the printed ones give back the printed tables; missing, censored and widened runs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan, nan
from typing import Any

import numpy as np
import pytest
from lifelike import lifelike

from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies import Evidence, evidence_of
from grokscope.studies.synchronization.experiments import studies
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.studies.tables import TABLES, Cell, Column, Table
from grokscope.view.render import csv_of, latex_of, markdown_of
from grokscope.view.table import cut_short
from paper_tables import (
    ARCH_ABLATION,
    CROSS,
    CROSSPRIME,
    EXLOSS,
    RANK,
    TIMING_FIT,
    TRANSFER,
    WD_INTERVENTION,
)

EMPTY = evidence_of([])
LAST = 15_000
RENDERINGS = (csv_of, markdown_of, latex_of)


def run(
    spec: RunSpec,
    grok: int | None = None,
    sync: int | None = None,
    restricted: int | None = None,
    collapse: bool = False,
    learnt: bool = True,
    last: int = LAST,
    **columns: Any,
) -> RunRecord:
    """A run with these events, looked at every 100 steps and measured at the looks of the paper's tables."""
    first = spec.fork.step if spec.fork else 0
    steps = list(range(first, last + 1, 100))

    def after(step: int | None, high: float, low: float) -> list[float]:
        return [high if step is not None and at >= step else low for at in steps]

    validation = after(grok, 1.0, 0.1)
    if collapse:
        validation[-1] = 0.1
    log: dict[str, Any] = {
        "step": steps,
        "train_accuracy": [1.0 if learnt else 0.1] * len(steps),
        "validation_accuracy": validation,
        "fsd": after(sync, 0.9, 0.1),
        "rank": [3.0] * len(steps),
        "norm": [30.0] * len(steps),
        "fsd_mode": [5.0] * len(steps),
    }
    for name, values in columns.pop("log", {}).items():
        log[name] = [values.get(at, nan) for at in steps]
    measured: dict[str, Any] = {name: after(step, 0.9, 0.1) for name, step in columns.items()}
    if restricted is not None:
        measured["paper_restricted"] = after(restricted, 0.1, 3.0)
    if measured:
        measured = {"step": steps} | measured
    return RunRecord(spec, RunOutcome("grokked"), log, measured)


def evidence(study: str, changes: Mapping[str, Mapping[str, Any]], n_seeds: int | None = None) -> Evidence:
    """Runs of one study, those named here alone."""
    specs = studies([study], n_seeds)[study]
    return evidence_of([run(specs[name], **what) for name, what in changes.items()], n_seeds)


def printed_base() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, row in CROSS.items():
        found[name] = {"grok": row.grok, "sync": row.sync}
        if name in EXLOSS:
            found[name]["restricted"] = EXLOSS[name][3]
    found["mult_mod97_s42"] = {"grok": 3000, "sync": 2000, "fsd@sum": 13_000, "fsd@additive": None}
    return found


def ours(table: Table, row: str) -> list[Any]:
    return [cell.ours for cell in next(cells for cells in table.rows if cells[0].ours == row)]


def agree(table: Table, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Ours is what the paper prints."""
    for row in rows:
        for column in columns:
            cell = table.cell(row, column)
            assert cell.paper is not None, (row, column)
            assert cell.ours == cell.paper, (row, column)


# The printed values.


def test_printed_values_are_those_the_other_tests_hold() -> None:
    cross, exloss, rank = REPORTED["tab:cross"], REPORTED["tab:exloss"], REPORTED["tab:rank"]
    for name, row in CROSS.items():
        assert cross.rows[name][:4] == (row.modulus, row.grok, row.sync, row.lead)
        assert REPORTED["tab:configs"].get(name, "grok") == row.grok
    assert {name: exloss.rows[name][:5] for name in EXLOSS} == EXLOSS
    assert [(int(step), *row[:3]) for step, row in rank.rows.items()] == [row[:4] for row in RANK]
    for decay, row in WD_INTERVENTION.items():
        printed = REPORTED["tab:wd_intervention"].rows[f"{decay:g}"]
        assert (printed[0], printed[1], printed[3] or "") == row
    for decay, fit in TIMING_FIT.items():
        assert REPORTED["tab:timing_fit"].rows[f"{decay:g}"][:3] == fit
    assert [row[:3] for row in list(REPORTED["tab:arch_ablation"].rows.values())[:3]] == list(ARCH_ABLATION.values())[
        :3
    ]
    for modulus, (cells, constant, r_squared) in CROSSPRIME.items():
        for decay, (mean, spread) in cells.items():
            own = [REPORTED["tab:crossprime"].get(str(modulus), f"{what} {decay:g}") for what in ("mean", "std")]
            assert own == [mean, spread]
        assert REPORTED["tab:crossprime"].get(str(modulus), "constant") == constant
        assert REPORTED["tab:crossprime"].get(str(modulus), "r_squared") == r_squared
    for seed, (grok, sync, lead, control) in TRANSFER.items():
        row = REPORTED["tab:transfer"].rows[str(seed)]
        assert row[:3] == (grok, sync, lead)
        assert row[4] == ("never" if control is None else control)


def test_every_label_is_printed_and_every_printed_row_is_whole() -> None:
    assert [TABLES[name](EMPTY).label for name in TABLES] == [
        "tab:configs",
        "tab:cross",
        "tab:exloss",
        "tab:wd_intervention",
        "tab:rank",
        "tab:kan_all",
        "tab:ablation",
        "tab:arch_ablation",
        "tab:timing_fit",
        "tab:crossprime",
        "tab:transfer",
    ]
    assert set(PRINTED) == {TABLES[name](EMPTY).label for name in TABLES}
    for table in PRINTED.values():
        assert {len(row) for row in table.rows.values()} == {len(table.columns)}


# The printed events give back the printed cells.


def test_configurations_and_leads_come_out_as_printed() -> None:
    base = evidence("base", printed_base())
    agree(TABLES["tab-configs"](base), list(REPORTED["tab:configs"].rows), ["Grok step"])
    table = TABLES["tab-cross"](base)
    agree(table, list(CROSS), ["Grok", "Sync", "Lead", "Precursor?"])
    mean, by_prime = (table.cell(f"{name}, printed additions", "Lead") for name in ("mean", "mean by prime"))
    assert round(float(mean.ours or 0)) == mean.paper == 1722  # type: ignore[arg-type]
    assert by_prime.ours == by_prime.paper == 1740
    assert mean.n == 9
    assert by_prime.n == 5
    for cell in (mean, by_prime):
        assert cell.interval == pytest.approx(cell.paper_interval, abs=60)
    assert table.cell("mean, printed additions", "Sign-test p").ours == 2**-8
    assert not any("all seeds" in str(row[0].ours) for row in table.rows)


def test_multiplication_is_read_three_ways() -> None:
    table = TABLES["tab-cross"](evidence("base", printed_base()))
    assert ours(table, "mult_mod97_s42, by answer, additive basis")[3:6] == ["never", "never", "no"]
    assert ours(table, "mult_mod97_s42, by answer, discrete logarithm")[3:6] == [2000, 1000, "yes"]


def test_multiplication_not_read_by_the_sum_has_no_printed_reading() -> None:
    table = TABLES["tab-cross"](evidence("base", {"mult_mod97_s42": {"grok": 3000, "sync": 2000}}))
    assert ours(table, "mult_mod97_s42")[2:6] == [3000, None, None, None]
    assert "FSD in the printed reading was not measured, so left empty: mult_mod97_s42." in table.notes


@pytest.mark.parametrize("name", ["tab-exloss", "tab-kan", "tab-ablation"])
def test_what_was_not_measured_is_empty_and_a_note_says_so(name: str) -> None:
    table = TABLES[name](evidence("base", {"add_mod97_s42": {"grok": 3000, "sync": 2000}}))
    assert any(note.endswith("not measured, so left empty: add_mod97_s42.") for note in table.notes)


def test_the_restricted_loss_comes_out_as_printed() -> None:
    table = TABLES["tab-exloss"](evidence("base", printed_base()))
    names = [column.name for column in table.columns[1:]]
    agree(table, list(EXLOSS), names)
    assert round(float(table.cell("mean, printed additions", "ExLoss lead").ours)) == -167  # type: ignore[arg-type]
    assert table.cell("mean, printed additions", "FSD wins?").ours == 1.0


def test_events_are_seen_at_the_papers_looks() -> None:
    """A run that grokked at 3,100 and crossed at 1,900 is seen so at 3,500 and 2,000."""
    table = TABLES["tab-cross"](evidence("base", {"add_mod97_s42": {"grok": 3100, "sync": 1900}}))
    assert ours(table, "add_mod97_s42")[2:5] == [3500, 2000, 1500]


def printed_forks() -> dict[str, dict[str, Any]]:
    return {
        f"add_mod97_s42_x{decay:g}": {"grok": grok, "collapse": mark == "†", "learnt": mark != "‡", "last": 9000}
        for decay, (grok, _, mark) in WD_INTERVENTION.items()
    }


def test_the_intervention_comes_out_as_printed() -> None:
    table = TABLES["tab-wd"](evidence("fork", printed_forks()))
    agree(table, ["1", "2", "3", "4", "5", "10"], ["Grok step", "Δt from fork", "Speedup vs. λ = 1"])
    assert [str(table.cell(decay, "Outcome").ours)[-1] for decay in ("4", "5", "10")] == ["†", "†", "‡"]
    assert table.cell("1", "Outcome").ours == "grokked"


def test_the_timing_law_comes_out_as_printed() -> None:
    table = TABLES["tab-timing"](evidence("fork", printed_forks()))
    for decay, (observed, predicted, error) in TIMING_FIT.items():
        row = ours(table, f"{decay:g}")
        assert row[1] == (observed or "never")
        assert row[2] == pytest.approx(predicted)
        assert row[3] == (None if error is None else pytest.approx(error))
    agree(table, ["C, λ ≤ 5", "C, λ ≤ 3"], ["C"])
    assert round(table.cell("C, λ ≤ 5", "R²").ours, 2) == 0.81  # type: ignore[arg-type]
    assert table.cell("C, λ ≤ 3", "R²").ours == pytest.approx(1.0)


def test_ten_times_the_decay_is_not_in_the_fit_even_where_it_grokked() -> None:
    forks = printed_forks() | {"add_mod97_s42_x10": {"grok": 4000, "last": 9000}}
    table = TABLES["tab-timing"](evidence("fork", forks))
    assert table.cell("10", "Δt observed").ours == 3000
    assert table.cell("C, λ ≤ 5", "C").ours == 3600


def printed_draws() -> dict[str, dict[str, Any]]:
    """Draws whose cells have the printed means; at p = 97 some did not grok, as the printed means require."""
    waits = {
        53: {1: [4100] * 5, 2: [2200] * 5, 3: [1500, 1500, 1500, 1600, 1600], 5: [1200] * 5},
        97: {1: [2400, 2400, 2400, 2500], 2: [1300] * 5, 3: [800, 800, 900, 900], 5: [600, 700, 700]},
        131: {1: [1700, 1700, 1700, 1700, 1600], 2: [900] * 5, 3: [600] * 5, 5: []},
    }
    found = {}
    for modulus, by_decay in waits.items():
        start = 2000 if modulus == 53 else 1000
        for decay, steps in by_decay.items():
            for draw, step in zip((42, 123, 0, 1, 2), [*steps, *[None] * (5 - len(steps))], strict=True):
                name = f"add_mod{modulus}_d{draw}_x{decay}"
                found[name] = {"grok": step and start + step, "learnt": step is not None, "last": 9000}
    return found


def test_the_law_across_primes_comes_out_as_printed() -> None:
    table = TABLES["tab-crossprime"](evidence("crossprime", printed_draws()))
    for modulus, (cells, constant, r_squared) in CROSSPRIME.items():
        row = str(modulus)
        for decay, (mean, _) in cells.items():
            cell = table.cell(row, f"Δt(λ = {decay:g})")
            assert round(cell.ours) == mean == cell.paper  # type: ignore[arg-type]
            assert cell.interval is None
        assert int(table.cell(row, "C_p").ours) == constant  # type: ignore[arg-type]
        assert round(table.cell(row, "R²").ours, 2) == r_squared  # type: ignore[arg-type]
    assert table.cell("131", "std(λ = 1)").ours == pytest.approx(40)
    assert table.cell("53", "std(λ = 3)").ours == pytest.approx(49, abs=0.5)
    assert table.cell("131", "Δt(λ = 5)") == Cell("never", "never", n=5)
    assert table.cell("97", "Δt(λ = 5)").n == 3
    assert "Of 60 forks, not in the means: 9 unstable." in table.notes


def test_rank_and_norm_come_out_as_printed() -> None:
    looks = {step: (accuracy, rank, norm) for step, accuracy, rank, norm, _ in RANK}
    names = ("validation_accuracy", "rank", "norm")
    log = {name: {step: row[i] for step, row in looks.items()} for i, name in enumerate(names)}
    table = TABLES["tab-rank"](evidence("base", {"add_mod97_s42": {"log": log}}))
    steps = [str(row[0]) for row in RANK]
    agree(table, steps, ["Val acc", "Median rank", "Total norm"])
    phases = [str(table.cell(step, "Phase").ours) for step in steps]
    assert phases == ["1 (formation)"] * 4 + ["2 (liberation)"] * 3 + ["grokking", "post-grokking"]


def test_fourier_fits_and_ablations_are_read_at_the_grok_look() -> None:
    spec = studies(["base"])["base"]["add_mod97_s42"]
    made = run(spec, grok=3900, sync=1500, log={"rank": {500: 6.0, 4000: 1.0}})
    names = {"rank_one_share": 0.94, "r2_rank_1": 0.986, "kan_trained_r2": 0.992, "kan_agreement": 1.0, "kan_r2": 0.9}
    names |= {"drop_mlp0_zero": 0.118, "drop_attn1_zero": 0.944}
    measured = {"step": [3500, 4000]} | {name: [0.5, value] for name, value in names.items()}
    found = evidence_of([replace(made, checkpoints=measured)])
    table = TABLES["tab-kan"](found)
    agree(table, ["add_mod97_s42"], [column.name for column in table.columns[1:-1]])
    assert table.cell("add_mod97_s42", "KAN R², closed form") == Cell(0.9)
    table = TABLES["tab-ablation"](found)
    assert table.cell("None (original)", "Accuracy (%)").ours == pytest.approx(100)
    assert table.cell("Zero block 0 MLP", "Drop (pp)").ours == pytest.approx(11.8)
    assert table.cell("Zero block 1 attention", "Accuracy (%)").ours == pytest.approx(5.6)
    assert table.cell("Zero block 1 MLP", "Drop (pp)") == Cell(None, 88.0)


def test_fits_are_found_where_accuracy_falls_again_before_the_next_checkpoint() -> None:
    made = run(studies(["base"])["base"]["add_mod97_s42"], grok=3900, sync=1500)
    place = made.evaluations["step"].index(4000)
    dipped = [0.9 if i == place else value for i, value in enumerate(made.evaluations["validation_accuracy"])]
    measured = {"step": [4000], "kan_trained_r2": [0.9], "drop_mlp0_zero": [0.25]}
    found = evidence_of(
        [replace(made, evaluations=made.evaluations | {"validation_accuracy": dipped}, checkpoints=measured)]
    )
    assert TABLES["tab-kan"](found).cell("add_mod97_s42", "KAN R²").ours == 0.9
    assert TABLES["tab-ablation"](found).cell("Zero block 0 MLP", "Drop (pp)").ours == 25


def test_architectures_come_out_as_printed() -> None:
    rows = dict(zip(("two_layers", "one_layer", "attention_only", "mlp_only"), ARCH_ABLATION.values(), strict=True))
    found = evidence("architecture", {f"{name}_s42": {"grok": row[0], "sync": row[1]} for name, row in rows.items()})
    table = TABLES["tab-arch"](found)
    agree(
        table,
        [str(row[0].ours) for row in table.rows[:4]],
        ["Grok step", "FSD sync", "Lead", "FSD precursor?"],
    )
    assert table.rows[4][1:] == (Cell(), Cell(), Cell(), Cell())


def test_the_transfer_comes_out_as_printed() -> None:
    runs = {
        f"S5_f0.7_s{seed}": {"grok": grok, "sync": sync, "control_fsd": None if control is None else grok - control}
        for seed, (grok, sync, _, control) in TRANSFER.items()
    }
    table = TABLES["tab-transfer"](evidence("symmetric", runs))
    names = ["Grok", "FSD_gen sync", "Lead", "Fourier control lead, 0.8"]
    agree(table, [str(seed) for seed in TRANSFER], names)
    mean = table.cell("mean, trained on 70%", "Lead")
    assert round(float(mean.ours or 0)) == mean.paper == 2417  # type: ignore[arg-type]
    assert table.cell("mean, trained on 70%", "Sign-test p").ours == 2**-5
    assert table.cell("42", "Dominant irrep").ours in {
        "(4,1), d = 4",
        "(2,1,1,1), d = 4",
        "(3,2), d = 5",
        "(3,1,1), d = 6",
        "(2,2,1), d = 5",
    }
    assert str(table.cell("mean, trained on 70%", "Fourier control lead, 0.8").ours).startswith("below")


# What is missing, censored or more than printed.


@pytest.mark.parametrize("name", TABLES)
def test_without_runs_every_cell_of_ours_is_empty_and_a_note_says_so(name: str) -> None:
    table = TABLES[name](EMPTY)
    assert table.name == name
    assert any(note.startswith("Not trained, so left empty:") for note in table.notes)
    assert all(row[0].ours is not None for row in table.rows)
    assert all(cell.ours is None for row in table.rows for cell in row if cell.paper is not None)


def test_a_missing_run_is_named_and_its_neighbours_are_not() -> None:
    base = printed_base()
    del base["add_mod97_s1"]
    table = TABLES["tab-cross"](evidence("base", base))
    assert ours(table, "add_mod97_s1")[2:] == [None] * 5
    assert table.cell("add_mod97_s1", "Lead").paper == 500
    assert table.notes[-1] == "Not trained, so left empty: add_mod97_s1."
    assert table.cell("mean, printed additions", "Lead").n == 8


def test_steps_that_did_not_come_are_never_and_no_number() -> None:
    table = TABLES["tab-cross"](evidence("base", {"add_mod97_s42": {"grok": 3000}, "add_mod53_s42": {"sync": 500}}))
    assert ours(table, "add_mod97_s42")[2:6] == [3000, "never", "never", "no"]
    assert ours(table, "add_mod53_s42")[2:6] == ["never", 500, "n/a", "n/a"]
    assert table.cell("mean, printed additions", "Lead").ours == "below −12,000"
    assert table.cell("mean, printed additions", "Precursor?").ours == 0


def test_a_run_that_grokked_before_its_fork_has_no_wait() -> None:
    forks = {"add_mod97_s42_x1": {"grok": 1000, "last": 9000}, "add_mod97_s42_x2": {"grok": 2000, "last": 9000}}
    table = TABLES["tab-wd"](evidence("fork", forks))
    assert table.cell("1", "Δt from fork").ours == "before the fork"
    assert table.cell("2", "Speedup vs. λ = 1").ours == "n/a"
    assert TABLES["tab-timing"](evidence("fork", forks)).cell("C, λ ≤ 5", "C").ours == 2000


def test_more_seeds_than_printed_give_medians_with_intervals() -> None:
    base = printed_base() | {f"add_mod97_s{seed}": {"grok": 2500 + 500 * seed, "sync": 1000} for seed in range(3, 9)}
    found = evidence("base", base, n_seeds=11)
    configs, cross = TABLES["tab-configs"](found), TABLES["tab-cross"](found)
    cell = configs.cell("add_mod97, all seeds", "Grok step")
    steps = [row["grok"] for name, row in base.items() if name.startswith("add_mod97")]
    assert cell.ours == np.median(steps)
    assert cell.n == len(steps) == 11
    assert cell.interval is not None
    assert min(steps) <= cell.interval[0] <= cell.ours <= cell.interval[1] <= max(steps)  # type: ignore[operator]
    assert cross.cell("add_mod97, all seeds", "Precursor?").interval == pytest.approx((1 - 0.2849, 1), abs=1e-4)
    every = cross.cell("mean, all additions", "Lead")
    assert every.n == 15
    assert every.paper is None
    assert cross.cell("mean by prime, all additions", "Lead").n == 5
    for name in ("tab-rank", "tab-ablation", "tab-kan", "tab-exloss"):
        assert "all seeds" in str(TABLES[name](found))


def test_widened_medians_hold_when_some_steps_did_not_come() -> None:
    base: dict[str, dict[str, Any]] = {f"add_mod97_s{seed}": {"grok": 3000, "sync": 1000} for seed in (42, 0, 1)}
    base |= {f"add_mod97_s{seed}": {"grok": 3000, "sync": None} for seed in (2, 3, 4, 5)}
    cross = TABLES["tab-cross"](evidence("base", base, n_seeds=8))
    assert ours(cross, "add_mod97, all seeds")[3:5] == ["never", "never"]
    assert cross.cell("add_mod97, all seeds", "Precursor?").ours == pytest.approx(3 / 7)


def test_widened_forks_give_shares_and_an_interval_of_the_constant() -> None:
    forks = printed_forks()
    for seed, grok in ((0, 3000), (1, 5000)):
        forks |= {f"add_mod97_s{seed}_x{x:g}": {"grok": 1000 + (grok - 1000) // x, "last": 9000} for x in (1, 2, 5)}
    found = evidence("fork", forks, n_seeds=3)
    table = TABLES["tab-wd"](found)
    assert table.cell("1", "Δt, all seeds").ours == 3000
    assert table.cell("10", "Δt, all seeds").ours == "never"
    assert table.cell("10", "Grokked, all seeds").interval == pytest.approx((0, 0.975))
    cell = TABLES["tab-timing"](found).cell("C, λ ≤ 5, all seeds", "C")
    assert cell.n == 3
    assert cell.interval is not None


def test_draws_that_all_grokked_before_the_fork_are_not_never() -> None:
    draws: dict[str, dict[str, Any]] = {f"add_mod131_d{draw}_x1": {"grok": 1000} for draw in (42, 0)}
    table = TABLES["tab-crossprime"](evidence("crossprime", draws))
    assert table.cell("131", "Δt(λ = 1)") == Cell("before the fork", 1680, n=2)
    assert table.cell("131", "C_p").ours is None
    mixed = draws | {"add_mod131_d1_x1": {"grok": None}}
    assert TABLES["tab-crossprime"](evidence("crossprime", mixed)).cell("131", "Δt(λ = 1)").ours == "never"


def test_widened_draws_give_intervals() -> None:
    draws = printed_draws() | {f"add_mod131_d{draw}_x1": {"grok": 2500 + 100 * draw} for draw in (3, 4)}
    cell = TABLES["tab-crossprime"](evidence("crossprime", draws, n_seeds=7)).cell("131", "Δt(λ = 1)")
    assert cell.n == 7
    assert cell.interval is not None
    assert not any(isnan(end) for end in cell.interval)


def test_a_crossing_at_the_first_look_is_doubted() -> None:
    table = TABLES["tab-cross"](evidence("base", {"add_mod97_s42": {"grok": 3000, "sync": 0}}))
    assert "Synchronised at the first look: add_mod97_s42." in table.notes


@pytest.mark.parametrize("study", ["base", "fork", "crossprime", "symmetric", "architecture"])
def test_one_run_alone_gives_every_table(study: str) -> None:
    name = next(name for name, spec in studies([study])[study].items() if study != "crossprime" or spec.fork)
    for changes in ({"grok": 3000, "sync": 2000}, {"sync": 2000}, {"grok": 3000}, {"learnt": False}):
        found = evidence(study, {name: changes})
        assert all(TABLES[table](found).rows for table in TABLES)


def test_the_same_evidence_gives_the_same_bytes() -> None:
    base, forks = (evidence(study, made()) for study, made in (("base", printed_base), ("fork", printed_forks)))
    for name, found in (("tab-cross", base), ("tab-exloss", base), ("tab-timing", forks)):
        again = evidence_of([record for runs in found.records.values() for record in reversed(runs.values())])
        one, other = TABLES[name](found), TABLES[name](again)
        assert [render(one) for render in RENDERINGS] == [render(other) for render in RENDERINGS]


def test_many_missing_runs_are_counted() -> None:
    (note,) = (note for note in TABLES["tab-crossprime"](EMPTY).notes if note.startswith("Not trained"))
    assert note.endswith(" and 48 more.")


def test_a_row_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="a row of 2 cells for 1 columns"):
        Table("x", "tab:x", "x", (Column("a"),), ((Cell(1), Cell(2)),))


def test_runs_that_were_stopped_early_are_named_in_a_note() -> None:
    whole = lifelike(None, ["base"])
    assert cut_short(whole.stopped_early()) == ()
    runs = dict(whole.study("base"))
    name = "add_mod97_s42"
    runs[name] = replace(runs[name], outcome={**runs[name].outcome, "stopped_early": True})
    cut = Evidence({"base": runs}, whole.planned)
    assert cut_short(cut.stopped_early()) == (f"Stopped early after grokking, so that their leads are biased: {name}.",)
