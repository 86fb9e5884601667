import os
import shutil
from dataclasses import replace
from functools import lru_cache
from math import isnan
from pathlib import Path

import numpy as np
import pytest
import torch

import grokscope
from grokscope.errors import InputError
from grokscope.jobs import run_all
from grokscope.measures import MEASURES, fsd_null, measure, patching
from grokscope.measures.mode_choice import key_modes
from grokscope.measures.question import Question
from grokscope.measures.restricted import variant_loss
from grokscope.measures.surrogates import untrained_null
from grokscope.runs import (
    Reading,
    Run,
    Store,
    measure_checkpoints,
    measuring,
    run_name,
)
from grokscope.specs import Architecture, Cadence, ReadingSpec, RunSpec, Training
from grokscope.training.checkpoint import save_tensors

STEPS = (0, 2, 4, 6, 8)
ADD = RunSpec(
    task="add_mod7",
    train_fraction=0.6,
    architecture=Architecture(layers=2, width=16, heads=2, mlp_width=32),
    training=Training(steps=8, batch_size=16),
    checkpoints=Cadence(every=2),
    measurements=Cadence(every=2),
)
S3 = replace(ADD, task="S3")
WAITING = ADD.with_seed(10)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        run_all([ADD, S3], Store(folder), compiled=False)
    Store(folder).add(WAITING)  # planned, and not begun
    return folder


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsd_null, "NULL_DRAWS", 4)
    monkeypatch.setattr(patching, "PATCHED_PAIRS", 20)


def stored(path: Path, spec: RunSpec = ADD) -> Run:
    return grokscope.open(path)[run_name(spec)]


def rows_of(run: Run, names: list[str], reading: Reading | None = None) -> list[dict[str, float | str]]:
    return [row for part in measure_checkpoints(run, names, reading) for row in part]


def contents(path: Path) -> dict[str, tuple[int, bytes]]:
    return {str(file): (file.stat().st_mtime_ns, file.read_bytes()) for file in path.rglob("*") if file.is_file()}


