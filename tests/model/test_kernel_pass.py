"""The pass by kernels against autograd through `forward`; on a CPU by Triton's interpreter."""

from dataclasses import replace

import pytest
import torch
from plain_runs import ARCHITECTURES, TWO_LAYERS, fresh, mixed_runs
from row_runs import ROW_RUNS, row_runs
from torch import Tensor

from grokscope.model import forward, last_hidden, row_losses
from grokscope.specs import RunSpec
from grokscope.training import Cohort
from grokscope.training.cohort import OLDEST_TRITON
from interpreted import kinds

pytest.importorskip("triton", OLDEST_TRITON, "Triton comes with torch's CUDA builds; on a CPU: pip install triton")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
INPUTS, COUNTED = 21, (21, 13, 2)
# Every architecture meets the kernels on a device; the interpreter is slow, and these use every kernel in every way.
ALL = ARCHITECTURES | {"norms_only": replace(TWO_LAYERS, attention="norm", mlp="norm")}
SOME = (
    tuple(ALL) if DEVICE == "cuda" else (
        "two_layers", "mlp_only_pooled", "norm_for_attention", "nanda", "norms_only", "no_final_norm_tempered",
        "only_final_norm",
    )
)  # fmt: skip
FAST = ("two_layers", "nanda", "norms_only", "no_final_norm_tempered")
architectures = pytest.mark.parametrize("name", kinds(SOME, FAST))
# As many rows as make several tiles of kernels, and fewer than the smallest task has.
SLOWEST = {
    "five tokens, two layers",
    "five tokens, causal, no norms",
    "five tokens, pooled",
    "five tokens, three heads",
    "five tokens, attention alone",
}
tasks = pytest.mark.parametrize("name", kinds(ROW_RUNS, ROW_RUNS.keys() - SLOWEST))


class Batch:
    """A batch of three runs of different tasks with weights that are all at work, and its gradient both ways."""

    def __init__(self, specs: list[RunSpec]) -> None:
        state, cohort = fresh(specs)
        cohort = Cohort(cohort.specs, DEVICE)
        noise = torch.randn(state.weights.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        self.cohort, self.flat = cohort, (state.weights + 0.2 * noise).to(DEVICE)
        place = (torch.arange(INPUTS, device=DEVICE) * 2 % 36).expand(3, -1)
        self.given, self.labels = cohort.tables.select(place)
        self.counts = torch.tensor(COUNTED, device=DEVICE)
        has_separator = cohort.key.sizes.has_separator
        self.separators = self.given[:, -1, 0].int().contiguous() if has_separator else None

    def by_autograd(self) -> tuple[Tensor, Tensor]:
        flat = self.flat.clone().requires_grad_()
        logits = forward(
            self.cohort.layout.views(flat), self.cohort.architecture, self.given, classes=self.cohort.classes
        )
        counts = torch.arange(INPUTS, device=DEVICE) < self.counts[:, None]
        each = row_losses(logits, self.labels, self.cohort.key.loss, self.cohort.classes)
        losses = torch.where(counts, each, 0).sum(dim=1)
        (losses / self.counts).sum().backward()
        assert flat.grad is not None
        return losses.detach(), flat.grad

    def by_kernels(self, steps: int = 1) -> tuple[Tensor, Tensor]:
        from grokscope.model.kernel_pass import Gradients, kernel_pass

        weights, gradients = self.cohort.layout.views(self.flat), Gradients(self.cohort.layout, 3, self.flat)
        model = kernel_pass(
            self.cohort.architecture, weights, weights, self.separators, gradients, self.cohort.key.loss
        )
        batch = (for_kernels(self.given), for_kernels(self.labels), self.cohort.classes.int())
        for _ in range(steps):
            gradients.flat.fill_(torch.nan)
            losses = model.losses(*batch, self.counts.int())
            model.backward(losses)
        return losses.detach().sum(dim=1), gradients.flat


def for_kernels(table: Tensor) -> Tensor:
    return (table if table.is_floating_point() else table.int()).contiguous()


@architectures
def test_losses_and_gradients_are_those_of_autograd(name: str) -> None:
    compare_gradients(Batch(mixed_runs(ALL[name])))


@tasks
def test_losses_and_gradients_of_other_tasks_are_those_of_autograd(name: str) -> None:
    compare_gradients(Batch(row_runs(name)))


def compare_gradients(batch: Batch) -> None:
    (losses, gradients), (expected_losses, expected) = batch.by_kernels(), batch.by_autograd()
    torch.testing.assert_close(losses, expected_losses, rtol=1e-12, atol=1e-12)
    views, expected_views = (batch.cohort.layout.views(flat) for flat in (gradients, expected))
    for name, view in views.items():
        torch.testing.assert_close(view, expected_views[name], rtol=1e-9, atol=1e-13, msg=lambda m, n=name: f"{n}: {m}")


@architectures
def test_logits_and_neurons_are_those_of_the_pass(name: str) -> None:
    compare_outputs(Batch(mixed_runs(ALL[name])))


@tasks
def test_outputs_and_neurons_of_other_tasks_are_those_of_the_pass(name: str) -> None:
    compare_outputs(Batch(row_runs(name)))


def compare_outputs(batch: Batch) -> None:
    from grokscope.measures.kernel_snapshot import hidden_neurons
    from grokscope.model.kernel_pass import kernel_pass

    architecture = batch.cohort.architecture
    weights, given = batch.cohort.layout.views(batch.flat), for_kernels(batch.given)
    model = kernel_pass(architecture, weights, weights, batch.separators)
    expected = forward(weights, architecture, batch.given, classes=batch.cohort.classes)
    logits = model.logits(given)
    if architecture.biases:
        logits = logits + weights["unembed.b_U"][:, None]
    logits = logits / architecture.temperature
    is_class = torch.isfinite(expected)
    torch.testing.assert_close(logits[is_class], expected[is_class], rtol=1e-10, atol=1e-12)
    before, bias = model.hidden(given)
    before = before if bias is None else before + bias[:, None]
    activation, neurons = hidden_neurons(architecture, logits.shape[2])
    functions = {None: lambda x: x, "gelu": torch.nn.functional.gelu, "relu": torch.relu, "square": torch.square}
    after = functions[activation](before)
    assert after.shape[2] == neurons
    torch.testing.assert_close(after, last_hidden(weights, architecture, batch.given), rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_a_gradient_does_not_depend_on_the_rows_past_the_count() -> None:
    batch = Batch(mixed_runs(ARCHITECTURES["one_layer"]))
    first = batch.by_kernels(steps=2)[1]  # from the second step on, sums of tiles stand in one buffer
    batch.given[1, :2, 13:], batch.labels[1, 13:] = 0, 3
    assert torch.equal(batch.by_kernels()[1], first)


def test_matrix_products_of_a_single_run_are_those_of_two() -> None:
    from grokscope.kernels.product import product

    a, b = torch.randn(1, 9, 16, device=DEVICE), torch.randn(1, 16, 5, device=DEVICE)
    assert torch.equal(product(a, b), torch.bmm(a.expand(2, -1, -1), b.expand(2, -1, -1))[:1])
    out = torch.zeros(2, 9, 5, device=DEVICE)
    assert torch.equal(product(a, b, out), out[:1])
