import hashlib
import json
import os
import shutil
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from grokscope.runs import Run, RunOutcome, Store, open_runs, run_name
from grokscope.runs import index as indexing
from grokscope.runs import runs as reading
from grokscope.runs.index import INDEX, read_indexed
from grokscope.specs import Membership, RunSpec

RUNS = 12


@pytest.fixture(autouse=True)
def an_index_pays_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "PAYS_FROM", 2)
    monkeypatch.setattr(indexing, "SETTLED", 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = Store(tmp_path / "runs")
    for seed in range(RUNS):
        ended = store.add(RunSpec().with_seed(seed))
        if seed % 2:
            for step in (0, 300, 4000 + seed):
                grown = {"fsd": step / 4000, "norm": 30.0, "train_accuracy": step / 300}
                ended.append({"step": step, **grown, "validation_accuracy": step / 4001})
            ended.finish(RunOutcome("grokked", memorized=300, grokked=4000 + seed))
    time.sleep(0.02)  # a tick of the clock that stamps files
    return store.path


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the runs whose folders are read."""
    names: list[str] = []
    facts = Run.facts

    def noted(run: Run, complete: bool = True) -> dict[str, object]:
        names.append(run.name)
        return facts(run, complete)

    monkeypatch.setattr(reading.Run, "facts", noted)
    return names


def truth(folder: Path) -> list[dict[str, object]]:
    return [run.summary() for run in open_runs(folder)]


def name_of(seed: int) -> str:
    return run_name(RunSpec().with_seed(seed))


def test_a_second_reading_reads_no_folder_and_says_the_same(folder: Path, read: list[str]) -> None:
    first = open_runs(folder).table()
    assert len(read) == RUNS
    read.clear()
    assert open_runs(folder).table() == first
    assert read == []
    assert first == truth(folder)
    read.clear()
    assert [RunSpec.from_json(facts["spec"]) for facts in open_runs(folder).facts(complete=False)] == [
        Store(folder).folder(row["run"]).spec for row in first
    ]
    assert read == []
    assert first[1]["run"] == sorted(name_of(seed) for seed in range(RUNS))[1]


def test_a_run_that_ends_changes_vanishes_or_comes_is_seen(folder: Path, read: list[str]) -> None:
    open_runs(folder).table()
    read.clear()
    store = Store(folder)
    store.folder(name_of(0)).finish(RunOutcome("never", memorized=100))
    store.folder(name_of(1)).finish(RunOutcome("grokked", memorized=300, grokked=4002))  # as long as before
    shutil.rmtree(folder / name_of(2))
    (folder / name_of(3) / "outcome.json").unlink()
    store.add(RunSpec().with_seed(99))
    rows = {row["run"]: row for row in open_runs(folder).table()}
    assert sorted(read) == sorted(name_of(seed) for seed in (0, 1, 3, 99))
    assert rows[name_of(0)]["outcome"] == "not grokked"
    assert rows[name_of(1)]["grokked"] == 4002
    assert name_of(2) not in rows
    assert rows[name_of(3)]["outcome"] == "unfinished"
    assert list(rows.values()) == truth(folder)


def test_a_file_changed_in_place_with_its_old_time_is_seen(folder: Path) -> None:
    open_runs(folder).table()
    path = folder / name_of(1) / "outcome.json"
    before = path.stat()
    facts = json.loads(path.read_text().replace("4001", "9001"))
    del facts["sha256"]
    facts["sha256"] = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(facts, indent=1))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    assert {row["run"]: row["grokked"] for row in open_runs(folder).table()}[name_of(1)] == 9001


def test_a_run_of_another_format_is_not_listed_from_the_index(folder: Path) -> None:
    open_runs(folder).table()
    (folder / name_of(1) / "format").write_text("grokscope run 7\n")
    rows = {row["run"]: row for row in open_runs(folder).table()}
    assert len(rows) == RUNS, "the others are listed all the same"
    assert "which a newer grokscope wrote; this version reads 'grokscope run 1'" in rows[name_of(1)]["problem"]
    assert [row["problem"] for name, row in rows.items() if name != name_of(1)] == [None] * (RUNS - 1)


def test_a_folder_that_stands_under_another_runs_name_is_read_again(folder: Path) -> None:
    open_runs(folder).table()
    one, other = folder / name_of(1), folder / name_of(5)
    one.rename(folder / "between")
    other.rename(one)
    (folder / "between").rename(other)
    problems = {row["run"]: row["problem"] for row in open_runs(folder).table() if row["problem"] is not None}
    assert list(problems) == sorted([one.name, other.name])
    assert all("is the spec of another run" in problem for problem in problems.values())


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff" * 200, b"SQLite format 3\0", b"SQLite format 3\0" + bytes(5000), b"[" * 100_000],
)
def test_a_damaged_index_counts_for_nothing_and_is_made_again(content: bytes, folder: Path, read: list[str]) -> None:
    expected = open_runs(folder).table()
    whole = (folder / INDEX).read_bytes()
    (folder / INDEX).write_bytes(content)
    read.clear()
    assert open_runs(folder).table() == expected
    assert len(read) == RUNS
    assert (folder / INDEX).read_bytes() == whole


def test_one_flipped_bit_is_found(folder: Path) -> None:
    expected = open_runs(folder).table()
    content = bytearray((folder / INDEX).read_bytes())
    place = content.index((300).to_bytes(2, "big") + (4001).to_bytes(2, "big"))
    content[place + 3] ^= 2
    (folder / INDEX).write_bytes(content)
    with closing(sqlite3.connect(folder / INDEX)) as database:
        assert (4003,) in database.execute("select grokked from runs where run = ?", [name_of(1)])
    assert open_runs(folder).table() == expected


def test_complete_rows_of_finished_runs_are_read_once(folder: Path, read: list[str]) -> None:
    first = open_runs(folder).facts()
    assert len(read) == RUNS
    ended = next(facts for facts in first if facts["run"] == name_of(1))
    assert (ended["synchronized"], ended["lead"], ended["last_step"]) == (4001, 0, 4001)
    read.clear()
    assert open_runs(folder).facts() == first
    assert sorted(read) == sorted(name_of(seed) for seed in range(0, RUNS, 2)), "those that have not ended"
    read.clear()
    Store(folder).folder(name_of(2)).append(
        {"step": 0, "train_accuracy": 1.0, "validation_accuracy": 0.0, "fsd": 0.9, "norm": 1.0}
    )
    assert {facts["run"]: facts["synchronized"] for facts in open_runs(folder).facts()}[name_of(2)] == 0
    assert {row["run"]: row["memorized"] for row in open_runs(folder).table()}[name_of(2)] is None, (
        "logs are not listed"
    )


def test_a_list_before_it_leaves_the_events_to_be_read(folder: Path, read: list[str]) -> None:
    open_runs(folder).table()
    read.clear()
    assert {facts["run"]: facts["synchronized"] for facts in open_runs(folder).facts()}[name_of(1)] == 4001
    assert len(read) == RUNS
    read.clear()
    assert open_runs(folder).table() == truth(folder)
    assert len(read) == RUNS, "all of them by the truth, and none by the table"


def test_a_study_that_is_added_later_is_seen(folder: Path) -> None:
    assert {row["study"] for row in open_runs(folder).table()} == {None}
    Store(folder).add(RunSpec().with_seed(1), [Membership("synchronization", "base", "add_mod97_s1")])
    studies = {row["run"]: row["study"] for row in open_runs(folder).table()}
    assert studies[name_of(1)] == "synchronization"


def test_the_index_is_a_database_for_others_too(folder: Path) -> None:
    open_runs(folder).facts()
    with closing(sqlite3.connect(f"file:{folder / INDEX}?mode=ro", uri=True)) as database:
        found = database.execute("select count(*), max(grokked) from runs where outcome = 'grokked'").fetchone()
    assert found == (RUNS // 2, 4011)


def test_an_index_of_another_version_is_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = open_runs(folder).table()
    monkeypatch.setattr(indexing, "FORMAT", 99)
    assert open_runs(folder).table() == expected


def test_what_was_written_a_moment_ago_is_not_trusted_yet(
    folder: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "SETTLED", 3600 * 10**9)
    open_runs(folder).table()
    read.clear()
    open_runs(folder).table()
    assert len(read) == RUNS


def test_a_folder_that_cannot_be_written_is_listed_all_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "touch", refuse)  # who runs tests may be root, whom no mode of a folder stops
    monkeypatch.setattr(Path, "open", refuse)
    names = Store(folder).names()
    row = {"outcome": "unfinished", "stopped_early": False, "problem": None}
    assert read_indexed(folder, names, lambda name, complete: {"run": name, **row}) == [
        {"run": name, **row} for name in names
    ]
    assert not (folder / INDEX).exists()


def test_a_few_runs_leave_no_index(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "PAYS_FROM", RUNS + 1)
    assert open_runs(folder).table() == truth(folder)
    assert not (folder / INDEX).exists()


def test_nothing_but_the_index_is_left_behind(folder: Path) -> None:
    open_runs(folder).table()
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == [INDEX]


def test_a_word_means_the_run_and_not_its_forks(tmp_path: Path) -> None:
    from grokscope.specs import Fork

    store = Store(tmp_path / "runs")
    parent = RunSpec().with_seed(42)
    store.add(parent)
    for decay in (2.0, 3.0):
        training = replace(parent.training, weight_decay=decay)
        store.add(replace(parent, fork=Fork(parent.content_hash, 1000), training=training))
    assert store.find("add_mod97_s42").spec == parent
    store.add(replace(parent, training=replace(parent.training, weight_decay=0.5)))
    with pytest.raises(ValueError, match="names 4 runs"):
        store.find("add_mod97_s42")
