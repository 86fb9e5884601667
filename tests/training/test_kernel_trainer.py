"""Training by kernels against the reference loop; on a CPU by Triton's interpreter."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from plain_runs import SMALL, mixed_runs
from row_runs import row_runs

from grokscope.specs import Fork, NormHold, RunSpec
from grokscope.training import Cohort, State, advance, initial_state
from grokscope.training.cohort import OLDEST_TRITON
from interpreted import kinds

pytest.importorskip("triton", OLDEST_TRITON, "Triton comes with torch's CUDA builds; on a CPU: pip install triton")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 2
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "warm-up, clipping, decay of matrices only": {"warmup_steps": 5, "clip_norm": 0.5, "decay_parameters": "matrices"},
    "dropout and a schedule": {"dropout": 0.2, "weight_decay_schedule": ((1, 50.0),)},
    "grokfast": {"gradient": "grokfast"},
    "grokfast of a window of one": {"gradient": "grokfast_window", "grokfast_window": 1},
    "grokfast of a window of two": {"gradient": "grokfast_window", "grokfast_window": 2},
    "muon, decay by group": {
        "optimizer": "muon",
        "epsilon": 1e-3,
        "warmup_steps": 3,
        "embedding_decay": 20.0,
        "matrix_decay": 2.0,
        "vector_decay": 3.0,
        "head_decay": 0.5,
    },
    "muon in bfloat16, of grokfast's gradients": {
        "optimizer": "muon",
        "epsilon": 1e-3,
        "muon_precision": "bfloat16",
        "gradient": "grokfast",
    },
    "coupled decay by group, of grokfast's gradients": {
        "optimizer": "adam",
        "gradient": "grokfast",
        "epsilon": 1e-3,
        "warmup_steps": 3,
        "embedding_decay": 20.0,
        "vector_decay": 3.0,
    },
    "coupled decay of matrices only, a schedule": {
        "optimizer": "adam",
        "epsilon": 1e-3,
        "decay_parameters": "matrices",
        "weight_decay_schedule": ((1, 50.0),),
    },
    "StableMax": {"loss": "stablemax"},
    "StableMax, orthogonal": {"loss": "stablemax", "gradient": "orthogonal", "epsilon": 1e-3},
    # ⊥Grad leaves gradients that are zero but for rounding, which Adam's usual ε would amplify.
    "orthogonal, with replacement": {"gradient": "orthogonal", "epsilon": 1e-3, "sampling": "replacement"},
}

FAST = (
    "warm-up, clipping, decay of matrices only", "muon, decay by group", "StableMax, orthogonal",
    "coupled decay by group, of grokfast's gradients", "grokfast of a window of two",
)  # fmt: skip


def by_kernels(state: State, cohort: Cohort, steps: int) -> State:
    from grokscope.training.kernel_trainer import KernelTrainer
    from grokscope.training.loop import arithmetic

    with arithmetic(cohort.key.precision):
        KernelTrainer(state, cohort).chunk(steps)
    return state


def compare(runs: list[RunSpec], held_norm: float = 0.0) -> None:
    states = []
    for train in (by_kernels, lambda state, cohort, steps: advance(state, cohort, steps, compiled=False)[0]):
        cohort = Cohort(runs, DEVICE)
        state = initial_state(cohort)
        state.alive[1] = False  # an idle slot keeps every bit
        state.held_norm[0] = held_norm
        states.append(train(state, cohort, STEPS))
    ours, expected = states
    for name in ("weights", "first", "second", "slow", "recent"):
        torch.testing.assert_close(getattr(ours, name), getattr(expected, name), rtol=1e-9, atol=1e-10)
    for name in ("step", "age", "alive", "weight_decay"):
        assert torch.equal(getattr(ours, name), getattr(expected, name))
    assert ours.step.tolist() == [STEPS, 0]


@pytest.mark.parametrize("name", kinds(OPTIONS, FAST))
def test_a_step_by_kernels_is_the_references_step(name: str) -> None:
    options = OPTIONS[name]
    runs = [replace(run, task=task) for run, task in zip(mixed_runs(**options), ("add_mod7", "S3"), strict=False)]
    compare(runs)


# Batches of tokens with classes, of tokens with real answers, of vectors with classes, of vectors with real answers.
@pytest.mark.parametrize("name", ["mlp of five tokens", "values of tokens", "mlp of vectors", "regression"])
def test_a_step_of_another_task_is_the_references_step(name: str) -> None:
    compare(row_runs(name)[:2])


def test_a_held_norm_is_held_by_kernels_too() -> None:
    parent = mixed_runs()[0]
    fork = replace(parent, fork=Fork(parent=parent.content_hash, step=0, norm="frozen"))
    compare([fork, fork.with_seed(5)], held_norm=9.0)


@pytest.mark.parametrize(
    "hold", [NormHold(("matrices",), level=5.0), NormHold(("matrices",), level=20.0, start=1, along="random")]
)
def test_matrices_are_held_by_kernels_too(hold: NormHold) -> None:
    compare([replace(run, norm_hold=hold) for run in mixed_runs()[:2]])


def test_a_step_without_a_final_norm_and_with_a_temperature_is_the_references_step() -> None:
    compare(mixed_runs(replace(SMALL, layers=2, final_norm=False, temperature=2.5))[:2])


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # of the interpreter, which computes with numpy
def test_batch_losses_and_a_failing_run_are_reported_as_by_the_reference() -> None:
    from grokscope.training.kernel_trainer import KernelTrainer

    cohort = Cohort(mixed_runs(SMALL)[:2], DEVICE)
    ours, expected = initial_state(cohort), initial_state(cohort)
    for state in (ours, expected):
        state.weights[1] = torch.nan
    losses = KernelTrainer(ours, cohort).chunk(2)
    assert ours.alive.tolist() == [True, False]
    assert ours.step.tolist() == [2, 0]
    torch.testing.assert_close(losses, advance(expected, cohort, 2, compiled=False)[1].loss, equal_nan=True)
