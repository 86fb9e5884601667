from pathlib import Path

import pytest

from grokscope.errors import InputError
from grokscope.studies.bakeoff import STUDY, speed
from grokscope.studies.bakeoff.configurations import CONFIGURATIONS
from grokscope.studies.bakeoff.seconds import read_speed, save_speed


def test_seconds_are_measured_for_every_configuration(tmp_path: Path) -> None:
    measured = speed.measure_speed(STUDY.plan(["bakeoff"], "runs", quick=True), slots=2, steps=3, compiled=False)
    found = measured.seconds_per_step
    assert set(found) == set(CONFIGURATIONS)
    assert all(seconds > 0 for seconds in found.values())
    assert len({found[name] for name, one in CONFIGURATIONS.items() if one.gradient == "plain"}) == 1
    assert "2 runs at once, float32" in measured.place
    assert read_speed(tmp_path / "speed.json") is None
    save_speed(measured, tmp_path / "speed.json")
    assert read_speed(tmp_path / "speed.json") == measured
    (tmp_path / "speed.json").write_text('{"place": 1}')
    with pytest.raises(InputError, match="cannot be read"):
        read_speed(tmp_path / "speed.json")


def test_the_program_reads_a_plan_and_writes_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = speed.measure_speed
    monkeypatch.setattr(speed, "measure_speed", lambda plan: real(plan, slots=1, steps=2, compiled=False))
    (tmp_path / "plan.json").write_text(STUDY.plan(["bakeoff"], "runs", quick=True).to_json())
    speed.main(["--spec", str(tmp_path / "plan.json"), "--out", str(tmp_path / "speed.json")])
    assert read_speed(tmp_path / "speed.json") is not None
