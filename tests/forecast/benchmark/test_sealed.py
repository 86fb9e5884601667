import json
from dataclasses import replace
from pathlib import Path

import pytest

from grokscope.errors import InputError
from grokscope.forecast.benchmark import Ledger, Seal, seal_cells
from grokscope.specs import RunSpec

RUNS = [RunSpec().with_seed(seed) for seed in range(3)]


def test_a_seal_changes_with_any_run_and_any_parameter(tmp_path: Path) -> None:
    seal = seal_cells(RUNS, {"ours": "{}"})
    others = [
        seal_cells(RUNS[:2], {"ours": "{}"}),
        seal_cells([replace(run, train_fraction=0.4) for run in RUNS], {"ours": "{}"}),
        seal_cells(RUNS, {"ours": "{ }"}),
    ]
    assert len({one.digest for one in (seal, *others)}) == 4
    seal.save(tmp_path / "seal.json")
    assert Seal.load(tmp_path / "seal.json") == seal


def test_an_altered_seal_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "seal.json"
    seal_cells(RUNS, {"ours": "{}"}).save(path)
    parts = json.loads(path.read_text())
    path.write_text(json.dumps(parts | {"cells": []}))
    with pytest.raises(InputError, match="was altered"):
        Seal.load(path)
    path.write_text("{}")
    with pytest.raises(InputError, match="is no seal: 'cells' is missing"):
        Seal.load(path)


def test_the_ledger_keeps_every_scoring_and_says_what_was_not_sealed(tmp_path: Path) -> None:
    ledger, seal = Ledger(tmp_path / "LEDGER.jsonl"), seal_cells(RUNS, {"ours": "{}"})
    assert ledger.add(seal, "fitted/ours.json", "{}", {"error": (0.1, 0.0, 0.2)}, has_all_runs=True) == 1
    assert ledger.add(seal, "ours", "{better}", {"error": (0.05, 0.0, 0.1)}, has_all_runs=False) == 1
    assert ledger.add(seal, "the same renamed", "{}", {}, has_all_runs=True) == 2
    assert [(one["forecaster"], one["is_sealed"], one["has_all_runs"]) for one in ledger.entries()] == [
        ("fitted/ours.json", True, True),
        ("ours", False, False),
        ("the same renamed", True, True),
    ]


def test_all_runs_are_those_that_were_sealed_and_those_that_the_search_came_to() -> None:
    edges = [replace(RunSpec("S5", train_fraction=0.2), precision="tf32").with_seed(seed) for seed in range(2)]
    seal = seal_cells(RUNS, {}, [(edges[0], (0.1, 0.3))])
    assert seal.has_all([*RUNS[::-1], *edges], edges)
    assert not seal.has_all(RUNS[:2])
    assert not seal.has_all([*RUNS, RunSpec().with_seed(9)])
    assert not seal.has_all([*RUNS, edges[0]], edges)
    assert not seal.has_all([*RUNS, *edges], edges[:1])


def test_a_seal_with_brackets_is_stored_and_read(tmp_path: Path) -> None:
    path = tmp_path / "seal.json"
    seal = seal_cells(RUNS, {}, [(RunSpec("S5"), (0.1, 0.3))])
    seal.save(path)
    assert Seal.load(path) == seal
    assert seal.digest != seal_cells(RUNS, {}, [(RunSpec("S5"), (0.1, 0.4))]).digest
    path.write_text(path.read_text().replace("0.3", '"x"'))
    with pytest.raises(InputError, match="is not a pair of train fractions"):
        Seal.load(path)


def test_a_seal_is_never_overwritten_and_says_what_another_would_change(tmp_path: Path) -> None:
    path, seal = tmp_path / "seal.json", seal_cells(RUNS, {"ours": "{}", "theirs": "[]"})
    seal.save(path)
    text = path.read_bytes()
    seal.save(path)
    others = {
        "in another one this would differ: the forecaster ours$": seal_cells(RUNS, {"ours": "{ }", "theirs": "[]"}),
        "differ: the test runs, the forecaster theirs$": seal_cells(RUNS[:2], {"ours": "{}"}),
        "differ: the test cells, the brackets that are searched": seal_cells(
            [RunSpec("A5")], {"ours": "{}", "theirs": "[]"}, [(RunSpec("S5"), (0.1, 0.3))]
        ),
    }
    for words, other in others.items():
        with pytest.raises(InputError, match=words):
            other.save(path)
    assert path.read_bytes() == text
