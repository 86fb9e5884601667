"""Help, and what can be rejected by looking at words and folders, wait for nothing heavy.

Modules are counted, not seconds: each of these takes some tenths of a second to import, and torch several.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from grokscope.cli import COMMANDS
from grokscope.runs import Store
from tiny_runs import TINY

HEAVY = {"torch", "numpy", "scipy", "matplotlib", "duckdb", "jinja2"}
HELP = [["--help"], *([name, "--help"] for name in COMMANDS)]
REJECTED = [  # by words alone
    "trian",
    "train add_mod97 --lr 1 --out x",
    "train --steps many --out x",
    "train add_mod97",
    "measure --measures fsdd",
    "measure runs add_mod7_s0 --measures fsdd",
    "reproduce synchronisation",
    "import none.pt",
    *(f"{name} rns" for name in ("list", "show", "watch", "report", "serve", "status", "doctor", "resume")),
    *(f"{name} rns x" for name in ("query", "measure", "export", "plot")),
    *(f"{name} runs x" for name in ("show", "measure", "export", "plot")),
    "fork rns x --at 1",
    "fork runs x --at 1",
    "report runs --detail x",
]
LIGHT = {"numpy"}  # what a task's name takes
OF_TASKS = [
    "train ad_mod97 --out x",
    "train add_mod97 --measures fsdd --out x",
    "train add_mod97 --train-fraction 0.0001 --out x",
    "train add_mod97 --weight-decay -1 --out x",
    "tasks ad_mod97",
]
SCRIPT = """
import json, sys
from grokscope.cli import run
try:
    status = run(sys.argv[1:])
except SystemExit as stop:
    status = stop.code or 0
print(json.dumps([status, sorted({name.partition(".")[0] for name in sys.modules})]), file=sys.stderr)
"""


def imported(words: list[str], folder: Path) -> tuple[int, set[str]]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    status, names = json.loads(done.stderr.splitlines()[-1])
    return status, set(names)


@pytest.mark.parametrize("words", HELP, ids=" ".join)
def test_help_imports_nothing_heavy(words: list[str], tmp_path: Path) -> None:
    status, names = imported(words, tmp_path)
    assert status == 0
    assert not names & HEAVY


@pytest.mark.parametrize("line", [*REJECTED, *OF_TASKS])
def test_a_rejection_imports_nothing_heavy(line: str, tmp_path: Path) -> None:
    Store(tmp_path / "runs").add(TINY)
    status, names = imported(line.split(), tmp_path)
    assert status == 2
    assert not names & (HEAVY - (LIGHT if line in OF_TASKS else set()))
