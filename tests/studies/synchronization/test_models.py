"""Which weights are kept for everybody: grokked ones, of the paper's own model."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file

from grokscope.jobs import run_all
from grokscope.runs import Run, Store
from grokscope.runs.records import RunRecord
from grokscope.specs import Cadence, RunSpec, Training
from grokscope.studies.synchronization.experiments import EXPERIMENTS
from grokscope.studies.synchronization.models import _is_plain, save_models

STEPS = 4
PLAIN = RunSpec(
    training=Training(steps=STEPS, batch_size=512), checkpoints=Cadence(2, at=(2, STEPS)), measurements=Cadence(1)
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    found = Store(tmp_path_factory.mktemp("models"))
    run_all([PLAIN.with_seed(42), PLAIN.with_seed(1)], found, keep="all", compiled=False)
    return found


def record(store: Store, seed: int, validation: list[float]) -> RunRecord:
    """The run's record, as if its accuracies had been these."""
    found = store.add(PLAIN.with_seed(seed)).record()
    return replace(found, evaluations={**found.evaluations, "validation_accuracy": validation})


def saved(folder: Path) -> tuple[int, int]:
    about = json.loads((folder / "add_mod97.json").read_text())
    return about["spec"]["seeds"]["split"], about["step"]


@pytest.mark.parametrize(
    ("shown", "other", "kept"),
    [
        ([0.0, 0.0, 1.0, 1.0, 1.0], [1.0] * 5, (42, 4)),
        ([0.0, 0.0, 1.0, 1.0, 0.3], [1.0] * 5, (42, 2)),
        ([0.0, 1.0, 0.2, 1.0, 0.3], [0.0, 0.0, 0.0, 0.0, 1.0], (1, 4)),
    ],
    ids=["the last", "before it collapsed", "of another seed"],
)
def test_the_newest_grokked_weights_are_kept(
    store: Store, tmp_path: Path, shown: list[float], other: list[float], kept: tuple[int, int]
) -> None:
    save_models(tmp_path, [record(store, 1, other), record(store, 42, shown)], store)
    assert saved(tmp_path) == kept
    seed, step = kept
    stored = load_file(tmp_path / "add_mod97.safetensors")
    expected = Run(store.add(PLAIN.with_seed(seed))).module(step).state_dict()
    assert all(stored[name].equal(value) for name, value in expected.items())


def test_nothing_is_written_where_nothing_has_grokked(store: Store, tmp_path: Path) -> None:
    save_models(tmp_path / "none", [record(store, 42, [0.0] * 5)], store)
    assert not (tmp_path / "none").exists()


def test_no_ablated_model_or_other_training_stands_for_the_papers() -> None:
    found = {name: make(None, "tf32") for name, make in EXPERIMENTS.items()}
    assert all(_is_plain(spec) for spec in found["base"].values())
    is_base = {spec.content_hash for study in ("base", "symmetric") for spec in found[study].values()}
    others = [
        spec
        for study in ("architecture", "sensitivity", "negatives")
        for spec in found[study].values()
        if spec.content_hash not in is_base
    ]
    assert others
    plain = [spec for spec in others if _is_plain(spec)]
    assert {spec.train_fraction for spec in plain} == {0.15}, "little data is the paper's model still"
