"""Runs on tasks that are no pair tables: sequences of other lengths, vectors, real answers, other losses."""

from dataclasses import replace
from typing import Any

import numpy as np
from plain_runs import NORMAL, PLAIN_MLP, SMALL, TWO_LAYERS, small_run

from grokscope.specs import Architecture, RunSpec
from grokscope.tasks import RowGroup, Task, names

DRAWN = np.random.default_rng(0)


def tokens(rows: int, length: int, vocabulary: int) -> np.ndarray:
    return DRAWN.integers(vocabulary, size=(rows, length))


def classes(rows: int, count: int) -> np.ndarray:
    return DRAWN.permutation(np.arange(rows) % count)


GROUPS = (RowGroup("drawn", "drawn", np.arange(34)), RowGroup("apart", "held_out", np.arange(34, 47)))
FEWER = (GROUPS[0], RowGroup("apart", "held_out", np.arange(34, 40)))
ROW_TASKS = {
    "five_tokens": Task("five_tokens", "", classes(47, 6), 6, tokens(47, 5, 7), vocabulary=7, row_groups=GROUPS),
    "five_more": Task("five_more", "", classes(40, 5), 5, tokens(40, 5, 8), vocabulary=8, row_groups=FEWER),
    "two_tokens": Task("two_tokens", "", classes(36, 6), 6, tokens(36, 2, 7), vocabulary=7),
    "one_token": Task("one_token", "", classes(36, 4), 4, tokens(36, 1, 30), vocabulary=30),
    "vectors": Task("vectors", "", classes(40, 5), 5, vectors=DRAWN.normal(size=(40, 11))),
    "regression": Task(
        "regression", "", DRAWN.normal(size=(40, 3)), 3, vectors=DRAWN.normal(size=(40, 11)), success=0.9
    ),
    "values_of_tokens": Task(
        "values_of_tokens", "", DRAWN.normal(size=(40, 2)), 2, tokens(40, 4, 5), vocabulary=5, success=0.9
    ),
}  # fmt: skip
built_in = names._built_in_task


def with_row_tasks(name: str) -> Task:
    return ROW_TASKS[name] if name in ROW_TASKS else built_in(name)


names._built_in_task = with_row_tasks  # type: ignore[assignment]

MSE: dict[str, Any] = {"loss": "mse"}
STABLEMAX: dict[str, Any] = {"loss": "stablemax"}
DEEP = replace(TWO_LAYERS, layers=3)
# What is learnt by what, and how.
ROW_RUNS: dict[str, tuple[str, Architecture, dict[str, Any]]] = {
    "five tokens, two layers": ("five_tokens", TWO_LAYERS, {}),
    "five tokens, causal, no norms": (
        "five_tokens",
        replace(TWO_LAYERS, causal=True, layer_norm=False, biases=False, activation="relu"),
        {},
    ),
    "five tokens, pooled": ("five_tokens", replace(TWO_LAYERS, readout="pooled"), {}),
    "five tokens, attention alone": ("five_tokens", replace(TWO_LAYERS, mlp="dropped"), {}),
    "five tokens, norms for attention": ("five_tokens", replace(TWO_LAYERS, attention="norm"), {}),
    "five tokens, three heads": ("five_tokens", replace(DEEP, heads=3, width=24, causal=True), {}),
    "five tokens, squared error": ("five_tokens", SMALL, MSE),
    "two tokens": ("two_tokens", TWO_LAYERS, {}),
    "one token": ("one_token", SMALL, {}),
    "values of tokens": ("values_of_tokens", SMALL, MSE),
    "pairs, squared error": ("add_mod7", SMALL, MSE),
    "pairs, StableMax": ("add_mod7", SMALL, STABLEMAX),
    "mlp of pairs without biases, StableMax": (
        "add_mod7",
        replace(PLAIN_MLP, layers=2, activation="relu", biases=False),
        STABLEMAX,
    ),
    "mlp of five tokens": ("five_tokens", PLAIN_MLP, {}),
    "mlp of five embeddings": ("five_tokens", replace(PLAIN_MLP, layers=2, embedded=True, width=16), {}),
    "quadratic network": ("add_mod7", replace(PLAIN_MLP, activation="square", biases=False), MSE),
    "normed mlp": ("five_tokens", replace(PLAIN_MLP, layers=2, hidden_norm=True, activation="relu"), {}),
    "mlp of vectors": ("vectors", replace(PLAIN_MLP, layers=2), {}),
    "regression": ("regression", PLAIN_MLP, MSE),
    "linear regression": ("regression", replace(PLAIN_MLP, layers=0), MSE),
    "regression, tempered": ("regression", replace(PLAIN_MLP, temperature=0.7), MSE),
    "linear map of five tokens, tempered": ("five_tokens", replace(PLAIN_MLP, layers=0, temperature=3.0), {}),
    "linear map of five tokens": ("five_tokens", replace(PLAIN_MLP, layers=0), {}),
    "linear map of embeddings": ("five_tokens", replace(PLAIN_MLP, layers=0, embedded=True, width=16), {}),
}
NEIGHBOURS = {"five_tokens": "five_more", "add_mod7": "S3"}


def row_runs(name: str, **options: Any) -> list[RunSpec]:
    """Three runs of one kind, of which one learns another task where one has the same padded sizes."""
    task, architecture, own = ROW_RUNS[name]
    plain = {"initialization": NORMAL} if architecture.kind == "transformer" and not architecture.layer_norm else {}
    fields = {"batch_size": 12, **plain, **own, **options}
    tasks = (task, NEIGHBOURS.get(task, task), task)
    decays = (1.0, 5.0, 0.0)
    return [
        small_run(each, seed, architecture, weight_decay=decay, **fields)
        for seed, (each, decay) in enumerate(zip(tasks, decays, strict=True))
    ]
