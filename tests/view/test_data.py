import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from grokscope.cli import run
from grokscope.errors import InputError
from grokscope.runs import Run, RunOutcome, Store, open_runs
from grokscope.specs import Fork, RunSpec
from grokscope.view.data import query, tables_of, write_parquet

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two finished runs, a fork that has only begun, and one that has not."""
    monkeypatch.chdir(tmp_path)
    store = Store("runs")
    for seed in (0, 1):
        made = store.add(RunSpec().with_seed(seed))
        for step, validation, fsd in ((0, 0.0, None), (300, 0.1, 0.9), (4000 + seed, 1.0, 0.9)):
            made.append(
                {"step": step, "train_accuracy": 1.0, "validation_accuracy": validation, "fsd": fsd, "norm": 1.0}
            )
        made.append({"step": 0, "rank": 3, "undefined": "=why"}, "measures")
        made.finish(RunOutcome("grokked"))
    forked = replace(RunSpec(), fork=Fork(RunSpec().content_hash, 300))
    store.add(forked).append({"step": 300, "train_accuracy": 1.0, "validation_accuracy": 0.1, "norm": 1.0, "extra": 7})
    store.add(RunSpec().with_seed(9))
    return store.path


def runs(folder: Path) -> list[Run]:
    return list(open_runs(folder))


def ask(folder: Path, sql: str) -> list[tuple[object, ...]]:
    return query(runs(folder), sql)[1]


def test_a_row_says_what_the_timeline_says(folder: Path) -> None:
    sql = "select seed, outcome, memorized, synchronized, grokked, lead, fork_step, last_step from runs order by all"
    assert ask(folder, sql) == [
        (0, "grokked", 0, 300, 4000, 3700, None, 4000),
        (0, "unfinished", 300, None, None, None, 300, 300),
        (1, "grokked", 0, 300, 4001, 3701, None, 4001),
        (9, "unfinished", None, None, None, None, None, None),
    ]


def test_the_log_is_that_of_the_folders_with_null_where_undefined(folder: Path) -> None:
    expected = [{"run": one.name, **row} for one in runs(folder) for row in one.folder.log()]
    found = tables_of(runs(folder))["log"].to_pylist()
    assert [
        {name: value for name, value in row.items() if name in one} for row, one in zip(found, expected, strict=True)
    ] == expected
    assert ask(folder, "select count(*), count(fsd), count(extra) from log") == [(7, 4, 1)]
    assert ask(folder, "select step, rank, undefined from measures limit 1") == [(0, 3, "=why")]


def test_parquet_holds_the_same_and_overwrites_nothing(folder: Path) -> None:
    paths = write_parquet(runs(folder), Path("tables"))
    assert [path.name for path in paths] == ["runs.parquet", "log.parquet", "measures.parquet"]
    for path in paths:
        assert parquet.read_table(path).equals(tables_of(runs(folder))[path.stem])
    with pytest.raises(InputError, match="exists already; nothing was overwritten"):
        write_parquet(runs(folder), Path("tables"))


def test_the_command_exports_all_runs_or_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "runs", "--format", "parquet", "--out", "all"]) == 0
    assert run(["export", "runs", "add_mod97_s1", "--format", "parquet", "--out", "one"]) == 0
    assert capsys.readouterr().out.count("wrote ") == 6
    assert [parquet.read_table(f"{name}/runs.parquet").num_rows for name in ("all", "one")] == [4, 1]
    assert run(["export", "runs"]) == 2
    assert "name a run" in capsys.readouterr().err


def test_an_empty_folder_has_empty_tables(tmp_path: Path) -> None:
    assert ask(tmp_path, "select * from runs union all select * from log") == []


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_csv('secret.txt')",
        "select * from read_text('secret.txt')",
        "select * from 'secret.txt'",
        "select * from glob('*')",
        "copy (select 1) to 'out.csv'",
        "copy runs to 'out.csv'",
        "attach 'other.db'",
        "install httpfs",
        "load 'secret.txt'",
        "set enable_external_access = true",
        "pragma version",
        "select 1; select 2",
        "select 1; set enable_external_access = true; select * from read_text('secret.txt')",
        "insert into runs values (1)",
        "drop view runs",
        "create table y as select 1",
        "export database 'out'",
        "select * from folder",
        "select * from nowhere",
        "selec 1",
        "",
        "\x00",
        "select '\ud800'",
    ],
)
def test_hostile_or_wrong_sql_is_rejected_in_one_sentence(
    sql: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("secret.txt").write_text("secret content")
    before = sorted(Path.cwd().rglob("*"))
    assert run(["query", "runs", sql]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("grokscope: ")
    assert told.err.count("\n") == 1
    assert "secret content" not in told.err
    assert sorted(Path.cwd().rglob("*")) == before


def test_results_for_people_and_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "select '=1+1' as a, -1 as b, undefined from measures limit 1"
    assert run(["query", "runs", sql]) == 0
    assert capsys.readouterr().out == "a      b  undefined\n=1+1  -1  =why\n\n1 row\n"
    assert run(["query", "runs", sql, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"a": "=1+1", "b": -1, "undefined": "=why"}]
    assert run(["query", "runs", sql, "--format", "csv"]) == 0
    assert list(csv.reader(io.StringIO(capsys.readouterr().out))) == [["a", "b", "undefined"], ["'=1+1", "-1", "'=why"]]
    assert run(["query", "runs", "select chr(27) || '[31m' as x"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert run(["query", "runs", sql, "--format", "csv", "--json"]) == 2
