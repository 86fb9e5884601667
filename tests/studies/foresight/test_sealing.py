"""No test run is trained before the forecasters and their thresholds are sealed, whichever command trains it."""

from dataclasses import replace
from pathlib import Path

import pytest
from sealed_folder import committed

from grokscope.cli import run
from grokscope.errors import InputError
from grokscope.forecast.benchmark import Seal
from grokscope.forecast.refitting import main as refit
from grokscope.runs import RunOutcome
from grokscope.runs.packing import save_records
from grokscope.runs.records import RunRecord
from grokscope.specs import Membership, RunSpec
from grokscope.studies.foresight import sealing
from grokscope.studies.foresight.cells import CELLS
from grokscope.studies.foresight.sealing import is_test_run, present_seal, require_seal

TEST = CELLS["S5-quick"].run(0)
SENTENCE = "test runs are trained after the forecasters are sealed; --seal names the committed seal"


def test_runs_of_the_test_cells_are_known_at_every_precision_and_fraction_and_no_others() -> None:
    for cell in CELLS.values():
        middle = [] if cell.bracket is None else [sum(cell.bracket) / 2, cell.bracket[0] + 0.01]
        for fraction in (None, *middle):
            spec = cell.run(3, fraction)
            found = {is_test_run(replace(spec, precision=precision)) for precision in ("float32", "tf32")}
            assert found == {cell.split == "test"}


@pytest.mark.parametrize(
    "line",
    [
        ["foresight"],
        ["foresight", "--only", "test-quick"],
        ["foresight", "--only", "test-boundary", "--n-seeds", "1", "--plan-only", "plan.json"],
        ["foresight", "--part", "99", "--plan-only", "plan.json"],
        ["foresight", "--part", "99"],
    ],
    ids=" ".join,
)
def test_reproduce_trains_and_plans_no_test_run_without_a_seal(
    line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from grokscope.studies.foresight import STUDY
    from grokscope.studies.parts import parts_of

    monkeypatch.chdir(tmp_path)
    last = str(len(parts_of(STUDY, "float32")))
    assert run(["reproduce", *[last if word == "99" else word for word in line], "--precision", "float32"]) == 2
    assert SENTENCE in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


def test_development_needs_no_seal_and_other_studies_take_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = ["--n-seeds", "1", "--plan-only", "plan.json"]
    assert run(["reproduce", "foresight", "--only", "development-quick", *plan]) == 0
    Path("plan.json").unlink()
    assert run(["reproduce", "bakeoff", *plan, "--seal", "seal.json"]) == 2
    assert "--seal has no effect: no runs of bakeoff are sealed" in capsys.readouterr().err


def test_a_seal_lets_pass_what_it_names_once_it_is_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "seal.json"
    present_seal().save(path)
    monkeypatch.delenv("GROKSCOPE_COMMIT", raising=False)
    with pytest.raises(InputError, match="is not committed as it is"):
        require_seal([TEST], path)
    monkeypatch.setenv("GROKSCOPE_COMMIT", "0123456789ab")  # a copy without history
    assert require_seal([TEST], path) == {"seal": present_seal().digest}
    committed(path)
    monkeypatch.delenv("GROKSCOPE_COMMIT")
    assert require_seal([TEST], path) == {"seal": present_seal().digest}
    monkeypatch.setenv("GROKSCOPE_COMMIT", "0123456789ab")
    path.write_text(path.read_text() + " ")
    with pytest.raises(InputError, match="is not committed as it is"):
        require_seal([TEST], path)


def test_a_seal_of_other_forecasters_is_none(tmp_path: Path) -> None:
    seal, path = present_seal(), tmp_path / "seal.json"
    replace(seal, forecasters={**seal.forecasters, "tier-5": "0" * 64}).save(path)
    with pytest.raises(InputError, match="what differs: the forecaster tier-5"):
        require_seal([TEST], path)
    with pytest.raises(InputError, match="names the committed seal"):
        require_seal([TEST], None)


def test_a_forecaster_without_thresholds_is_not_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (sealing.FITTED / "tier-5.json").read_text()
    (tmp_path / "tier-5.json").write_text(text.replace('"alarms": {', '"alarms": {}, "others": {', 1))
    monkeypatch.setattr(sealing, "FITTED", tmp_path)
    monkeypatch.setattr(sealing, "fitted_tiers", lambda: (5,))
    with pytest.raises(InputError, match="tier-5 has no thresholds of alarms"):
        present_seal()
    assert isinstance(Seal.load(Path(__file__).parents[3] / "results" / "foresight" / "seal.json"), Seal)


def test_nothing_is_fitted_to_test_runs_however_they_were_packed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = {"step": [0, 100, 200], "train_accuracy": [0.1, 1.0, 1.0], "validation_accuracy": [0.0, 0.1, 0.99]}
    outcome = RunOutcome("grokked", memorized=100, grokked=200)
    member = (Membership("foresight", "test-quick", "S5"),)
    save_records(tmp_path / "all.records.gz", [RunRecord(RunSpec(), outcome, log, {}, member)])
    assert refit([str(tmp_path / "all.records.gz"), "--out", str(tmp_path / "fitted")]) == 2
    assert "holds test runs; nothing is fitted to them" in capsys.readouterr().err
