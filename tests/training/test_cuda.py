"""What only a CUDA device can show: graphs replay the same training, and memory running out is survived."""

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from grokscope.jobs import Progress, Stopped, run_all
from grokscope.measures import snapshot
from grokscope.runs import Store
from grokscope.specs import Architecture, Cadence, NormHold, RunSpec, Training
from grokscope.training import Cohort, State, advance, initial_state

pytestmark = pytest.mark.gpu
SMALL = RunSpec(
    task="add_mod23",
    architecture=Architecture(width=32, mlp_width=64),
    training=Training(steps=400, batch_size=64),
    checkpoints=Cadence(every=100),
    measurements=Cadence(every=50),
)
NEIGHBOURS = [
    SMALL.with_seed(1),
    replace(SMALL, task="S4", training=replace(SMALL.training, weight_decay=3.0)).with_seed(2),
    replace(SMALL, task="add_mod31", training=replace(SMALL.training, beta2=0.98)).with_seed(3),
]


def trained(specs: list[RunSpec], device: str, steps: int, compiled: bool | None = None, every: int = 0) -> State:
    cohort = Cohort(specs, device)
    state = initial_state(cohort)
    for start in range(0, steps, every or steps):
        advance(state, cohort, min(every or steps, steps - start), compiled)
        if every:
            snapshot(state.weights, cohort, compiled)
    return state


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"dropout": 0.1},
        {"gradient": "grokfast"},
        {"optimizer": "muon", "epsilon": 1e-3, "embedding_decay": 3.0},
        # ⊥Grad leaves gradients that are zero but for rounding, which Adam's usual ε would amplify.
        {"gradient": "orthogonal", "epsilon": 1e-3},
        {"optimizer": "adam", "embedding_decay": 3.0},
        {"gradient": "grokfast_window", "grokfast_window": 7},
        {"loss": "stablemax"},
        {"norm_hold": NormHold(("matrices",), level=8.0, start=20, over=50)},
        {"architecture": replace(SMALL.architecture, final_norm=False, temperature=2.5)},
    ],
    ids=[
        "plain", "dropout", "grokfast", "muon", "orthogonal", "coupled decay", "window", "stablemax", "matrices held",
        "no final norm, tempered",
    ],
)  # fmt: skip
def test_kernels_train_as_the_plain_loop_on_a_cpu_does(options: dict[str, Any]) -> None:
    of_run = {name: value for name, value in options.items() if name in RunSpec.__dataclass_fields__}
    of_training = {name: value for name, value in options.items() if name not in of_run}
    specs = [
        replace(spec, precision="float64", training=replace(spec.training, **of_training), **of_run)
        for spec in NEIGHBOURS
    ]
    ours, plain = trained(specs, "cuda", 200), trained(specs, "cpu", 200, False)
    assert (ours.weights.cpu() - plain.weights).abs().max() < 1e-9
    assert ours.step.tolist() == plain.step.tolist() == [200] * 3


def test_the_compiled_reference_trains_as_the_plain_loop_on_a_cpu_does() -> None:
    specs = [replace(spec, precision="float64") for spec in NEIGHBOURS]
    compiled, plain = trained(specs, "cuda", 200, True), trained(specs, "cpu", 200, False)
    assert (compiled.weights.cpu() - plain.weights).abs().max() < 1e-9


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
def test_training_twice_gives_the_same_bits_with_and_without_measuring(precision: str) -> None:
    specs = [replace(spec, precision=precision) for spec in NEIGHBOURS]
    first = trained(specs, "cuda", 250)
    again = trained(specs, "cuda", 250, every=50)
    assert torch.equal(first.weights, again.weights)
    assert torch.equal(first.second, again.second)


def test_a_failing_run_leaves_its_neighbours_bit_equal() -> None:
    healthy = trained(NEIGHBOURS, "cuda", 150)
    cohort = Cohort(NEIGHBOURS, "cuda")
    state = initial_state(cohort)
    advance(state, cohort, 50)
    state.weights[1, 0] = torch.nan
    state, info = advance(state, cohort, 100)
    assert info.failed_at == (None, 50, None)
    assert state.alive.tolist() == [True, False, True]
    for slot in (0, 2):
        assert torch.equal(state.weights[slot], healthy.weights[slot])


def final_bytes(store: Path) -> dict[str, bytes]:
    ends = ("log", "state-00000200", "state-00000400")
    return {f"{p.parent.name}/{p.name}": p.read_bytes() for p in store.glob("*/*") if p.name.startswith(ends)}


def layouts(store: Path) -> dict[str, tuple[int, int]]:
    """Slot and slots of every run."""
    found = {folder.name: folder.outcome.layout for folder in Store(store) if folder.outcome.is_finished}
    return {name: (layout["slot"], layout["slots"]) for name, layout in found.items()}


@pytest.mark.parametrize("stop_after", [7, 17], ids=["all unfinished", "one finished, whose slot stays empty"])
def test_stopped_and_continued_is_the_same_to_the_last_byte(stop_after: int, tmp_path: Path) -> None:
    short = replace(SMALL, training=replace(SMALL.training, steps=200)).with_seed(4)
    specs = [short, *NEIGHBOURS[1:]]
    run_all(specs, Store(tmp_path / "whole"), device="cuda")
    reports: list[Progress] = []
    with pytest.raises(Stopped):
        run_all(
            specs,
            Store(tmp_path / "broken"),
            device="cuda",
            report=reports.append,
            should_stop=lambda: len(reports) > stop_after,
        )
    run_all(specs, Store(tmp_path / "broken"), device="cuda")
    kept = final_bytes(tmp_path / "whole")
    assert len(kept) >= 6
    assert kept == final_bytes(tmp_path / "broken")
    assert layouts(tmp_path / "whole") == layouts(tmp_path / "broken")
    assert {slots for _, slots in layouts(tmp_path / "broken").values()} == {1, 2}  # stacks are made by size


def test_memory_running_out_halves_the_stack_and_goes_on(tmp_path: Path) -> None:
    specs = [replace(SMALL, task="add_mod97", architecture=Architecture()).with_seed(s) for s in range(64)]
    specs = [
        replace(spec, training=Training(steps=20), checkpoints=Cadence(None), measurements=Cadence(None))
        for spec in specs
    ]
    gc.collect()
    torch.cuda.empty_cache()
    total, held = torch.cuda.mem_get_info()[1], torch.cuda.memory_reserved()  # by tests before, in this process
    torch.cuda.set_per_process_memory_fraction((2.6 * 2**30 + held) / total)
    try:
        run_all(specs, Store(tmp_path), device="cuda", keep="none")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    slots = [folder.outcome.layout["slots"] for folder in Store(tmp_path) if folder.outcome.is_finished]
    assert len(slots) == 64
    assert max(slots) < 64
