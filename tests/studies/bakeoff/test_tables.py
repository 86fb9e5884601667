from pathlib import Path

from bakeoff_runs import FIXED, evidence, planted, tuning

from grokscope.studies import Evidence
from grokscope.studies.bakeoff import STUDY
from grokscope.studies.bakeoff.configurations import CONFIGURATIONS, FAMILIES
from grokscope.studies.bakeoff.seconds import Speed, save_speed
from grokscope.view.render import csv_of, latex_of, markdown_of
from grokscope.view.table import Table

MISSING = "different numbers of runs: some are missing."


def made(found: Evidence, name: str = "tab-bakeoff") -> Table:
    table = STUDY.items[name].build(found)
    assert isinstance(table, Table)
    return table


def test_the_table_has_a_row_for_every_task_and_configuration_and_can_be_written() -> None:
    medians = dict.fromkeys(CONFIGURATIONS, 1000)
    table = made(evidence(planted(medians, "S5") | planted(medians)))
    assert [(row[0].ours, row[1].ours) for row in table.rows] == [
        (task, name) for task in ("add_mod97", "S5") for name in CONFIGURATIONS
    ]
    assert all(cell.quantity for row in table.rows for cell in row[2:5])
    for render in (csv_of, markdown_of, latex_of):
        assert render(table) == render(table)
    assert b"closed loop" in csv_of(table)
    assert b"U+" not in latex_of(table)


def test_configurations_that_lack_runs_are_named_and_tuning_runs_do_not_enter() -> None:
    runs = planted(dict.fromkeys(CONFIGURATIONS, 1000))
    whole, fewer = made(evidence(runs)), dict(list(runs.items())[1:])
    assert not any(note.endswith(MISSING) for note in whole.notes)
    assert any(note.endswith(MISSING) for note in made(evidence(fewer)).notes)
    assert any(note.endswith(MISSING) for note in made(evidence(planted(FIXED))).notes)
    assert made(evidence(runs, tuning([900, 800, 700, 600]))).rows == whole.rows
    assert made(evidence({})).rows == ()


def test_seconds_are_steps_times_speed_and_without_speed_the_table_says_so(tmp_path: Path) -> None:
    runs = planted({**FIXED, "Grokfast": 1000})
    assert any("No speed was measured" in note for note in made(evidence(runs, folder=tmp_path)).notes)
    save_speed(Speed({"Grokfast": 0.5}, "an abacus"), tmp_path / "speed.json")
    table = made(evidence(runs, folder=tmp_path))
    seconds = {row[1].ours: row[5].ours for row in table.rows}
    assert (seconds["Grokfast"], seconds["fixed λ = 1"]) == (650.0, None)
    assert any("in a full stack on an abacus" in note for note in table.notes)


def test_the_table_of_tuning_has_every_setting_and_the_choice() -> None:
    names = [*FAMILIES["closed loop"]]
    table = made(evidence({}, tuning([900, 800, 700, 600], [1.0, 1.0, 0.5, 0.5])), "tab-tuning")
    assert [row[1].ours for row in table.rows][8:12] == [f"closed loop, {name}" for name in names]
    assert f"closed loop: {names[1]}" in table.notes[0]
    fewer = dict(list(tuning([900, 800, 700, 600]).items())[1:])
    assert made(evidence({}, fewer), "tab-tuning").notes[1].endswith(MISSING)
    assert made(evidence({}), "tab-tuning").notes == ("No tuning run is there.",)
