"""Packed records as stored runs: what was packed is what any command reads."""

from pathlib import Path

import pytest

from grokscope.errors import InputError
from grokscope.jobs import run_all
from grokscope.runs import Run, RunOutcome, RunRecord, Store, open_runs
from grokscope.runs.doctor import examine
from grokscope.runs.packing import pack_records, save_records, unpack_records
from grokscope.runs.unpacking import add_records
from grokscope.specs import Membership
from short_runs import tiny

pytestmark = pytest.mark.usefixtures("quick_disk")
MADE_FOR = (Membership("study", "experiment", "name"),)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two trained runs, one of them measured at its checkpoints, in one file."""
    folder = tmp_path_factory.mktemp("packed")
    store = Store(folder / "trained")
    run_all([tiny(0), tiny(1)], store, compiled=False)
    save_records(folder / "some.records.gz", [one.record() for one in store])
    return folder


def test_records_come_back_as_they_were_packed(packed: Path, tmp_path: Path) -> None:
    assert add_records(unpack_records(packed / "some.records.gz"), tmp_path / "runs") == 2
    records = [run.record for run in open_runs(tmp_path / "runs")]
    assert pack_records(records) == (packed / "some.records.gz").read_bytes()
    assert not list(examine(Store(tmp_path / "runs")))
    assert all(run.steps == () for run in open_runs(tmp_path / "runs"))


def test_what_is_there_stays_and_learns_for_what_it_was_made(packed: Path, tmp_path: Path) -> None:
    first, second = unpack_records(packed / "some.records.gz")
    assert add_records([first], tmp_path / "runs") == 1
    noted = RunRecord(first.spec, first.outcome, first.evaluations, first.checkpoints, MADE_FOR)
    assert add_records([noted, second], tmp_path / "runs") == 1
    assert Run(Store(tmp_path / "runs").locate(first.spec)).record.made_for == MADE_FOR
    assert add_records([first, second], tmp_path / "runs") == 0


def test_a_run_that_has_begun_is_not_written_over(packed: Path, tmp_path: Path) -> None:
    Store(tmp_path / "runs").add(tiny(0)).append({"step": 0, "train_accuracy": 0.1, "validation_accuracy": 0.1})
    with pytest.raises(InputError, match="has begun and not ended; nothing was written over it"):
        add_records(unpack_records(packed / "some.records.gz"), tmp_path / "runs")
    assert Store(tmp_path / "runs").locate(tiny(0)).outcome == RunOutcome()


def test_a_folder_of_records_says_how_to_read_it(packed: Path) -> None:
    with pytest.raises(InputError, match=r"grokscope import .*some\.records\.gz --out runs/some$"):
        open_runs(packed / "some.records.gz")
