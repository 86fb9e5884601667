"""What depends on the size of a stack: bits and times of eager, compiled and our own kernels on a CUDA device.

Bits are those of the run in slot 0, compared between stacks of several sizes. Times are of loss and gradients of the
paper's p = 97 model at batch 512, as one CUDA graph, without AdamW and without the choice of a batch.
"""

import argparse
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.provenance import save
from grokscope.model import forward, row_losses
from grokscope.specs import RunSpec
from grokscope.training import Cohort, arithmetic, initial_state

SIZES = (1, 2, 3, 8, 64, 512)
BATCH = 512
PRODUCTS = {  # rows, summed, columns
    "QKV on rows": (273, 128, 384),
    "attention output": (1536, 128, 128),
    "MLP in": (1536, 128, 512),
    "MLP out": (1536, 512, 128),
    "unembedding": (512, 128, 136),
    "gradient of MLP in": (128, 1536, 512),
    "gradient of MLP out": (512, 1536, 128),
    "gradient of unembedding": (128, 512, 136),
}
REDUCTIONS: dict[str, tuple[tuple[int, ...], Callable[[Tensor], Tensor]]] = {
    "bias gradient, sum over rows": ((1536, 512), lambda x: x.sum(dim=1)),
    "LayerNorm's variance": ((1536, 128), lambda x: x.var(dim=-1)),
    "log-sum-exp of the logits": ((512, 136), lambda x: x.logsumexp(dim=-1)),
    "sum of a batch's losses": ((512,), lambda x: x.sum(dim=1)),
    "norm of all weights": ((432136,), lambda x: torch.linalg.vector_norm(x, dim=1)),
}


def batch(runs: int) -> tuple[Cohort, Tensor, Tensor, Tensor]:
    """A stack at its first step: cohort, weights, tokens, labels."""
    cohort = Cohort([RunSpec().with_seed(seed) for seed in range(runs)], "cuda")
    rows = cohort.tables.train_rows[:, :BATCH]
    tokens = cohort.tables.tokens.gather(2, rows[:, None].expand(-1, 3, -1))
    return cohort, initial_state(cohort).weights, tokens, cohort.tables.labels.gather(1, rows)


def classes_of_bits(values: dict[int, Tensor]) -> str:
    """The stack sizes, grouped by equal bits of slot 0."""
    groups: list[tuple[Tensor, list[int]]] = []
    for size, value in values.items():
        known = next((sizes for first, sizes in groups if torch.equal(first, value)), None)
        if known is None:
            groups.append((value, [size]))
        else:
            known.append(size)
    return " | ".join(", ".join(map(str, sizes)) for _, sizes in groups)


def eager_bits() -> dict[str, str]:
    """Products and reductions of eager torch."""
    found = {}
    torch.manual_seed(0)
    for name, (m, k, n) in PRODUCTS.items():
        for precision, dtype in (("float32", torch.float32), ("tf32", torch.float32), ("bf16", torch.bfloat16)):
            a, b = torch.randn(max(SIZES), m, k, device="cuda"), torch.randn(max(SIZES), k, n, device="cuda")
            with arithmetic(precision):
                values = {e: torch.bmm(a[:e].to(dtype), b[:e].to(dtype))[0] for e in SIZES}
            found[f"{name}, {precision}"] = classes_of_bits(values)
    for name, (shape, reduce) in REDUCTIONS.items():
        x = torch.randn(max(SIZES), *shape, device="cuda")
        found[name] = classes_of_bits({e: reduce(x[:e])[0] for e in SIZES})
    return found


