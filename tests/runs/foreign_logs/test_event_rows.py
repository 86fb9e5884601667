from pathlib import Path

import pytest
from event_files import crc32c, event_file, scalar, tensor

from grokscope.errors import InputError
from grokscope.runs.foreign_logs.event_rows import event_rows

ROWS = [(0, scalar("val/acc", 0.25) + scalar("val/loss", 4.5)), (300, tensor("val/acc", 0.5)), (70_000, b"")]
READ = [{"step": 0, "val/acc": 0.25, "val/loss": 4.5}, {"step": 300, "val/acc": 0.5}]


def test_reads_scalars_and_tensors_of_one_number(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.host"
    path.write_bytes(event_file(ROWS))
    assert [*event_rows(path)] == READ
    assert crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C


def test_a_file_that_is_cut_off_gives_what_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.host"
    whole = event_file(ROWS[:2])
    counts = set()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        found = [*event_rows(path)]
        assert found == READ[: len(found)]
        counts.add(len(found))
    assert counts == {0, 1}


def test_rejects_what_is_no_event_file(tmp_path: Path) -> None:
    path = tmp_path / "tfevents"
    path.write_bytes(b"step,val_acc\n0,0.5\n")
    with pytest.raises(InputError, match="is no event file of TensorBoard, or is damaged"):
        [*event_rows(path)]
    damaged = bytearray(event_file(ROWS))
    damaged[0] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(InputError, match="is damaged"):
        [*event_rows(path)]
    with pytest.raises(InputError, match="there is no file"):
        [*event_rows(tmp_path / "gone")]


def test_reads_what_tensorboard_writes(tmp_path: Path) -> None:
    writers = pytest.importorskip(
        "torch.utils.tensorboard", reason="install it with: pip install 'grokscope[trackers]'"
    )
    with writers.SummaryWriter(tmp_path) as writer:
        writer.add_scalar("val/acc", 0.5, 100)
    [path] = tmp_path.iterdir()
    assert [*event_rows(path)] == [{"step": 100, "val/acc": 0.5}]
