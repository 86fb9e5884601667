import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import grokscope
from grokscope.activations import run_stack
from grokscope.errors import InputError
from grokscope.jobs import run_all
from grokscope.model import site_names
from grokscope.runs import run_name
from grokscope.specs import Architecture, Cadence, Fork, RunSpec, Training
from grokscope.tasks import split

STEPS = 8
ADD = RunSpec(
    task="add_mod11",
    train_fraction=0.6,
    architecture=Architecture(layers=2, width=16, heads=2, mlp_width=32),
    training=Training(steps=STEPS, batch_size=16),
    checkpoints=Cadence(every=4),
    measurements=Cadence(every=4),
).with_seed(3)
S3 = replace(ADD, task="S3", architecture=replace(ADD.architecture, causal=True, activation="relu"))
FORK = replace(ADD, fork=Fork(ADD.content_hash, 4), training=replace(ADD.training, weight_decay=2.0))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        run_all([ADD, S3, FORK], grokscope.runs.Store(folder), compiled=False)
    grokscope.runs.Store(folder).add(ADD.with_seed(10))  # planned, and not begun
    return folder


def hooked(module: nn.Module, tokens: Tensor, names: set[str]) -> dict[str, Tensor]:
    """What the plain module computes at its own hooks, by PyTorch's own means."""
    found: dict[str, Tensor] = {}

    def keep(name: str):
        return lambda module, inputs, output: found.__setitem__(name, output.detach())

    handles = [part.register_forward_hook(keep(name)) for name, part in module.named_modules() if name in names]
    found["logits"] = module(tokens).detach()
    for handle in handles:
        handle.remove()
    return found


def at_the_last_position(name: str, value: Tensor) -> Tensor:
    if name == "logits":
        return value
    by_head = name.rpartition("_")[2] in ("q", "k", "v", "pattern", "z")  # [inputs, heads, positions, …]
    return value[:, :, -1] if by_head else value[:, -1]


@pytest.mark.parametrize("spec", [ADD, S3], ids=["add_mod11", "S3 causal relu"])
@pytest.mark.parametrize("at_once", [4096, 7])
def test_activations_are_those_of_the_plain_module(
    spec: RunSpec, at_once: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_stack, "PAIRS_AT_ONCE", {"cpu": at_once})
    monkeypatch.setattr(run_stack, "LEAST_PAIRS", 1)
    run = grokscope.open(path)[run_name(spec)]
    checkpoint = run.at(STEPS)
    names = set(site_names(spec.architecture))
    module = run.module(STEPS)
    assert not module.training
    expected = hooked(module, torch.tensor(checkpoint.task.tokens), names)
    norms = {f"{name}.hook_normalized": name for name, part in module.named_modules() if isinstance(part, nn.LayerNorm)}
    inner = hooked(module, torch.tensor(checkpoint.task.tokens), set(norms.values()))
    expected |= {site: inner[name][:, None] if name == "ln_final" else inner[name] for site, name in norms.items()}
    assert names - expected.keys() == {"hook_pos_embed"}
    for name, value in expected.items():
        seen = checkpoint.activations(name)
        assert len(seen) == len(checkpoint.task.inputs), name
        torch.testing.assert_close(seen, at_the_last_position(name, value), rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.parametrize("spec", [ADD, S3], ids=["add_mod11", "S3 causal relu"])
@pytest.mark.parametrize("step", [0, 4, STEPS])
def test_the_module_answers_as_the_log_says(spec: RunSpec, step: int, path: Path) -> None:
    run = grokscope.open(path)[run_name(spec)]
    task = grokscope.named_task(spec.task)
    logits = run.module(step)(torch.tensor(task.tokens)).detach().double()
    right = (logits.argmax(dim=1) == torch.tensor(task.answers)).double().numpy()
    losses = nn.functional.cross_entropy(logits, torch.tensor(task.answers), reduction="none").numpy()
    log = run.log()
    (row,) = np.flatnonzero(log["step"] == step)
    for part in ("train", "validation"):
        rows = getattr(split(task, spec.train_fraction, spec.seeds.split), part)
        assert log[f"{part}_accuracy"][row] == pytest.approx(right[rows].mean(), abs=1e-12)
        assert log[f"{part}_loss"][row] == pytest.approx(losses[rows].mean(), rel=1e-5)
    squares = sum(float(p.detach().double().square().sum()) for p in run.module(step).parameters())
    assert log["norm"][row] == pytest.approx(squares**0.5, rel=1e-6)


def test_the_table_has_a_row_for_every_run(path: Path) -> None:
    opened = grokscope.open(path)
    rows = {row["run"]: row for row in opened.table()}
    assert len(opened) == len(rows) == 4
    assert [run.name for run in opened] == sorted(rows)
    add, fork, waiting = (rows[run_name(spec)] for spec in (ADD, FORK, ADD.with_seed(10)))
    assert (add["task"], add["seed"], add["weight_decay"], add["fork_step"]) == ("add_mod11", 3, 1.0, None)
    assert (fork["weight_decay"], fork["fork_step"]) == (2.0, 4)
    assert (waiting["outcome"], waiting["memorized"], waiting["grokked"]) == ("unfinished", None, None)
    assert add["outcome"] == opened[ADD.content_hash].folder.outcome.outcome


def test_a_run_tells_what_it_is_and_where_its_weights_are(path: Path) -> None:
    run = grokscope.open(path)[run_name(ADD)]
    assert run.spec == ADD
    assert run.steps == (0, 4, STEPS)
    log = run.log()
    assert log["step"].tolist() == [0, 4, STEPS]
    assert log["train_accuracy"].dtype == float
    waiting = grokscope.open(path)["add_mod11_s10"]
    assert (waiting.log(), waiting.steps) == ({}, ())


@pytest.mark.parametrize(
    ("look", "sentence"),
    [
        (lambda path: grokscope.open(path)[run_name(ADD)].at(5), r"has no weights at step 5; stored steps: '0, 4, 8'"),
        (lambda path: grokscope.open(path)["add_mod11_s4"], r"no run 'add_mod11_s4' in .*did you mean 'add_mod11_s"),
        (lambda path: grokscope.open(path)["add_mod11_"], r"'add_mod11_' names 3 runs"),
        (
            lambda path: grokscope.open(path.with_name(f"{path.name}x")),
            r"there is no folder .*; did you mean 'runs[0-9]+'",
        ),
        (lambda path: grokscope.open("no/such/folder"), r"there is no folder 'no/such/folder'$"),
        (lambda path: grokscope.open("a\0b"), r"there is no folder"),
        (
            lambda path: grokscope.open(path)[run_name(ADD)].at(0).activations("blocks.0.mlp.hook_pst"),
            r"no site 'blocks.0.mlp.hook_pst'; did you mean 'blocks.0.mlp.hook_post'",
        ),
    ],
    ids=["step", "run", "ambiguous", "folder", "no folder near", "NUL", "site"],
)
def test_what_is_not_there_is_said_in_one_sentence(look, sentence: str, path: Path) -> None:
    with pytest.raises(InputError, match=sentence):
        look(path)


def test_opening_only_reads(path: Path) -> None:
    def times() -> Iterator[tuple[str, int]]:
        return ((str(p), p.stat().st_mtime_ns) for p in sorted(path.rglob("*")))

    before = list(times())
    for run in grokscope.open(path):
        run.summary()
        run.log()
        for step in run.steps:
            run.module(step)
    assert list(times()) == before
