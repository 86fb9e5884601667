"""The fused kernels of the benchmark against autograd; on a CPU by Triton's interpreter, where Triton is installed."""

import os
from dataclasses import replace

import pytest
import torch

from grokscope.model import forward, pair_losses
from grokscope.specs import Architecture, RunSpec, Training
from grokscope.training import Cohort, initial_state

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ.setdefault("TRITON_INTERPRET", "1")
pytest.importorskip("triton", reason="Triton comes with torch's CUDA builds; on a CPU: pip install triton")

SMALL = Architecture(width=32, heads=2, mlp_width=64)
BATCH, COUNTED = 50, 47


def gradients(specs: list[RunSpec]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Loss and gradient by the kernels, and by autograd in float64."""
    from benchmarks.fused.step import MODES, FusedGradients

    cohort = Cohort(specs, DEVICE)
    state = initial_state(cohort)
    state.weights += 0.02 * torch.cos(torch.arange(state.weights.shape[1], device=DEVICE))
    rows = cohort.tables.train_rows[:, :BATCH]
    tokens = cohort.tables.tokens.gather(2, rows[:, None].expand(-1, 3, -1))
    labels = cohort.tables.labels.gather(1, rows)
    exact = state.weights.double().requires_grad_()
    logits = forward(cohort.layout.views(exact), cohort.architecture, tokens, classes=cohort.classes)
    reference = pair_losses(logits, labels)[:, :COUNTED].sum(dim=1) / COUNTED
    reference.sum().backward()
    assert exact.grad is not None
    fused = FusedGradients(state.weights, cohort.layout.shapes, cohort.architecture, BATCH, MODES["float32"])
    counts = torch.full((1, len(specs)), COUNTED, device=DEVICE)
    counter = torch.zeros(1, dtype=torch.int64, device=DEVICE)
    fused.compute(tokens.int().contiguous(), labels.int().contiguous(), counts, cohort.classes, counter)
    return fused.loss.sum(dim=1) / COUNTED, fused.gradients, reference.detach(), exact.grad


@pytest.mark.parametrize(
    "architecture",
    [replace(SMALL, layers=1, activation="relu"), SMALL, replace(SMALL, layers=3, causal=True)],
    ids=["one layer, ReLU", "two layers", "three causal layers"],
)
def test_loss_and_gradients_are_those_of_autograd(architecture: Architecture) -> None:
    spec = RunSpec(task="add_mod23", architecture=architecture, training=Training(batch_size=BATCH))
    loss, gradient, reference, exact = gradients([spec.with_seed(0), replace(spec, task="S4").with_seed(1)])
    assert torch.allclose(loss.double(), reference, rtol=1e-5)
    assert (gradient.double() - exact).norm(dim=1).max() < 2e-6 * exact.norm(dim=1).max()


def test_a_runs_gradient_has_the_same_bits_in_every_stack_and_slot() -> None:
    spec = RunSpec(task="add_mod23", architecture=SMALL, training=Training(batch_size=BATCH))
    alone = gradients([spec.with_seed(0)])[1][0]
    beside = gradients([spec.with_seed(seed) for seed in (3, 1, 0)])[1][2]
    assert torch.equal(alone, beside)
