"""The memory that a stack is expected to take, against a count of its tensors and against what an H200 has given."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from grokscope.jobs import bytes_of_stack, slots_in
from grokscope.specs import RunSpec
from grokscope.studies.tasks.experiments import CELLS
from grokscope.tasks import named_task

PROGRAM = Path(__file__).with_name("count_memory.py")
RECORD = Path(__file__).parents[2] / "benchmarks" / "results" / "tasks-cuda.json"


@pytest.mark.slow
def test_the_estimate_lies_within_15_per_cent_of_the_tensors_that_are_made() -> None:
    pytest.importorskip("triton")
    # Kernels are compiled, not interpreted: nothing is launched, and an interpreter would run them.
    quiet = {**os.environ, "OMP_NUM_THREADS": "1", "TRITON_INTERPRET": "0"}
    found = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, env=quiet, timeout=300)
    assert found.returncode == 0, found.stderr[-2000:]
    ratios = {name: float(ratio) for ratio, _, name in (line.partition(" ") for line in found.stdout.splitlines())}
    assert len(ratios) >= 14
    assert {name: ratio for name, ratio in ratios.items() if not 0.85 <= ratio <= 1.15} == {}


def test_the_estimate_lies_within_15_per_cent_of_what_an_accelerator_has_given() -> None:
    measured = json.loads(RECORD.read_text(encoding="utf-8"))["measured"]
    taken = {row["title"]: row["bytes"] for row in measured["rows"]}
    assert taken.keys() == CELLS.keys()
    runs, precision = measured["runs"], measured["precision"]
    expected = {
        name: bytes_of_stack([replace(CELLS[name].run(0, "tf32"), precision=precision)], runs) for name in taken
    }
    ratios = {name: round(expected[name] / taken[name], 3) for name in taken}
    assert {name: ratio for name, ratio in ratios.items() if not 0.85 <= ratio <= 1.15} == {}


def test_what_a_stack_takes_grows_with_its_runs_and_with_the_rows_of_its_longest_task() -> None:
    short, long = RunSpec("add_mod53"), RunSpec("add_mod131")
    sizes = [bytes_of_stack([short], runs) for runs in (1, 2, 128, 129, 512)]
    assert sizes == sorted(set(sizes))
    assert sizes[3] - sizes[2] < sizes[1] - sizes[0], "an evaluation passes 128 runs at once"
    mixed = bytes_of_stack([short, long]) - bytes_of_stack([short], 2)
    assert mixed > 2 * 8 * 3 * (named_task("add_mod131").rows - named_task("add_mod53").rows)


@pytest.mark.parametrize("memory", [10**8, 10**9, 10**10])
def test_as_many_runs_share_a_stack_as_the_memory_holds(memory: int) -> None:
    fitting = slots_in([RunSpec()], memory)
    assert fitting == 1 or bytes_of_stack([RunSpec()], fitting) <= 0.7 * memory
    assert fitting == 512 or bytes_of_stack([RunSpec()], fitting + 1) > 0.7 * memory
