"""Metal (mps) has no float64: what would run there must not make any."""

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from grokscope.measures.snapshot import _Reader
from grokscope.specs import Architecture, RunSpec, Training
from grokscope.training import Cohort, advance, initial_state
from grokscope.training.loop import Trainer

SPECS = [
    RunSpec(
        task=task, architecture=Architecture(width=16, mlp_width=32), training=Training(steps=100, batch_size=8)
    ).with_seed(seed)
    for seed, task in enumerate(["add_mod11", "S3", "add_mod11"])
]


class NoFloat64(TorchDispatchMode):
    """Every operation inside raises if it makes a float64 tensor."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(made):
            if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float64:
                raise TypeError(f"{func} made a float64 tensor")
        return made


class LikeMetal(Cohort):
    """A cohort whose device has no float64."""

    @property
    def exact(self) -> torch.dtype:
        return torch.float32


def test_a_training_step_and_the_passes_of_a_look_need_no_float64() -> None:
    cohort = LikeMetal(SPECS)
    state = initial_state(cohort)
    trainer, reader = Trainer(state, cohort, compiled=False), _Reader(cohort, compiled=False)
    trainer._prepare(2)
    part = slice(0, reader.chunk)
    group = reader.group[:, part]
    with NoFloat64():
        for _ in range(2):
            trainer._step()
        with torch.no_grad():
            tokens, labels, answers = reader.given[..., part], reader.labels[:, part], reader.conditions[:, part]
            origin = reader.origin(state.weights)
            reader.scores(state.weights, tokens, labels, group)
            reader.sums(state.weights, tokens, answers, origin)
            reader.both(state.weights, tokens, answers, labels, group, origin)
    assert state.step.tolist() == [2, 2, 2]


def test_the_guard_can_fail() -> None:
    cohort = Cohort(SPECS)
    trainer = Trainer(initial_state(cohort), cohort, compiled=False)
    trainer._prepare(1)
    with NoFloat64(), pytest.raises(TypeError, match="float64"):
        trainer._step()


def test_scalars_in_float32_train_the_same_up_to_rounding() -> None:
    states = []
    for kind in (Cohort, LikeMetal):
        cohort = kind(SPECS)
        state, _ = advance(initial_state(cohort), cohort, 50)
        states.append(state.weights)
    assert not torch.equal(*states)
    # Weight by weight they may part: a key's bias has only rounding for a gradient, and Adam makes a step of it.
    norms = [weights.norm(dim=1) for weights in states]
    assert torch.allclose(*norms, rtol=1e-4)
