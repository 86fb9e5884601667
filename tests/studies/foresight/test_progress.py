import json
from pathlib import Path

import pytest

from grokscope.forecast.benchmark import Seal
from grokscope.runs import RunOutcome, RunRecord
from grokscope.studies.foresight import experiments, progress
from grokscope.studies.foresight.cells import CELLS

ROOT = Path(__file__).parents[3]


def test_the_stored_seal_is_that_of_the_plan_and_of_the_shipped_forecasters() -> None:
    assert Seal.load(ROOT / "results" / "foresight" / "seal.json") == progress.present_seal()


def test_shares_are_counted_by_cell_and_fraction_over_finished_runs() -> None:
    cell = CELLS["add_mod97-edge-w2-d64"]
    ended, never, open_ = RunOutcome("grokked", grokked=900), RunOutcome("never"), RunOutcome()
    records = [RunRecord(cell.run(seed, 0.1), one, {}, {}) for seed, one in enumerate([ended, never, never, open_])]
    records.append(RunRecord(CELLS["shuffled-w2"].run(0), ended, {}, {}))
    assert progress.probed_shares(records) == {cell.name: {0.1: 1 / 3}}


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
