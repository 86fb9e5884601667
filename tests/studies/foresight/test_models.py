"""Weights of named cells: real runs of a few steps, written and read by another program's reader."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch

from grokscope.errors import InputError
from grokscope.jobs import run_all
from grokscope.runs import Store, open_runs
from grokscope.specs import Cadence
from grokscope.studies.foresight import models
from grokscope.studies.foresight.cells import CELLS
from grokscope.studies.foresight.models import model_runs, write_models


def test_the_stacked_weights_are_those_of_the_runs_at_their_steps(tmp_path: Path) -> None:
    runs = {
        name: replace(
            spec,
            task="add_mod7",
            precision="float32",
            training=replace(spec.training, steps=4, batch_size=None),
            checkpoints=Cadence(every=None, at=(2,) if spec.checkpoints.at else ()),
        )
        for name, spec in [*model_runs("tf32").items()][2:5:2]
    }
    run_all([*runs.values()], Store(tmp_path / "runs"), compiled=False)
    weights, about = write_models(runs, Store(tmp_path / "runs"), tmp_path / "out")
    found, facts = safetensors.torch.load_file(weights), json.loads(about.read_text())
    assert [facts[name]["steps"] for name in runs] == [[2, 4], [4]]
    for run in open_runs(tmp_path / "runs"):
        [name] = [name for name, spec in runs.items() if spec.content_hash == run.spec.content_hash]
        for place, step in enumerate(facts[name]["steps"]):
            for key, value in run.module(step).state_dict().items():
                assert torch.equal(found[f"{name}/{key}"][place], value)


def test_no_test_cell_is_trained_for_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = next(name for name, cell in CELLS.items() if cell.split == "test")
    monkeypatch.setattr(models, "NAMED", (sealed,))
    with pytest.raises(InputError, match="development cells alone"):
        model_runs("tf32")
