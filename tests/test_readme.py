from pathlib import Path

import numpy as np
import pytest
import torch

from grokscope.cli import COMMANDS, parse
from grokscope.jobs import run_all
from grokscope.runs import Store
from grokscope.specs import Architecture, Cadence, RunSpec, Training
from pages import blocks, command_lines

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
SMALL = RunSpec(
    task="add_mod97",
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=1000, batch_size=32),
    checkpoints=Cadence(every=1000),
    measurements=Cadence(every=1000),
).with_seed(0)


def test_every_python_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    run_all([SMALL], Store("runs/first"), compiled=False)
    names = {"activations": np.random.default_rng(0).standard_normal((7, 120))}
    found = blocks(README, "python")
    assert len(found) >= 4
    for code in found:
        exec(code, names)
    assert names["task"].inputs.shape == (9409, 2)
    assert names["model"](torch.tensor([[1, 2, 97]])).shape == (1, 97)


def test_every_command_can_be_given() -> None:
    commands = command_lines(README)
    for words in commands:
        parse(words)
    assert {words[0] for words in commands} >= set(COMMANDS) - {"cancel", "doctor", "export", "import"}