def compiled(precision: str) -> dict[str, Any]:
    """Loss and gradients as the training loop compiles them: bits, parameter by parameter, and times."""
    values: dict[str, dict[int, Tensor]] = {}
    times: dict[str, float] = {}
    for e in SIZES:
        torch._dynamo.reset()
        cohort, weights, tokens, labels = batch(e)
        leaves = {name: view.clone().requires_grad_() for name, view in cohort.layout.views(weights).items()}

        def loss(leaves: dict[str, Tensor], tokens: Tensor, labels: Tensor, cohort: Cohort = cohort) -> Tensor:
            compute = torch.bfloat16 if precision == "bf16" else None
            logits = forward(leaves, cohort.architecture, tokens, classes=cohort.classes, compute=compute)
            return row_losses(logits, labels).sum(dim=1) / BATCH

        quick = torch.compile(loss, fullgraph=True, dynamic=False)
        found: list[Tensor] = []

        def compute(quick: Any = quick, inputs: Any = (leaves, tokens, labels), found: list[Tensor] = found) -> None:
            each = quick(*inputs)
            found[:] = [each.detach(), *torch.autograd.grad(each.sum(), list(inputs[0].values()))]

        with arithmetic(precision):
            compute()
            for name, value in zip(("loss", *leaves), found, strict=True):
                values.setdefault(name, {})[e] = value[0].clone()
            times[str(e)] = round(milliseconds(compute), 3)
    return {"bits": {name: classes_of_bits(found) for name, found in values.items()}, "milliseconds": times}


def kernels(precision: str, runs: int) -> tuple[Callable[[], None], Tensor, Tensor]:
    """What leaves the gradients of one batch, the gradients, and the weights."""
    from grokscope.model.kernel_pass import Gradients, KernelPass

    cohort, weights, tokens, labels = batch(runs)
    layout, gradients = cohort.layout, Gradients(cohort.layout, runs, weights)
    views = layout.views(weights)
    rounded = layout.views(weights.bfloat16()) if precision == "bf16" else views
    integers = [part.int().contiguous() for part in (tokens, labels, cohort.classes, tokens[:, -1, 0])]
    model = KernelPass(cohort.architecture, views, rounded, integers[3], gradients)
    counts = torch.full((runs,), BATCH, dtype=torch.int32, device="cuda")

    def compute() -> None:
        with arithmetic(precision):
            model.backward(model.losses(*integers[:3], counts))

    return compute, gradients.flat, weights


def error(precision: str) -> float:
    """‖gradient − reference‖ / ‖reference‖, the reference by autograd in float64."""
    compute, gradients, weights = kernels(precision, 2)
    compute()
    cohort, _, tokens, labels = batch(2)
    exact = weights.double().requires_grad_()
    logits = forward(cohort.layout.views(exact), cohort.architecture, tokens, classes=cohort.classes)
    (row_losses(logits, labels).sum() / BATCH).backward()
    assert exact.grad is not None
    return float((gradients.double() - exact.grad).norm() / exact.grad.norm())


def milliseconds(compute: Callable[[], None]) -> float:
    """Of one replay of the computation as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        compute()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        compute()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for repeat in range(23):
        if repeat == 3:
            start.record()
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 20


def kernel_times(compute: Callable[[], None]) -> dict[str, float]:
    """Milliseconds of each kernel in one step."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        compute()
        torch.cuda.synchronize()
    times = {event.key: round(event.device_time_total / 1000, 3) for event in profile.key_averages()}
    return {name: time for name, time in sorted(times.items(), key=lambda item: -item[1]) if time > 0.001}


def main() -> None:
    """Measure, print a line for each precision, and store the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precisions", nargs="*", default=["float32", "tf32", "bf16"])
    parser.add_argument("--kernels-only", action="store_true", help="leave out what eager and compiled torch do")
    chosen = parser.parse_args()
    record: dict[str, Any] = {"eager": {} if chosen.kernels_only else eager_bits(), "compiled": {}, "kernels": {}}
    for precision in chosen.precisions:
        if not chosen.kernels_only:
            record["compiled"][precision] = compiled(precision)
            print("compiled", precision, record["compiled"][precision]["milliseconds"], flush=True)
        row: dict[str, Any] = {"error": error(precision), "milliseconds": {}}
        bits: dict[int, Tensor] = {}
        for e in SIZES:
            compute, gradients, _ = kernels(precision, e)
            compute()
            bits[e] = gradients[0].clone()
            row["milliseconds"][str(e)] = round(milliseconds(compute), 3)
            if e in (1, max(SIZES)):
                row[f"times_{e}"] = kernel_times(compute)
            del compute, gradients
            torch.cuda.empty_cache()
        row["bits"] = classes_of_bits(bits)
        record["kernels"][precision] = row
        print("kernels", precision, row["milliseconds"], row["bits"], flush=True)
    save("stack-bits-cuda", record, "cuda")


if __name__ == "__main__":
    main()
