"""A stored run at one step is the plain module that was trained."""

from pathlib import Path

import numpy as np
import pytest
import torch
from stored_runs import ADD, S3, STEPS
from torch import Tensor, nn

import grokscope
from grokscope.activations import run_stack
from grokscope.model import site_names
from grokscope.runs import run_name
from grokscope.specs import RunSpec
from grokscope.tasks import split


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
