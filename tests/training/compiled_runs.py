"""Trains a small stack twice, eager and compiled, and prints by how much they differ; `test_loop` runs it."""

import json
import sys

import torch
from plain_runs import fresh, mixed_runs
from torch import Tensor

from grokscope.measures import Snapshot, snapshot
from grokscope.training import Info, State, advance


def trained(options: dict[str, float], compiled: bool) -> tuple[State, Info, Snapshot]:
    state, cohort = fresh(mixed_runs(weight_decay_schedule=((5, 2.0),), warmup_steps=4, **options))
    state, info = advance(state, cohort, 12, compiled)
    state, info = advance(state, cohort, 8, compiled)
    return state, info, snapshot(state.weights, cohort, compiled)


def furthest(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max())  # NaN if any number is


def rows(read: Snapshot) -> Tensor:
    return torch.tensor([[*read.row(slot).values()] for slot in range(len(read.norm))], dtype=torch.float64)


def main() -> None:
    (eager, seen, read), (compiled, compiled_seen, compiled_read) = (
        trained(json.loads(sys.argv[1]), kind) for kind in (False, True)
    )
    assert eager.step.tolist() == compiled.step.tolist() == [20, 20, 20]
    found = {name: furthest(getattr(eager, name), getattr(compiled, name)) for name in ("weights", "first", "second")}
    found["loss"] = furthest(seen.loss, compiled_seen.loss)
    found["snapshot"] = furthest(rows(read), rows(compiled_read))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