def in_stacks_of(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(measuring.STEPS_AT_ONCE, "cpu", size)


def same(one: list[dict[str, float | str]], other: list[dict[str, float | str]]) -> bool:
    """Equal rows, NaN included, up to the rounding of sums in another order."""
    assert [list(row) for row in one] == [list(row) for row in other]
    return all(
        a[column] == b[column] if isinstance(a[column], str) else np.isclose(a[column], b[column], 1e-6, 1e-9, True)
        for a, b in zip(one, other, strict=True)
        for column in a
    )


def test_rows_name_the_run_and_the_step_and_agree_with_the_log(path: Path) -> None:
    run = stored(path)
    rows, log = rows_of(run, ["fsd", "rank", "memorization", "norms"]), run.log()
    assert [(row["run"], row["step"]) for row in rows] == [(run_name(ADD), step) for step in STEPS]
    assert log["step"].tolist() == list(STEPS)
    for column in ("fsd", "rank", "answer_share", "norm", "train_accuracy", "validation_accuracy", "train_loss"):
        assert [row[column] for row in rows] == pytest.approx(log[column].tolist(), rel=1e-5), column
    assert [row["fsd_mode"] for row in rows] == log["fsd_mode"].tolist()
    assert {row["undefined"] for row in rows} == {""}


LIGHT = ["fsd", "rank", "concentration", "embedding", "logits", "trig", "paper_restricted", "memorization", "norms"]


@pytest.mark.parametrize(
    ("spec", "names", "sizes"), [(ADD, list(MEASURES), (4,)), (S3, LIGHT, (1, 2, 3))], ids=["add_mod7", "S3"]
)
def test_how_many_checkpoints_are_stacked_changes_no_row(
    spec: RunSpec, names: list[str], sizes: tuple[int, ...], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_stacks_of(100, monkeypatch)
    together = rows_of(stored(path, spec), names)
    assert len(together) == len(STEPS)
    for size in sizes:
        in_stacks_of(size, monkeypatch)
        assert same(rows_of(stored(path, spec), names), together), size


def test_a_stack_holds_so_many_checkpoints_and_no_more(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_stacks_of(2, monkeypatch)
    seen, subject = [], Run.subject
    monkeypatch.setattr(Run, "subject", lambda self, steps, device: seen.append(steps) or subject(self, steps, device))
    parts = measure_checkpoints(stored(path), ["norms"])
    assert not seen, "nothing is loaded before it is asked for"
    assert [row["step"] for row in next(parts)] == [0, 2]
    assert seen == [(0, 2)]
    assert [[row["step"] for row in part] for part in parts] == [[4, 6], [8]]
    assert all(len(stack) <= 2 for stack in seen)


def test_steps_are_measured_as_they_are_asked_for(path: Path) -> None:
    run = stored(path)
    everything = {row["step"]: row for row in rows_of(run, ["fsd", "norms"])}
    for steps in ((4,), (8, 0), (6, 2, 6)):
        found = rows_of(run, ["fsd", "norms"], Reading(steps))
        assert [row["step"] for row in found] == list(steps)
        assert same(found, [everything[step] for step in steps])


def test_a_reference_is_a_stored_step(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stored(path)
    keys = key_modes(run.subject([8]))
    expected = variant_loss(run.subject(), "excluded", keys).loss
    for size in (2, 100):
        in_stacks_of(size, monkeypatch)
        rows = rows_of(run, ["excluded"], Reading(reference=8))
        assert [row["excluded"] for row in rows] == pytest.approx(expected.tolist(), rel=1e-9)


def test_the_reading_is_passed_on(path: Path) -> None:
    run = stored(path)
    how = Reading(by="sum", basis="additive", spec=ReadingSpec(fsd_site="attention"), seed=5)
    names = ["fsd", "fsd_null", "ablation"]
    question = Question(run.subject(), how.spec, "sum", "additive", None, run.spec, 5)
    found = [{key: row[key] for key in row if key not in ("run", "step")} for row in rows_of(run, names, how)]
    assert same(found, measure(question, names))
    assert not same(found, measure(Question(run.subject(), spec=run.spec), names))


def test_untrained_networks_are_drawn_once_for_a_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    drawn = lru_cache(lambda *a, **k: calls.append(k["seed"]) or untrained_null(*a, **k))
    assert fsd_null._untrained_null.__wrapped__ is untrained_null, "it is cached"
    monkeypatch.setattr(fsd_null, "_untrained_null", drawn)
    in_stacks_of(1, monkeypatch)
    rows = rows_of(stored(path), ["fsd_null"], Reading(seed=77))
    assert calls == [77]
    assert len({row["untrained_95"] for row in rows}) == 1
    rows_of(stored(path), ["fsd_null"], Reading(seed=78, spec=ReadingSpec(fsd_site="attention"), steps=(0,)))
    assert calls == [77, 78], "another question has another null"


def test_measuring_changes_no_file(path: Path) -> None:
    before = contents(path)
    for spec in (ADD, S3):
        rows_of(stored(path, spec), ["fsd", "trig", "paper_restricted", "removal"], Reading((4, 8), reference=4))
    assert contents(path) == before


# A checkpoint that is not a number.


@pytest.fixture
def broken(path: Path, tmp_path: Path) -> Run:
    """The run, with NaN in its last weights."""
    shutil.copytree(path / run_name(ADD), tmp_path / run_name(ADD))
    run = stored(tmp_path)
    tensors = {
        name: torch.full_like(tensor, torch.nan) if tensor.is_floating_point() else tensor
        for name, tensor in run.at(8).tensors.items()
    }
    save_tensors(tmp_path / run_name(ADD) / "weights-00000008.safetensors", tensors)
    run.folder.finish(run.folder.outcome)  # as if it had ended with them
    return run


@pytest.mark.parametrize("size", [1, 2, 4, 100])
def test_a_checkpoint_that_is_not_a_number_is_a_row_wherever_it_stands(
    size: int, broken: Run, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_stacks_of(size, monkeypatch)
    names = ["fsd", "rank", "memorization", "norms", "trig"]
    *whole, last = rows_of(broken, names)
    assert same(whole, rows_of(stored(path), names)[:-1])
    assert last["step"] == 8
    assert last["undefined"] == "weights in embed.W_E are not numbers"
    assert all(isnan(last[column]) for column in ("fsd", "fsd_mode", "rank", "train_loss", "norm", "trig"))


def test_a_checkpoint_that_is_not_a_number_is_rejected_alone(broken: Run) -> None:
    sentence = rf"{run_name(ADD)} at step 8 has activations at blocks.0.mlp.hook_post that are not numbers"
    with pytest.raises(InputError, match=sentence):
        rows_of(broken, ["fsd"], Reading((8,)))
    with pytest.raises(InputError, match=f"{run_name(ADD)} at step 8 has .* that are not numbers"):
        rows_of(broken, ["excluded"], Reading((0, 2), reference=8))


# Bad input is refused before anything is loaded.


@pytest.fixture
def _nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def loaded(*arguments: object) -> None:
        raise AssertionError("weights were loaded")

    monkeypatch.setattr(Run, "subject", loaded)


@pytest.mark.usefixtures("_nothing_is_loaded")
@pytest.mark.parametrize(
    ("spec", "names", "reading", "sentence"),
    [
        (ADD, ["fsd", "rnk"], Reading(), "there is no measure 'rnk'; did you mean 'rank'?"),
        (ADD, [], Reading(), "no measure was asked for"),
        (ADD, ["fsd"], Reading((0, 3)), f"{run_name(ADD)} has no weights at step 3; stored steps: 0, 2, 4, 6, 8"),
        (ADD, ["fsd"], Reading((-2,)), "has no weights at step -2; stored steps: 0, 2, 4, 6, 8"),
        (ADD, ["trig"], Reading(reference=5), "has no weights at step 5; stored steps: 0, 2, 4, 6, 8"),
        (WAITING, ["fsd"], Reading(), f"{run_name(WAITING)} has no stored weights"),
        (WAITING, ["fsd"], Reading((4,)), f"{run_name(WAITING)} has no stored weights"),
        (S3, ["norms"], Reading(by="sum"), "S3 has no sums a + b to condition on"),
        (ADD, ["norms"], Reading(basis="adtive"), "add_mod7 has no basis 'adtive'; did you mean 'additive'?"),
        (ADD, ["fsd"], Reading(seed=-1), "the seed must lie in [0, 2^63), got -1"),
        (ADD, ["fsd"], Reading(device="cuda"), "device cuda is not available; use cpu"),
        (ADD, ["fsd"], Reading(device="abacus"), "device abacus is not available; use cpu"),
    ],
)
def test_what_cannot_be_measured_is_rejected_at_once(
    spec: RunSpec,
    names: list[str],
    reading: Reading,
    sentence: str,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError) as refusal:
        measure_checkpoints(stored(path, spec), names, reading)
    assert sentence in str(refusal.value)


@pytest.mark.parametrize("name", ["fsd", "output_entropy", "patching", "trig"])
def test_what_the_task_lacks_is_rejected_at_once(name: str, tmp_path: Path) -> None:
    spec = replace(
        ADD,
        task="ridge_d3_n8_v4",
        architecture=Architecture(kind="mlp", layers=0),
        training=replace(ADD.training, loss="mse", batch_size=None),
    )
    Store(tmp_path).add(spec)
    with pytest.raises(InputError, match=f"^ridge_d3_n8_v4 has no .*|^ridge_d3_n8_v4 .*'{name}' needs$"):
        measure_checkpoints(stored(tmp_path, spec), [name])


# Updates are between stored checkpoints, whichever of them are measured.


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of fourteen checkpoints, not equally far apart."""
    folder = tmp_path_factory.mktemp("many")
    spec = replace(
        ADD, training=replace(ADD.training, steps=24), checkpoints=Cadence(every=2, at=(5,)), precision="float32"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        run_all([spec], Store(folder), compiled=False)
    return stored(folder, spec)


def test_updates_are_those_of_the_stored_checkpoints(many: Run) -> None:
    rows = rows_of(many, ["updates", "update_spectrum"])
    modules = [many.module(step) for step in many.steps]  # whose parameters are all that is trained, and no counters
    weights = [torch.cat([one.detach().double().flatten() for one in module.parameters()]) for module in modules]
    assert len(rows) == len(many.steps) == 14
    for place, row in enumerate(rows):
        if place:
            moved = weights[place] - weights[place - 1]
            lasted = many.steps[place] - many.steps[place - 1]
            assert row["update_speed"] == pytest.approx(float(moved.norm()) / lasted)
            assert row["update_decay_cosine"] == pytest.approx(
                float(torch.cosine_similarity(moved, -weights[place - 1], dim=0))
            )
        assert isnan(row["update_speed"]) == (place < 1)
        assert isnan(row["update_cosine"]) == (place < 2)
        assert isnan(row["update_top_share"]) == (place < 10)
    assert {row["undefined"] for row in rows[10:]} == {""}


@pytest.mark.parametrize("size", [1, 3, 4, 100])
def test_how_many_checkpoints_are_stacked_changes_no_bit_of_an_update(
    size: int, many: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = {row["step"]: row for row in rows_of(many, ["updates", "update_spectrum"])}
    in_stacks_of(size, monkeypatch)
    for steps in ((), (24,), (22, 4, 24), (24, 24)):
        for row in rows_of(many, ["updates", "update_spectrum"], Reading(steps)):
            assert str(row) == str(everything[row["step"]])


def test_each_checkpoint_is_read_once_for_its_updates(many: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, parameters = [], measuring._parameters
    monkeypatch.setattr(measuring, "_parameters", lambda run, step: seen.append(step) or parameters(run, step))
    rows_of(many, ["norms"])
    assert not seen, "nothing is read that no measure asks for"
    rows_of(many, ["updates", "update_spectrum"])
    assert seen == list(many.steps)


def test_while_runs_are_trained_there_is_no_stored_run_to_read_updates_of(path: Path) -> None:
    subject = stored(path).subject()
    assert measuring.measure_stack(subject, ["updates"]) == [{} for _ in STEPS]
    assert all("norm" in row for row in measuring.measure_stack(subject, ["updates", "norms"]))
