"""Compiles every kernel that a step and an evaluation launch, for a Hopper device that need not be there.

Triton's interpreter runs what its compiler rejects: types that differ between branches, for one.
"""

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from grokscope.specs import Architecture, RunSpec, Training
from grokscope.training import Cohort, initial_state

triton = pytest.importorskip("triton")
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402
from triton.runtime.jit import JITFunction  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
from row_runs import row_runs  # noqa: E402

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
ALIGNED = [["tt.divisibility", 16]]
compiled: dict[Any, list[str]] = {}
launched: list[tuple[str, list[str]]] = []
"""Kernels in the order of their launches, each with the layouts by which it adds up."""


def kind(value: Any) -> str:
    """An argument's type as Triton writes it."""
    if isinstance(value, torch.Tensor):
        return f"*{NUMBERS[value.dtype]}"
    return "fp32" if isinstance(value, float) else "i32"


def is_aligned(value: Any) -> bool:
    """Whether Triton compiles a kernel of its own for this argument: divisible by 16."""
    if isinstance(value, torch.Tensor):
        return value.storage_offset() * value.element_size() % 16 == 0
    return isinstance(value, int) and value % 16 == 0


def compile_instead(kernel: JITFunction, *args: Any, **given: Any) -> None:
    """Compile a launch for CUDA, specialised as Triton does, and run nothing."""
    values = {**dict(zip(kernel.arg_names, args, strict=False)), **{k: v for k, v in given.items() if k not in LAUNCH}}
    free = {p.name for p in kernel.params if not p.is_constexpr and not p.do_not_specialize}
    fixed = {p.name for p in kernel.params if p.is_constexpr}
    fixed |= {
        name for name, value in values.items() if value is None or (name in free and type(value) is int and value == 1)
    }
    place = {name: (i,) for i, name in enumerate(kernel.arg_names)}
    signature = {name: "constexpr" if name in fixed else kind(values[name]) for name in kernel.arg_names}
    constants = {place[name]: values[name] for name in fixed}
    attributes = {place[name]: ALIGNED for name in free - fixed if is_aligned(values[name])}
    options = {"num_warps": given.get("num_warps", 4)}
    key = (kernel.fn.__name__, str(signature), str(sorted(constants.items())), str(sorted(attributes)), str(options))
    if key not in compiled:
        source = ASTSource(kernel, signature, constants, attributes)
        found = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
        compiled[key] = layouts_of_sums(found.asm["ttgir"])
    launched.append((kernel.fn.__name__, compiled[key]))


def layouts_of_sums(code: str) -> list[str]:
    """How the numbers of each sum are spread over threads: the order in which they are added up follows."""
    layouts = dict(re.findall(r"^(#\w+) = (.*)$", code, re.MULTILINE))
    sums = re.findall(r"\}\) : \(tensor<.*?\) -> .*", code)
    return [re.sub(r"#\w+", lambda m: layouts.get(m[0], m[0]), re.sub(r" loc\(.*", "", line)) for line in sums]


# Other tasks and models, which together launch every kernel that pair tables do not.
KINDS = (
    "five tokens, three heads",
    "values of tokens",
    "mlp of five tokens",
    "mlp of five embeddings",
    "quadratic network",
    "mlp of pairs without biases, StableMax",
    "normed mlp",
    "mlp of vectors",
    "regression",
    "linear map of five tokens",
)


def launch_all(architecture: Architecture, precision: str, runs: int = 2, **options: Any) -> None:
    """A step and an evaluation of a pair table."""
    training = Training(batch_size=64, clip_norm=1.0, **options)
    launch(RunSpec(task="add_mod23", architecture=architecture, precision=precision, training=training), runs)


def launch_kind(name: str, precision: str, runs: int = 2) -> None:
    """A step and an evaluation of another task or model."""
    launch(replace(row_runs(name)[0], precision=precision), runs)


def launch(spec: RunSpec, runs: int) -> None:
    """A step and an evaluation whose numbers mean nothing."""
    from grokscope.measures.kernel_snapshot import KernelReader
    from grokscope.training.kernel_trainer import KernelTrainer
    from grokscope.training.loop import arithmetic

    cohort = Cohort([spec.with_seed(seed) for seed in range(runs)])
    state = initial_state(cohort)
    with arithmetic(spec.precision):
        KernelTrainer(state, cohort)._step()
    with torch.no_grad():
        KernelReader(cohort).read(state.weights)


def compile_all(precisions: list[str]) -> None:
    """Compile all, and say how many."""
    small = Architecture(width=32, mlp_width=72)
    for architecture in (small, Architecture(width=24, heads=2, layer_norm=False, biases=False, activation="relu")):
        for precision in precisions:
            launch_all(architecture, precision)
    for name in KINDS:
        for precision in precisions:
            launch_kind(name, precision)
    print(len(compiled), "kernels compiled")


def compare_stacks(tasks: str) -> None:
    """Say which kernels would add up in another order in a stack of another size; of pair tables, or of all tasks."""
    odd = Architecture(layers=1, width=40, heads=5, mlp_width=52)
    launches: list[Callable[[int], None]] = [
        lambda runs: launch_all(odd, "float32", runs),
        lambda runs: launch_all(odd, "float32", runs, gradient="orthogonal"),
        *(partial(launch_kind, name, "float32") for name in KINDS if tasks == "all"),
    ]
    for one in launches:
        found = []
        for runs in (1, 2, 16):
            launched.clear()
            one(runs)
            found.append(list(launched))
        assert len({len(stack) for stack in found}) == 1
        for (name, alone), *stacks in zip(*found, strict=True):
            if any(layouts != alone for _, layouts in stacks):
                print(f"{name} adds up in another order in a stack")
    print("stacks of 1, 2 and 16 compared")


def main(words: list[str]) -> None:
    """Compile what the words name instead of launching it."""
    JITFunction.run = compile_instead
    # A product of bfloat16 that is stored in float32 is for CUDA only.
    plain_bmm = torch.bmm
    torch.bmm = lambda a, b, out_dtype=None, out=None: (
        plain_bmm(a, b, out=out) if out_dtype is None else out.copy_(plain_bmm(a, b))
    )
    compare_stacks(words[1]) if words[0] == "stacks" else compile_all(words)


if __name__ == "__main__":
    main(sys.argv[1:])
