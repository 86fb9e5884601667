"""The page and the README's sentence are made of the stored measurements, and of nothing else."""

import copy
import json
import os
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import coverage, coverage_page, provenance, scale, scale_page, tasks  # noqa: E402
from benchmarks import page as pages  # noqa: E402

from grokscope.jobs import shards, slurm  # noqa: E402
from grokscope.view.page import sources  # noqa: E402

watch = import_module("grokscope.cli.watcher")


def test_the_page_is_what_the_stored_measurements_give() -> None:
    assert pages.PAGE.read_text(encoding="utf-8") == pages.page()


def test_the_readmes_sentence_is_too() -> None:
    readme = pages.README.read_text(encoding="utf-8")
    assert pages.BLOCK.search(readme)
    assert pages.with_summary(readme) == readme


def test_the_tables_of_the_page_on_scale_are_too() -> None:
    text = scale_page.PAGE.read_text(encoding="utf-8")
    assert scale_page.BLOCK.search(text)
    assert scale_page.with_tables(text) == text


def test_the_page_on_scale_names_the_limits_that_hold() -> None:
    text = " ".join(scale_page.PAGE.read_text(encoding="utf-8").split())
    assert f"at most {watch.MOST_LOGS} that had ended" in text
    assert f"more than {sources.MOST_RUNS:,} are rejected" in text
    assert f"an array of at most {slurm.ARRAY:,}" in text
    assert f"on a CPU up to {'sixteen' if shards.RUNS_PER_CORE == 16 else shards.RUNS_PER_CORE}," in text


def test_large_sweeps_kept_their_promises_when_last_measured() -> None:
    by_size = {size["runs"]: size for size in pages.record("scale")["measured"]}
    largest = by_size[100_000]
    assert largest["planning"]["planning_processor_seconds"] < 30
    assert largest["planning"]["peak_memory_bytes"] < 2 * 10**9
    assert by_size[10_000]["listing"]["processor_seconds"] < 1
    assert by_size[10_000]["watching_unindexed"]["first_processor_seconds"] < 10
    assert "a page shows at most" in largest["reporting"]["refused"]
    assert largest["reporting_some"]["shown"] > 1000


def test_what_is_measured_of_large_sweeps_can_be_measured_of_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "SETTLE", 0)
    for work in scale.WORKS:
        folder = tmp_path / (work.__name__ if work in (scale.planning, scale.evidence) else "runs")
        folder.mkdir(exist_ok=True)
        if work is not scale.indexing:  # so few runs have no index
            assert "refused" not in work(15, folder), work.__name__


@pytest.mark.slow
def test_what_is_measured_of_every_kind_of_task_can_be_measured_of_small_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "RESULTS", tmp_path)
    monkeypatch.chdir(ROOT)  # where its processes find it
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    words = ["--device", "cpu", "--quick", "--runs", "2", "--rounds", "1", "--strides", "1", "--precision", "float32"]
    tasks.main(words)
    found = json.loads((tmp_path / "tasks-cpu.json").read_text())["measured"]
    assert found["failed"] == {}
    assert [(row["title"], row["task"]) for row in found["rows"]] == [
        (name, cell.task) for name, cell in tasks.QUICK.items()
    ]
    for row in found["rows"]:
        assert row["training"] > 0
        assert row["measured"] > 0
        assert row["expected"] > 10**6
        assert (row["bytes"], row["as_expected"]) == (0, None), "of a CPU's memory nothing is known"


@pytest.mark.parametrize(
    ("taken", "expected", "near"),
    [
        (10**10, 11 * 10**9, True),
        (10**10, 12 * 10**9, False),
        (10**10, 8 * 10**9, False),
        (50 * 2**20, 2**20, True),  # less than a few of PyTorch's blocks
        (200 * 2**20, 100 * 2**20, False),
    ],
)
def test_memory_is_as_expected_within_15_per_cent(taken: int, expected: int, near: bool) -> None:
    assert tasks.compare_memory(taken, expected)["as_expected"] is near


def test_another_measurement_gives_another_page(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = json.loads((pages.RESULTS / "training-cuda.json").read_text())
    moved = copy.deepcopy(stored)
    moved["measured"]["rows"][0]["measured"] += 1000
    before, works = pages.page(), pages.record
    monkeypatch.setattr(pages, "record", lambda name: moved if name == "training-cuda" else works(name))
    assert pages.page() != before
    assert pages.summary() != before


def test_every_measurement_says_where_it_comes_from() -> None:
    for path in pages.RESULTS.glob("*.json"):
        told = json.loads(path.read_text())["provenance"]
        assert told["commit"] not in ("", "unknown"), path
        assert told["torch"], path


def test_the_table_of_coverage_is_what_was_simulated() -> None:
    text = coverage_page.PAGE.read_text(encoding="utf-8")
    assert coverage_page.BLOCK.search(text)
    assert coverage_page.with_table(text) == text
    stored = [
        (row["interval"], row["data"], row["method"], row["kind"]) for row in pages.record("coverage")["measured"]
    ]
    assert stored == [(row.interval, row.data, row.method, row.kind) for row in coverage.rows()]


def test_printed_intervals_held_the_truth_when_last_simulated() -> None:
    for row in pages.record("coverage")["measured"]:
        held = [one["covered"] for one in row["clusters"].values()]
        assert [int(count) for count in row["clusters"]] == [8, 16, 32]
        assert row["data_sets"] >= 500
        if row["kind"] == "printed":
            assert 0.93 <= min(held) <= max(held) <= 0.97, row
        elif row["kind"] == "conservative":
            assert min(held) >= 0.93, row


@pytest.mark.parametrize(("method", "holds"), [("t", True), ("percentile bootstrap, as in the paper", False)])
def test_eight_clusters_tell_a_method_that_holds_from_the_papers(method: str, holds: bool) -> None:
    (row,) = (row for row in coverage.rows() if (row.interval, row.method) == ("mean lead", method))
    assert (coverage.covered(row, 8, 600)["covered"] >= 0.93) is holds
