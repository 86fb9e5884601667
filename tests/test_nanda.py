"""What is shown of Nanda et al.'s model follows from the record that `examples/nanda.py` wrote."""

import copy
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from grokscope.view.charts.files import figure_csv, pictures_of
from scripts import module_at

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "results" / "nanda"
Record = dict[str, Any]


@pytest.fixture(scope="module")
def made() -> ModuleType:
    return module_at(ROOT / "docs" / "make_nanda.py")


@pytest.fixture(scope="module")
def record() -> Record:
    return json.loads((FOLDER / "nanda.json").read_text())


def cells(table: str, what: str) -> list[str]:
    return next([cell.strip() for cell in line.split("|")[2:4]] for line in table.splitlines() if what in line)


def test_figure_table_and_page_are_made_of_the_record_byte_for_byte(made: ModuleType, record: Record) -> None:
    assert figure_csv(made.figure_of(record)) == (FOLDER / "nanda.csv").read_bytes()
    assert all((FOLDER / f"nanda.{ending}").stat().st_size for ending in ("svg", "png", "pdf"))
    assert made.table_of(record).encode() == (FOLDER / "tab-nanda.md").read_bytes()
    page = (ROOT / "docs" / "studies" / "nanda.md").read_text(encoding="utf-8")
    assert made.table_of(record) in page
    assert made.with_block(page, made.block_of(record)) == page


def test_another_record_is_described_otherwise(made: ModuleType, record: Record) -> None:
    other = copy.deepcopy(record)
    other["log"]["fsd"][-1], other["grokked"] = 0.9, 6000
    page = (ROOT / "docs" / "studies" / "nanda.md").read_text(encoding="utf-8")
    page = made.with_block(page, made.block_of(other))
    assert "FSD** reaches 0.80" in page.replace("\n", " ")
    assert "grokked at step 6,000" in page.replace("\n", " ")


def test_the_record_is_a_grokked_run_on_a_gpu_and_knows_what_it_was_made_with(record: Record) -> None:
    assert record["provenance"]["device"].startswith("NVIDIA")
    assert record["outcome"] == "grokked"
    log = record["log"]
    assert {len(column) for column in log.values()} == {len(log["step"])}
    before = [a for step, a in zip(log["step"], log["validation_accuracy"], strict=True) if step < record["grokked"]]
    assert max(before) < 0.95 <= log["validation_accuracy"][log["step"].index(record["grokked"])]


def test_the_table_says_what_the_example_found(made: ModuleType, record: Record) -> None:
    table = made.table_of(record)
    found = {row["what"]: row for row in record["comparison"]}
    pairs = {
        "their number": "number of key",
        "85 %": "share of neurons",
        "memorisation ends": "memorisation ends",
        "near 1": "test accuracy",
        "loss on all pairs": "loss (",
        "the same with": "loss of cos",
    }
    for ours, theirs in pairs.items():
        row = next(row for what, row in found.items() if what.startswith(theirs))
        for cell, value in zip(cells(table, ours), (row["printed"], row["found"]), strict=True):
            assert number(cell) == pytest.approx(value, rel=5e-3), ours


def number(cell: str) -> float:
    """The first number of a cell: around 10,000; 5.30·10⁻⁸; 5; …"""
    plain = cell.removeprefix("around ").replace(",", "").partition(";")[0]
    digits, _, power = plain.partition("·10")
    return float(digits) * 10.0 ** int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0)


def test_what_the_example_calls_reported_is_what_the_record_calls_so(record: Record) -> None:
    example = module_at(ROOT / "examples" / "nanda.py")
    assert {row["what"]: row["printed"] for row in record["comparison"]} == example.PRINTED
    assert record["printed_key_frequencies"] == example.PRINTED_KEYS


def test_fsd_is_a_whole_number_of_neurons_at_every_evaluation(made: ModuleType, record: Record) -> None:
    """FSD = (n/512 − c) / (1 − c) with c = 1/56: what the page says of neurons can be read from it."""
    modes = record["settings"]["p"] // 2
    for fsd, constant in zip(record["log"]["fsd"], record["log"]["constant_share"], strict=True):
        voting = made.NEURONS * (1 - constant)
        neurons = (fsd * (1 - 1 / modes) + 1 / modes) * voting
        assert neurons == pytest.approx(round(neurons), abs=1e-6)
    assert f"{round(neurons)} of {made.NEURONS} neurons" in made.block_of(record).replace("\n", " ")


def test_phases_are_named_where_the_paper_ends_them_and_losses_have_powers_of_ten(
    made: ModuleType, record: Record
) -> None:
    picture = pictures_of(made.figure_of(record), ["svg"])["svg"].decode()
    for word in ("memorisation", "circuit formation", "clean-up", "10⁻³", "grokked"):
        assert f">{word}<" in picture, word
