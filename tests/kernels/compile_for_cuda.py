"""Compiles every kernel that a step and an evaluation launch, for a Hopper device that need not be there.

Triton's interpreter runs what its compiler rejects: types that differ between branches, for one.
"""

import inspect
import sys
from typing import Any

import pytest
import torch

from grokscope.model import layout_of, padded_size
from grokscope.specs import Architecture, RunSpec, Training
from grokscope.training import Cohort, initial_state

triton = pytest.importorskip("triton")
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402
from triton.runtime.jit import JITFunction  # noqa: E402

NUMBERS = {
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.bfloat16: "bf16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.int8: "i8",
    torch.bool: "i1",
}
LAUNCH = ("num_warps", "num_stages", "grid", "warmup")
compiled: set[Any] = set()


def kind(value: Any) -> str:
    """An argument's type as Triton writes it."""
    if isinstance(value, torch.Tensor):
        return f"*{NUMBERS[value.dtype]}"
    return "fp32" if isinstance(value, float) else "i32"


def compile_instead(kernel: JITFunction, *args: Any, **given: Any) -> None:
    """Compile a launch for CUDA, and run nothing."""
    names = list(inspect.signature(kernel.fn).parameters)
    values = {**dict(zip(names, args, strict=False)), **{k: v for k, v in given.items() if k not in LAUNCH}}
    fixed = {p.name for p in kernel.params if p.is_constexpr} | {n for n, v in values.items() if v is None}
    signature = {name: "constexpr" if name in fixed else kind(values[name]) for name in names}
    constants = {(names.index(name),): values[name] for name in fixed}
    options = {"num_warps": given.get("num_warps", 4)}
    key = (kernel.fn.__name__, str(signature), str(constants), str(options))
    if key not in compiled:
        compiled.add(key)
        triton.compile(ASTSource(kernel, signature, constants), target=GPUTarget("cuda", 90, 32), options=options)


def launch_all(architecture: Architecture, precision: str) -> None:
    """A step and an evaluation of two runs, whose numbers mean nothing."""
    from grokscope.measures.kernel_snapshot import KernelReader
    from grokscope.training.kernel_trainer import KernelTrainer
    from grokscope.training.loop import arithmetic

    options = Training(batch_size=64, clip_norm=1.0)
    spec = RunSpec(task="add_mod23", architecture=architecture, precision=precision, training=options)
    cohort = Cohort([spec.with_seed(0), spec.with_seed(1)])
    assert cohort.layout.size == layout_of(architecture, padded_size(23)).size
    state = initial_state(cohort)
    with arithmetic(precision):
        KernelTrainer(state, cohort)._step()
    with torch.no_grad():
        KernelReader(cohort).read(state.weights)


def main(precisions: list[str]) -> None:
    """Compile all, and say how many."""
    JITFunction.run = compile_instead
    # A product of bfloat16 that is stored in float32 is for CUDA only.
    plain_bmm = torch.bmm
    torch.bmm = lambda a, b, out_dtype=None, out=None: (
        plain_bmm(a, b, out=out) if out_dtype is None else out.copy_(plain_bmm(a, b))
    )
    small = Architecture(width=32, mlp_width=72)
    for architecture in (small, Architecture(width=24, heads=2, layer_norm=False, biases=False, activation="relu")):
        for precision in precisions:
            launch_all(architecture, precision)
    print(len(compiled), "kernels compiled")


if __name__ == "__main__":
    main(sys.argv[1:])
