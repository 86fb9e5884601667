"""What the quick start shows of the demo is what `grokscope list` prints of runs with the demo's events."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from grokscope.cli import run
from grokscope.runs import RunFolder, RunOutcome, Store
from grokscope.specs import Fork, RunSpec

DEMO = (Path(__file__).parents[1] / "results" / "demo.txt").read_text(encoding="utf-8")
TABLE, SENTENCES = DEMO.partition("\n\n")[0], " ".join(DEMO.split())
COLUMNS, *ROWS = (re.split(r"  +", line) for line in TABLE.splitlines())
LAST, EVERY = 3000, 25


def test_the_table_is_what_list_prints_of_such_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path)
    for row in ROWS:
        _store(store, dict(zip(COLUMNS, row, strict=True)))
    assert run(["list", str(tmp_path)]) == 0
    printed = capsys.readouterr().out.partition("\n\n")[0]
    assert _without_hashes(printed) == _without_hashes(TABLE)


def test_the_sentences_agree_with_the_column_stable() -> None:
    for row in ROWS:
        cells = dict(zip(COLUMNS, row, strict=True))
        name, _, _ = cells["run"].rpartition("-")
        if found := re.search(rf"{name} \(λ = {cells['λ']}\) memorised.*?It was (not )?stable", SENTENCES):
            assert (cells["stable"] == "no") == (found[1] is not None)


def _store(store: Store, cells: dict[str, str]) -> None:
    """A run with these events; one that was not stable falls to 0.9 once and recovers, as the fork with λ = 2 did."""
    seed, decay = int(cells["run"].partition("_s")[2].partition("-")[0]), float(cells["λ"])
    memorised, grokked = int(cells["memorised"]), int(cells["grokked"])
    parent = RunSpec("add_mod31").with_values({"steps": LAST}).with_seed(seed)
    spec = replace(parent, training=replace(parent.training, weight_decay=decay))
    fork = 0 if cells["forked at"] == "–" else int(cells["forked at"])
    folder = store.add(replace(spec, fork=Fork(parent.content_hash, fork)) if fork else spec)
    validation = {step: float(step >= grokked) for step in range(fork, LAST + 1, EVERY)}
    if cells["stable"] == "no":
        validation[grokked + EVERY] = 0.9
    if cells["outcome"].endswith("unstable"):
        validation[LAST] = 0.4
    evaluations = {
        "step": list(validation),
        "train_accuracy": [float(step >= memorised) for step in validation],
        "validation_accuracy": list(validation.values()),
    }
    _log(folder, evaluations)
    folder.finish(RunOutcome.from_evaluations(evaluations))


def _log(folder: RunFolder, evaluations: dict[str, list[float]]) -> None:
    for values in zip(*evaluations.values(), strict=True):
        folder.append(dict(zip(evaluations, values, strict=True)))


def _without_hashes(table: str) -> list[str]:
    return [re.sub(r"-[0-9a-f]{16}", "", line) for line in table.splitlines()]
