"""A stored run at one step is the plain module that was trained."""

from pathlib import Path

import numpy as np
import pytest
import torch
from stored_runs import ADD, S3, STEPS
from torch import Tensor, nn

import grokscope
from grokscope.activations import run_stack
from grokscope.jobs import run_all
from grokscope.model import site_names
from grokscope.runs import Store, run_name
from grokscope.specs import Architecture, Cadence, RunSpec, Training
from grokscope.tasks import named_task, pinned_task_name, split


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


MODULES = {
    "transformer": ("mine.py:sequences", Architecture(layers=1, width=8, heads=2, mlp_width=8), {}),
    "one-hot mlp": ("mine.py:sequences", Architecture(kind="mlp", layers=1, mlp_width=8), {}),
    "linear map of tokens": ("mine.py:sequences", Architecture(kind="mlp", layers=0), {}),
    "embedded mlp": ("mine.py:sequences", Architecture(kind="mlp", layers=1, mlp_width=8, embedded=True, width=4), {}),
    "mlp of vectors": ("mine.py:vectors", Architecture(kind="mlp", layers=2, mlp_width=8), {"loss": "mse"}),
    "linear map of vectors": ("mine.py:vectors", Architecture(kind="mlp", layers=0), {"loss": "mse"}),
}
SOURCE = """
import numpy as np

PAIRS = np.array([[a, b] for a in range(5) for b in range(5)])

def sequences():
    return {"tokens": PAIRS, "answers": PAIRS.sum(axis=1) % 5}

def vectors():
    return {"vectors": PAIRS / 5, "answers": PAIRS[:, :1] / 3, "success": 0.5}
"""


@pytest.mark.parametrize("name", MODULES)
def test_a_module_needs_its_weights_alone(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its task is a function, which is not run to make it, and which may be gone."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(SOURCE)
    task, architecture, training = MODULES[name]
    spec = RunSpec(
        pinned_task_name(task),
        train_fraction=0.5,
        architecture=architecture,
        training=Training(steps=2, batch_size=4, **training),
        measurements=Cadence(every=2),
        checkpoints=Cadence(every=2),
    )
    run_all([spec], Store("runs"), compiled=False)
    rows, run = named_task(spec.task), grokscope.open("runs")[0]
    given = torch.tensor(rows.tokens) if rows.vectors is None else torch.tensor(rows.vectors, dtype=torch.float32)
    expected = run.subject([2]).logits()[0]
    Path("mine.py").unlink()
    with torch.no_grad():
        found = run.module(2)(given)
    torch.testing.assert_close(found, expected.to(found.dtype))
