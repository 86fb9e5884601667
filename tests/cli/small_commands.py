"""Command lines on a run of eight steps, trained in this process in the place of workers."""

import json
import shlex
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from grokscope.cli import run
from grokscope.jobs import Progress, Stopped, run_all
from grokscope.runs import Measuring, open_store
from grokscope.specs import Architecture, Cadence, Plan, RunSpec, Training

__all__ = ["EXECUTORS", "TINY", "contents", "rejected", "trained_here", "words"]

EXECUTORS = "grokscope.jobs.executors"
TINY = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=8, batch_size=16, weight_decay=0.5),
    checkpoints=Cadence(every=4),
    measurements=Cadence(every=2),
)


def trained_here(
    plan: Plan,
    report: Callable[[dict[str, Any]], None],
    stop_after: int = 10**9,
    compiled: bool | None = False,
    retries: int = 3,
) -> bool:
    """What workers do, in this process."""
    lines: list[Progress] = []

    def say(progress: Progress) -> None:
        lines.append(progress)
        report(asdict(progress))

    try:
        with open_store(plan.out) as store:
            run_all(
                plan.runs,
                store,
                device=plan.device,
                keep=plan.keep,
                report=say,
                compiled=compiled,
                should_stop=lambda: len(lines) >= stop_after,
                stop_after_grokking=plan.stop_after_grokking,
                measuring=Measuring.from_plan(plan),
                made_for=plan.memberships,
            )
        return True
    except Stopped:
        return False


def contents(path: Path) -> dict[str, object]:
    """The files of a folder of runs, without what may differ between two equal trainings."""
    found: dict[str, object] = {}
    for file in sorted(file for file in path.rglob("*") if file.is_file() and file.parent.name != "plans"):
        found[str(file.relative_to(path))] = file.read_bytes()
        if file.name == "outcome.json":  # but for the commit, which may change while tests run
            found[str(file.relative_to(path))] = {**json.loads(file.read_bytes()), "provenance": None, "sha256": None}
    return found


def words(line: str) -> list[str]:
    return shlex.split(line)


def rejected(arguments: list[str], sentence: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, status 2, nothing written."""
    before = {path: path.read_bytes() if path.is_file() else None for path in here.rglob("*")}
    capsys.readouterr()
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("grokscope: ")
    assert shown.err.count("\n") == 1
    assert sentence in shown.err
    assert {path: path.read_bytes() if path.is_file() else None for path in here.rglob("*")} == before
