"""What the shipped forecasters are fitted to: never test runs, and never half a file."""

import gzip
from pathlib import Path

import pytest

from grokscope.forecast.refitting import main
from grokscope.runs import RunOutcome
from grokscope.runs.packing import save_records
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec

STEPS = [*range(0, 4001, 100)]


def records(count: int) -> list[RunRecord]:
    found = []
    for seed in range(count):
        grokked = 1500 + 100 * seed
        log = {
            "step": STEPS,
            "train_accuracy": [float(step > 200) for step in STEPS],
            "validation_accuracy": [float(step >= grokked) for step in STEPS],
            "validation_loss": [6.0 * 0.05 ** (step / grokked) for step in STEPS],
        }
        found.append(
            RunRecord(RunSpec().with_seed(seed), RunOutcome("grokked", memorized=300, grokked=grokked), log, {})
        )
    return found


def test_tiers_are_fitted_whose_signals_some_run_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_records(tmp_path / "all.records.gz", records(6), {"split": "development"})
    assert main([str(tmp_path / "all.records.gz"), "--out", str(tmp_path / "new" / "fitted")]) == 0
    assert {path.name for path in (tmp_path / "new" / "fitted").iterdir()} == {"tier-0.json", "tier-5.json"}
    assert "tier 3 is not fitted: no run has log_norm" in capsys.readouterr().out


def test_test_runs_and_what_cannot_be_read_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_records(tmp_path / "test.records.gz", records(2), {"split": "test"})
    (tmp_path / "cut.records.gz").write_bytes((tmp_path / "test.records.gz").read_bytes()[:60])
    (tmp_path / "list.records.gz").write_bytes(gzip.compress(b"[]\n"))
    reasons = {"test": "holds test runs", "cut": "cannot be read", "list": "cannot be read", "gone": "cannot be read"}
    for name, reason in reasons.items():
        assert main([str(tmp_path / f"{name}.records.gz"), "--out", str(tmp_path / "fitted")]) == 2
        assert reason in capsys.readouterr().err
    assert not [*(tmp_path / "fitted").iterdir()]
