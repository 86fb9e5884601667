"""Counts the tensors of a step and an evaluation by kernels, on a CPU and without running a kernel."""

import sys
import weakref
from dataclasses import replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from triton.runtime.jit import JITFunction

from grokscope.jobs import bytes_of_stack
from grokscope.measures.kernel_snapshot import KernelReader
from grokscope.specs import Architecture, NormHold, RunSpec, Training
from grokscope.training import Cohort, arithmetic, initial_state
from grokscope.training.kernel_trainer import KernelTrainer

RUNS = 20  # more than what is passed aside on a stream of its own
BLOCK = 512  # bytes, to which CUDA's allocator rounds up
MLP = Architecture(kind="mlp", layers=1)
MSE = Training(loss="mse")
KINDS = {
    "the paper's": RunSpec(),
    "the paper's in bf16": RunSpec(precision="bf16"),
    "one layer": RunSpec(architecture=Architecture(layers=1)),
    "wide, three layers": RunSpec(architecture=Architecture(layers=3, width=256)),
    "without MLPs": RunSpec(architecture=Architecture(mlp="dropped")),
    "norms for attention": RunSpec(architecture=Architecture(attention="norm")),
    "whole training set": RunSpec("add_mod53", training=Training(batch_size=None)),
    "Grokfast": RunSpec(training=Training(gradient="grokfast")),
    "a norm held along a direction": RunSpec(norm_hold=NormHold(level=50.0, along="random")),
    "41 tokens": RunSpec("parity_n40_k3_tokens", architecture=Architecture(width=64, mlp_width=128)),
    "two hops, four layers": RunSpec("twohop_e50_d5", 0.5, architecture=Architecture(layers=4)),
    "MLP of vectors": RunSpec("parity_n40_k3", architecture=replace(MLP, layers=2)),
    "quadratic network": RunSpec("add_mod97", architecture=replace(MLP, activation="square"), training=MSE),
    "MLP of embeddings": RunSpec("add_mod97", architecture=replace(MLP, embedded=True)),
    "linear regression": RunSpec("ridge_d100_n200", architecture=replace(MLP, layers=0), training=MSE),
}


class Held(TorchDispatchMode):
    """Bytes of all tensors that are held, and the most that were held at once."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[int, int] = {}
        self.now = self.most = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(found):
            if isinstance(tensor, torch.Tensor):
                self.add(tensor.untyped_storage())
        return found

    def add(self, storage: Any) -> None:
        place = storage._cdata
        if place not in self.held and storage.nbytes():
            self.held[place] = -(-storage.nbytes() // BLOCK) * BLOCK
            self.now += self.held[place]
            self.most = max(self.most, self.now)
            weakref.finalize(storage, self.drop, place)

    def drop(self, place: int) -> None:
        self.now -= self.held.pop(place, 0)

    def beyond(self) -> int:
        """The most since the last call, beyond what is held now."""
        found, self.most = self.most - self.now, self.now
        return found


def counted(spec: RunSpec) -> int:
    """What is held between steps, and what a step and an evaluation hold besides: each graph has its own memory."""
    with Held() as held:
        cohort = Cohort([spec.with_seed(seed) for seed in range(RUNS)])
        state = initial_state(cohort)
        trainer = KernelTrainer(state, cohort)
        with arithmetic(spec.precision):
            trainer._step()  # which reserves places for sums
            held.beyond()
            trainer._step()
        of_step = held.beyond()
        with torch.no_grad():
            reader = KernelReader(cohort)
            held.beyond()
            reader.read(state.weights)
        return held.now + of_step + held.beyond()


def nothing(*args: Any, **kwargs: Any) -> None:
    """In place of a kernel's launch."""


def product(a: torch.Tensor, b: torch.Tensor, out_dtype: Any = None, out: Any = None) -> torch.Tensor:
    return a.new_empty(len(a), a.shape[1], b.shape[2]) if out is None else out


if __name__ == "__main__":
    JITFunction.run = nothing
    torch.bmm = product
    for name in sys.argv[1:] or KINDS:
        estimate = bytes_of_stack([KINDS[name]], RUNS)
        print(f"{estimate / counted(KINDS[name]):.3f} {name}", flush=True)
