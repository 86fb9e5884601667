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
    assert ledger.add(seal, "ours", "{}", {"error": (0.1, 0.0, 0.2)}) == 1
    assert ledger.add(seal, "ours", "{better}", {"error": (0.05, 0.0, 0.1)}) == 2
    assert ledger.add(seal, "other", "x", {}) == 1
    assert [(one["forecaster"], one["is_sealed"]) for one in ledger.entries()] == [
        ("ours", True),
        ("ours", False),
        ("other", False),
    ]


def test_the_ledger_says_whether_all_sealed_runs_were_scored_and_knows_parameters_by_any_name(tmp_path: Path) -> None:
    ledger, seal = Ledger(tmp_path / "LEDGER.jsonl"), seal_cells(RUNS, {"ours": "{}"})
    assert ledger.add(seal, "ours", "{}", {}, RUNS[::-1]) == 1
    assert ledger.add(seal, "the same renamed", "{}", {}, RUNS[:2]) == 2
    assert ledger.add(seal, "third", "{ }", {}, [*RUNS, RunSpec().with_seed(9)]) == 1
    assert [one["has_all_runs"] for one in ledger.entries()] == [True, False, False]
