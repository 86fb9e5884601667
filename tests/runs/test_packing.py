"""Records in one file."""

import gzip
import json
import math
from pathlib import Path

import pytest

from grokscope.errors import InputError
from grokscope.runs import (
    Store,
)
from grokscope.runs.packing import pack_records, save_records, unpack_records
from grokscope.runs.records import RunRecord
from recorded_runs import ADD, FORK, MULT, S3, folder


def same(one: RunRecord, other: RunRecord) -> None:
    assert one.spec == other.spec
    assert one.outcome == other.outcome
    for part in ("evaluations", "checkpoints"):
        mine, theirs = getattr(one, part), getattr(other, part)
        assert list(mine) == list(theirs)
        for name in mine:
            assert mine[name] == pytest.approx(theirs[name], rel=1e-6, nan_ok=True)


def test_records_survive_packing_and_the_same_ones_give_the_same_bytes(recorded: Store, tmp_path: Path) -> None:
    records = [folder(recorded, spec).record() for spec in (ADD, MULT, S3, FORK)]
    save_records(tmp_path / "records.gz", records)
    back = unpack_records(tmp_path / "records.gz")
    for one, other in zip(records, back, strict=True):
        same(one, other)
    assert pack_records(back) == pack_records(records) == (tmp_path / "records.gz").read_bytes()


@pytest.mark.parametrize(
    "content",
    [b"", b"no gzip", gzip.compress(b"{}"), gzip.compress(b'{"format": "other"}')],
    ids=["empty", "not compressed", "no format", "another format"],
)
def test_a_damaged_file_of_records_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "records.gz").write_bytes(content)
    with pytest.raises(InputError, match=r"the records .*records.gz' cannot be read"):
        unpack_records(tmp_path / "records.gz")


def test_a_format_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "records.gz").write_bytes(gzip.compress(b'{"format": ["x"]}'))
    with pytest.raises(InputError, match=r"its format is .*x.*, and this version reads grokscope records 1 and"):
        unpack_records(tmp_path / "records.gz")


@pytest.mark.parametrize(
    ("part", "change", "sentence"),
    [
        ("log", {"step": None}, "a log has no column 'step'"),
        ("log", {"train_accuracy": [0.5]}, "the columns of a log are not of one length"),
        ("log", {"validation_accuracy": ["high", "high"]}, "'validation_accuracy' of a log holds something that is"),
        ("log", {"step": [100, 100]}, "the steps of a log are not increasing whole numbers"),
        ("log", {"step": [0, 0.5]}, "the steps of a log are not increasing whole numbers"),
        ("log", {"step": [False, True]}, "the steps of a log are not increasing whole numbers"),
        ("log", {"step": [0, math.nan]}, "a record holds finite numbers only"),
        ("measured", {"step": [200, 100]}, "the steps of a log are not increasing whole numbers"),
        ("measured", {"fsd": [0.5]}, "a log has no column 'step'"),
        ("outcome", {"outcome": "unfinished"}, "a record is of a run that has not ended"),
        ("outcome", {"grokked": None}, "an outcome does not say 'grokked'"),
        ("outcome", {"memorized": "soon"}, "an outcome's 'memorized' is not a step"),
    ],
)
def test_a_record_that_nobody_could_read_is_refused_where_it_is_unpacked(
    tmp_path: Path, part: str, change: dict, sentence: str
) -> None:
    whole = {
        "spec": ADD.to_dict(),
        "outcome": {"outcome": "never", "failed_at": None, "memorized": 100, "grokked": None},
        "log": {"step": [0, 100], "train_accuracy": [0.0, 1.0], "validation_accuracy": [0.0, 0.1]},
        "measured": {},
    }
    for name, value in change.items():
        whole[part].pop(name, None)
        if value is not None:
            whole[part][name] = value
    lines = [json.dumps({"format": "grokscope records 1"}), json.dumps(whole)]
    (tmp_path / "changed.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    with pytest.raises(InputError, match=sentence):
        unpack_records(tmp_path / "changed.gz")


def test_a_small_file_with_a_huge_text_is_rejected_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "records.gz"
    head = json.dumps({"format": "grokscope records 2"}).encode() + b"\n"
    for text in (b" " * 2 * 10**8, b"[" * 2 * 10**8):
        path.write_bytes(gzip.compress(head + text, 1))
        with pytest.raises(InputError, match=r"its text has more than 100 times its [0-9,]+ bytes"):
            unpack_records(path)
