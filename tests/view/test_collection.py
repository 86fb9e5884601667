"""A collection: written from records, read again as records, frames and SQL, and described completely."""

import json
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from math import isnan
from pathlib import Path

import pytest

import grokscope
from grokscope.cli import run
from grokscope.errors import InputError
from grokscope.forecast import TIERS
from grokscope.runs import open_runs
from grokscope.runs.packing import save_records
from grokscope.runs.records import RunRecord
from grokscope.studies import find_study
from grokscope.studies.sources import every_record, read_evidence, read_records
from grokscope.view.collection import Collection, open_collection
from grokscope.view.collection_files import cell_of, write_collection
from grokscope.view.page.sources import source_of
from grokscope.view.signals import COLUMNS, describe_column

pytest.importorskip("pyarrow")
STORED = Path(__file__).parents[2] / "results" / "synchronization"


@pytest.fixture(scope="module")
def records() -> list[RunRecord]:
    """Some thirty, and one whose FSD is nowhere defined."""
    found = read_records(STORED)
    without = next(one for one in found[1:] if all(map(isnan, one.evaluations["fsd"])))
    return [without, *(one for one in found[::40] if one is not without)]


@pytest.fixture(scope="module")
def folder(records: list[RunRecord], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("collection")
    write_collection(records, place, "synchronization", "A study")
    return place


@pytest.fixture(scope="module")
def found(folder: Path) -> Collection:
    return grokscope.collection(folder)


def test_records_come_back_as_they_were_kept(records: list[RunRecord], found: Collection) -> None:
    again = {record.name: record for record in found.records()}
    assert again.keys() == {record.name for record in records}
    for record in records:
        other = again[record.name]
        assert (other.spec, other.outcome, other.made_for) == (record.spec, record.outcome, record.made_for)
        for name, kept in record.evaluations.items():
            ours = other.evaluations[name]
            assert ours == pytest.approx(kept, rel=2e-7, abs=1e-30, nan_ok=True), (record.name, name)
            assert sum(a != b for a, b in zip(ours, kept, strict=True) if b == b) <= 0.02 * len(kept), "seven digits"
        assert other.evaluations.keys() == record.evaluations.keys()
        assert other.checkpoints.keys() == record.checkpoints.keys()
        for name, kept in record.checkpoints.items():
            assert other.checkpoints[name] == pytest.approx(kept, rel=2e-7, abs=1e-30, nan_ok=True), (record.name, name)


def test_sparse_columns_are_kept_by_the_stated_rule(records: list[RunRecord], tmp_path: Path) -> None:
    record = max(records, key=lambda one: one.evaluations["step"][-1])
    steps = record.evaluations["step"]
    signals = {"norm_embed": [0.5 + step for step in steps], "fingerprint": [2**53 - 1 - int(step) for step in steps]}
    logged = replace(record, evaluations=record.evaluations | signals)
    write_collection([logged], tmp_path, "synchronization", "A study", ("norm_", "fingerprint"))
    [found] = open_collection(tmp_path).records()
    is_kept = [step <= 1_000 or step % 500 == 0 for step in steps]
    assert 0 < sum(is_kept) < len(steps) - 10
    for name, values in signals.items():
        assert [isnan(value) for value in found.evaluations[name]] == [not one for one in is_kept]
        assert [value for value, one in zip(found.evaluations[name], is_kept, strict=True) if one] == [
            value for value, one in zip(values, is_kept, strict=True) if one
        ]
    assert not any(map(isnan, found.evaluations["norm"]))
    assert found.timeline == record.timeline
    rule = "begin with norm_ or fingerprint only those up to step 1,000 and at multiples of 500"
    assert rule in (tmp_path / "DATASHEET.md").read_text()
    assert rule in json.loads((tmp_path / "croissant.json").read_text())["description"]


def test_events_in_the_table_are_by_all_evaluations(records: list[RunRecord], found: Collection) -> None:
    rows = {row["run"]: row for row in found.arrow("runs").to_pylist()}
    for record in records:
        assert rows[record.name]["grokked"] == record.timeline.grokked
        assert rows[record.name]["synchronized"] == record.timeline.sync.step


def test_runs_of_a_cell_differ_in_their_seeds_alone(records: list[RunRecord], found: Collection) -> None:
    cells = {row["cell"]: row["runs"] for row in found.arrow("cells").to_pylist()}
    assert sum(cells.values()) == len(records)
    assert set(cells) == {cell_of(record.spec) for record in records}
    assert {row["cell"] for row in found.arrow("runs").to_pylist()} == set(cells)


def test_one_experiment_is_read_alone(records: list[RunRecord], found: Collection) -> None:
    name = next(one.made_for[0].experiment for one in records if one.made_for)
    expected = {one.name for one in records if name in {member.experiment for member in one.made_for}}
    assert {one.name for one in found.records(name)} == expected
    with pytest.raises(InputError, match="there is no experiment 'nothing' here"):
        found.records("nothing")


def test_pandas_polars_and_duckdb_read_the_same(folder: Path, found: Collection) -> None:
    pandas, polars, duckdb = (pytest.importorskip(name) for name in ("pandas", "polars", "duckdb"))
    ours = found.pandas("curves")
    assert len(pandas.read_parquet(folder / "curves.parquet")) == len(polars.read_parquet(folder / "curves.parquet"))
    assert len(ours) == len(found.polars("curves"))
    sql = f"select count(*) from '{folder}/runs.parquet' join '{folder}/curves.parquet' using (run)"
    assert duckdb.connect().execute(sql).fetchall() == [(len(ours),)]
    assert str(found.pandas("runs")["grokked"].dtype) == "Int64"


def test_every_table_and_column_is_described_and_every_file_named_by_its_digest(
    folder: Path, found: Collection
) -> None:
    described = found.description
    assert described["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    sets = {one["name"]: [field["name"] for field in one["field"]] for one in described["recordSet"]}
    assert sets == {table: found.arrow(table).column_names for table in found.tables}
    for file in described["distribution"]:
        assert file["sha256"] == sha256((folder / file["contentUrl"]).read_bytes()).hexdigest()
    fields = [field for one in described["recordSet"] for field in one["field"]]
    assert all(len(field["description"]) > 5 for field in fields)
    known = {field["@id"] for field in fields}
    assert {field["references"]["field"]["@id"] for field in fields if "references" in field} <= known
    sheet = (folder / "DATASHEET.md").read_text()
    assert all(f"| {table} |" in sheet for table in found.tables)


def test_the_same_records_give_the_same_bytes(records: list[RunRecord], folder: Path, tmp_path: Path) -> None:
    for path in write_collection(list(reversed(records)), tmp_path, "synchronization", "A study"):
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name


def test_it_is_read_without_torch(folder: Path) -> None:
    program = (
        "import sys, grokscope; found = grokscope.collection(sys.argv[1]); "
        "print(len(found.records()), found.records()[0].timeline.last > 0, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout.split()[1:] == ["True", "False"]


def test_what_is_no_collection_is_named(tmp_path: Path, folder: Path) -> None:
    for place in (tmp_path, "nothing", "sync hronization"):
        with pytest.raises(InputError, match="there is no collection"):
            open_collection(place)
    (tmp_path / "runs.parquet").write_bytes(b"torn")
    with pytest.raises(InputError, match=r"runs\.parquet' cannot be read"):
        open_collection(tmp_path).records()
    with pytest.raises(InputError, match=r"has no table 'curve'; did you mean 'curves'\?"):
        open_collection(folder).arrow("curve")
    with pytest.raises(InputError, match="a collection needs at least one record"):
        write_collection([], tmp_path, "none", "None")


@pytest.mark.parametrize("column", ["train_loss", "norm_blocks.0", "validation_loss", "post0.read.a.fsd_one", "trig"])
def test_every_column_has_a_tier(column: str) -> None:
    tiers = {"train_loss": 1, "norm_blocks.0": 2, "validation_loss": 5, "post0.read.a.fsd_one": 4, "trig": 5}
    assert describe_column(column).endswith(f" (tier {tiers[column]}: {TIERS[tiers[column]]})")
    assert all(tier is None or tier < len(TIERS) for _, tier, _ in COLUMNS)


def test_the_command_writes_a_collection(
    records: list[RunRecord], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed, out = tmp_path / "all.records.gz", tmp_path / "tables"
    save_records(packed, records)
    command = ["reproduce", "synchronization", "--collection", "--from", str(packed), "--out", str(out)]
    assert run(command) == 0
    assert f"wrote {out}/curves.parquet" in capsys.readouterr().out
    described = json.loads((out / "croissant.json").read_text())
    assert described["name"] == "synchronization"
    assert "begin with norm_ or update_ or fingerprint only those up to step 1,000" in described["description"]


def test_a_study_reads_its_evidence_from_a_collection(records: list[RunRecord], folder: Path, tmp_path: Path) -> None:
    study = find_study("synchronization")
    evidence = read_evidence(study, folder)
    placed = {one.name for runs in evidence.records.values() for one in runs.values()}
    assert placed == {record.name for record in records if record.made_for}
    found = {one.name: one.timeline for one in read_records(folder)}
    for record in records:
        again = found[record.name]
        assert (again.grokked, again.sync.step) == (record.timeline.grokked, record.timeline.sync.step)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "collection").symlink_to(folder)
    assert len(read_records(tmp_path / "results")) == len(every_record(tmp_path / "results")) == len(records)


def test_whatever_reads_packed_records_reads_a_collection(
    records: list[RunRecord], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = source_of(folder)
    assert {one.name for one in shown.runs} == {record.name for record in records}
    assert shown.problems == ()
    assert run(["import", str(folder), "--out", str(tmp_path / "runs")]) == 0
    assert f"added {len(records)} runs" in capsys.readouterr().out
    assert {one.record.outcome.grokked for one in open_runs(tmp_path / "runs")} == {
        record.outcome.grokked for record in records
    }
    assert run(["list", str(folder)]) == 0
    assert "make runs of them with: grokscope import" in capsys.readouterr().out
