import json
from pathlib import Path

import pytest

from grokscope.studies import find_study
from grokscope.studies.foresight import STUDY, experiments
from grokscope.studies.foresight.experiments import planned_runs
from grokscope.studies.parts import parts_of


def test_before_any_probe_every_boundary_cell_has_its_first_one() -> None:
    runs = STUDY.experiments["development-boundary"](None, "tf32")
    assert {spec.train_fraction for name, spec in runs.items() if name.startswith("add_mod97-edge")} == {0.2}
    assert all(sum(name.startswith(f"{cell}-f") for name in runs) == 8 for cell in ("add_mod97-edge-w2-d32",))


def test_probes_stay_in_the_collection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cell = "add_mod97-edge-w2-d64"
    path = tmp_path / "boundaries.json"
    path.write_text(json.dumps({cell: {"0.2": 1.0, "0.125": 0.5}}))
    before = planned_runs("development")
    monkeypatch.setattr(experiments, "BOUNDARIES", path)
    after = planned_runs("development")
    assert {spec.content_hash for spec in before.values()} <= {spec.content_hash for spec in after.values()}
    assert sum(name.startswith(f"{cell}-f0.125_") for name in after) == 28
    assert sum(name.startswith(f"{cell}-f0.2_") for name in after) == 8


def test_the_whole_is_large_enough_and_its_parts_short_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "boundaries.json"
    edges = [cell for cell in experiments.CELLS.values() if cell.bracket]
    path.write_text(json.dumps({cell.name: {"0.2": 1.0, "0.11": 0.0, "0.15": 0.5} for cell in edges}))
    monkeypatch.setattr(experiments, "BOUNDARIES", path)
    runs = {**planned_runs("development"), **planned_runs("test")}
    assert len(runs) >= 2000
    assert sum(spec.training.steps for spec in runs.values()) < 45e6
    parts = parts_of(find_study("foresight"), "tf32")
    assert max(part.seconds for part in parts) <= 9 * 60
    titles = [part.title for part in parts]
    assert titles == sorted(titles)  # development, then test
    assert {*titles} == {"development", "test"}


def test_no_run_is_of_both_splits() -> None:
    splits = [{spec.content_hash for spec in planned_runs(split).values()} for split in ("development", "test")]
    assert not splits[0] & splits[1]
