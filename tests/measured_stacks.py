"""Stacks of small trained runs, measured once by everything in the catalogue, and read by plain modules."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch
from plain_runs import TWO_LAYERS, fresh, small_run

from grokscope.activations import RunStack, subject_of
from grokscope.measures.catalogue import MEASURES, measure
from grokscope.measures.question import Question
from grokscope.model import ReferenceModule, reference_module, sizes_of
from grokscope.specs import Architecture, RunSpec
from grokscope.training import advance

TASKS = ("add_mod11", "S3", "mult_mod7")
RUNS, DRAWS, PAIRS = 3, 8, 20
SITE = "blocks.0.mlp.hook_post"


def spec_of(task: str, architecture: Architecture = TWO_LAYERS) -> RunSpec:
    return small_run(task, 0, architecture, learning_rate=0.003)


def stack_of(runs: list[RunSpec], steps: int = 0) -> RunStack:
    state, cohort = fresh(list(runs))
    advance(state, cohort, steps)
    return subject_of(cohort.specs, state.weights)


@lru_cache
def trained_stack(task: str, runs: int = 2, steps: int = 40, architecture: Architecture = TWO_LAYERS) -> RunStack:
    return stack_of([small_run(task, seed, architecture) for seed in range(runs)], steps)


def with_nan(subject: RunStack, run: int, value: float = float("nan")) -> RunStack:
    """One run with NaN, or another value, in place of every weight."""
    weights = {name: weight.clone() for name, weight in subject.weights.items()}
    for weight in weights.values():
        weight[run] = value
    return replace(subject, weights=weights)


def on_cuda(subject: RunStack) -> RunStack:
    weights = {name: value.cuda() for name, value in subject.weights.items()}
    return replace(subject, weights=weights, is_train=subject.is_train.cuda(), labels=subject.labels.cuda())


@lru_cache
def trained(task: str, architecture: Architecture = TWO_LAYERS, runs: int = RUNS) -> RunStack:
    return stack_of([spec_of(task, architecture).with_seed(seed) for seed in range(runs)], 25)


STACKED = [name for name, one in MEASURES.items() if "trajectory" not in one.needs]
"""Those that a stack of runs can be asked for, whose earlier checkpoints nobody has."""


def measurable(task: str) -> list[str]:
    return [name for name in STACKED if not (name == "fourier_kan" and task == "S3")]


@lru_cache
def question_of(task: str) -> Question:
    return Question(trained(task), spec=spec_of(task))


@lru_cache
def asked(task: str, name: str) -> list[dict[str, float | str]]:
    """One measure of three trained networks, with few draws."""
    return measure(question_of(task), [name])


def rows_of(task: str) -> list[dict[str, float | str]]:
    """All of them."""
    return [{k: v for name in measurable(task) for k, v in asked(task, name)[run].items()} for run in range(RUNS)]


def columns_of(task: str, name: str) -> list[str]:
    return [column for column in asked(task, name)[0] if column != "undefined"]


def module_of(subject: RunStack, run: int = 0) -> ReferenceModule:
    """One run of a stack as a plain module."""
    weights = {name: value[run : run + 1] for name, value in subject.weights.items()}
    return reference_module(subject.architecture, sizes_of(subject.task), weights).eval()


def hidden(subject: RunStack, run: int) -> np.ndarray:
    """Block 0's neurons at the last position, by a hook on the plain module."""
    module, seen = module_of(subject, run), []
    part = dict(module.named_modules())[SITE]
    part.register_forward_hook(lambda module, inputs, output: seen.append(output.detach()))
    module(torch.tensor(subject.task.tokens))
    return seen[0][:, -1].numpy()


def by_answer(subject: RunStack, values: np.ndarray) -> np.ndarray:
    answers = subject.task.answers
    return np.array([values[answers == s].mean(axis=0) for s in range(subject.task.classes)])


def known(subject: RunStack, row: int, **tensors: torch.Tensor) -> dict[str, float]:
    return {name: float(value[row] if value.ndim else value) for name, value in tensors.items()}


def logarithm_order(p: int) -> list[int]:
    """1, g, g², … for the least g that reaches every nonzero residue."""
    for g in range(2, p):
        powers = [pow(g, k, p) for k in range(p - 1)]
        if len(set(powers)) == p - 1:
            return powers
    raise AssertionError
