"""Counts the tensors that a stack holds when it holds most, on a CPU and without running a kernel."""

import importlib
import sys
import weakref
from dataclasses import fields, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from triton.runtime.jit import JITFunction

from grokscope.jobs.memory import moments
from grokscope.measures.kernel_snapshot import KernelReader
from grokscope.model import kernel_functions, kernel_gradients
from grokscope.specs import Architecture, NormHold, RunSpec, Training
from grokscope.training import Cohort, arithmetic, initial_state, kernel_trainer

products = importlib.import_module("grokscope.kernels.product")  # its function has the same name
RUNS = 4  # as if it were a large stack, of which a few runs more or less are no matter
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
    """The most that is held: when a step is recorded, at the first evaluation, or when batches are made later.

    A recorded graph keeps its memory; products are tried when they are made for the first time.
    """
    with Held() as held:
        cohort = Cohort([spec.with_seed(seed) for seed in range(RUNS)])
        state = initial_state(cohort)
        trainer = kernel_trainer.KernelTrainer(state, cohort)
        held.beyond()
        trainer._fill_batches(trainer.room)
        made = held.beyond()
        with arithmetic(spec.precision):
            copies = [getattr(state, field.name).clone() for field in fields(state)]
            trainer._step()  # which also reserves places for sums
            recording = held.most + made
            del copies
            held.beyond()
            trainer._step()
        step = held.beyond()
        with torch.no_grad():
            reader = KernelReader(cohort)
            held.beyond()
            reader.read(state.weights)
            first_evaluation = held.beyond()
            reader.read(state.weights)
        return max(recording, held.now + step + first_evaluation, held.now + made + step + held.beyond())


def nothing(*args: Any, **kwargs: Any) -> None:
    """In place of a kernel's launch."""


def product(a: torch.Tensor, b: torch.Tensor, out_dtype: Any = None, out: Any = None) -> torch.Tensor:
    return a.new_empty(len(a), a.shape[1], b.shape[2]) if out is None else out


TRIED: set[Any] = set()


def tried(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """A product as on CUDA: on copies first, whatever they show."""
    kind = tuple((x.shape, x.stride(), x.dtype) for x in (a, b, out) if x is not None)
    if kind not in TRIED:
        TRIED.add(kind)
        for x, y in products._probes(a, b):
            product(x, y, out)
    return product(a, b, out=None if out is None else out[: len(a)])


if __name__ == "__main__":
    JITFunction.run = nothing
    kernel_trainer.SMALL_STACK = 0
    for module in (kernel_functions, kernel_gradients, kernel_trainer):
        module.product = tried
    for name in sys.argv[1:] or KINDS:
        TRIED.clear()
        estimate = max(moments([KINDS[name]], RUNS))
        print(f"{estimate / counted(KINDS[name]):.3f} {name}", flush=True)
