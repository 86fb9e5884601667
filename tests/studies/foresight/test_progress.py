import json
from pathlib import Path

import pytest

from grokscope.forecast.benchmark import Seal
from grokscope.studies.foresight import experiments, progress
from grokscope.studies.foresight.cells import CELLS
from grokscope.studies.foresight.sealing import present_seal

ROOT = Path(__file__).parents[3]


def test_the_stored_seal_is_that_of_the_plan_and_of_the_shipped_forecasters() -> None:
    assert Seal.load(ROOT / "results" / "foresight" / "seal.json") == present_seal()


def test_the_seal_holds_the_test_cells_at_every_fraction_and_no_run_of_development() -> None:
    seal, probes = present_seal(), [{0.2: 1.0, 0.11: 0.0, 0.15: 0.5}, {0.225: 0.4}, {}]
    edges = [cell.name for cell in CELLS.values() if cell.bracket]
    for found in probes:
        for kind in experiments.KINDS:
            for split in ("development", "test"):
                runs = experiments.kind_runs(split, kind, dict.fromkeys(edges, found), "tf32").values()
                assert {seal.holds(spec) for spec in runs} <= {split == "test"}
    test = {**experiments.planned_runs("test")}.values()
    assert seal.has_all(test, progress.searched_runs([]))
    assert not seal.has_all([*test][1:], progress.searched_runs([]))
    assert not seal.has_all([*test][:-1], progress.searched_runs([]))


def test_without_records_nothing_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "boundaries.json"
    path.write_text(json.dumps({"add_mod97-edge-w2-d64": {"0.2": 0.5}}))
    for module in (experiments, progress):
        monkeypatch.setattr(module, "BOUNDARIES", path)
    assert progress.main(["--seal", str(tmp_path / "seal.json")]) == 0
    assert json.loads(path.read_text()) == {"add_mod97-edge-w2-d64": {"0.2": 0.5}}
    assert capsys.readouterr().out.startswith("1 of 40 boundary cells have their fraction")


def test_a_second_seal_is_rejected_and_the_first_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    boundaries, seal = tmp_path / "boundaries.json", tmp_path / "seal.json"
    boundaries.write_text("{}")
    for module in (experiments, progress):
        monkeypatch.setattr(module, "BOUNDARIES", boundaries)
    line = ["--seal", str(seal)]
    assert progress.main(line) == progress.main(line) == 0, "the same seal may be asked for again"
    text = seal.read_bytes()
    boundaries.unlink()
    monkeypatch.setattr(experiments, "SEEDS", 27)
    capsys.readouterr()
    assert progress.main(line) == 2
    assert "is not overwritten; in another one this would differ: the test runs" in capsys.readouterr().err
    assert (seal.read_bytes(), boundaries.exists()) == (text, False)
