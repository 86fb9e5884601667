"""On CUDA a run's weights and log are a function of its spec: equal to the last bit in every stack, slot and fork."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from plain_runs import ARCHITECTURES, NORMAL, TWO_LAYERS
from row_runs import ROW_RUNS, row_runs

from grokscope.jobs import run_all
from grokscope.measures import snapshot
from grokscope.runs import Store
from grokscope.runs.measuring import Measuring
from grokscope.specs import Architecture, Cadence, Fork, NormHold, RunSpec, Training
from grokscope.training import Cohort, advance, initial_state

pytestmark = pytest.mark.gpu
precisions = pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
OTHER_OPTIONS: list[dict[str, Any]] = [
    {"dropout": 0.1},
    {"clip_norm": 0.5, "warmup_steps": 10, "decay_parameters": "matrices"},
    {"gradient": "grokfast"},
    {"gradient": "grokfast_window", "grokfast_window": 7},
    {"gradient": "orthogonal"},
    {"optimizer": "muon", "embedding_decay": 3.0},
    {"optimizer": "adam", "weight_decay_schedule": ((30, 50.0),)},
    {"optimizer": "adam", "gradient": "grokfast", "embedding_decay": 3.0},
    {"loss": "stablemax"},
    {"loss": "stablemax", "gradient": "orthogonal"},
    {"optimizer": "muon", "muon_precision": "bfloat16"},
    {"batch_size": None},
    {"sampling": "replacement", "batch_size": 100},
]
HOLDS = [
    NormHold(level=5.0, start=10, over=20),
    NormHold(("blocks.0.mlp", "unembed", "norms"), start=20),
    NormHold(level=6.0, side="at_least"),
    NormHold(("blocks.0", "unembed"), start=10, along="random"),
    NormHold(("matrices",), level=20.0, start=10, along="random"),
    NormHold(("matrices",), level=5.0, start=10, over=20),
]
ALL = ARCHITECTURES | {
    "norms_only": replace(TWO_LAYERS, attention="norm", mlp="norm"),
    "odd_sizes": replace(TWO_LAYERS, layers=1, heads=3, width=96, mlp_width=100),
}
CONTROL = RunSpec(
    task="add_mod23",
    precision="tf32",
    architecture=Architecture(width=32, mlp_width=64),
    training=Training(steps=400, batch_size=64),
    checkpoints=Cadence(every=100),
    measurements=Cadence(every=50),
)
MEASURES = Measuring(always=("cube_restricted", "ablation", "logits"))

Row = dict[str, float]
Result = tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[str]]


def trained(specs: Sequence[RunSpec], every: int, wanted: Sequence[int]) -> list[Result]:
    """Weights, moments and logged rows of some slots of one stack."""
    cohort = Cohort(specs, "cuda")
    state, rows = initial_state(cohort), {slot: [] for slot in wanted}
    for start in range(0, specs[0].training.steps + 1, every):
        found = snapshot(state.weights, cohort)
        for slot in wanted:
            rows[slot].append(json.dumps(found.row(slot)))
        advance(state, cohort, min(every, specs[0].training.steps - start))
    buffers = (state.weights, state.first, state.second)
    return [(*(buffer[slot].cpu() for buffer in buffers), rows[slot]) for slot in wanted]


def same(ours: Result, others: Result) -> bool:
    return ours[3] == others[3] and all(torch.equal(a, b) for a, b in zip(ours[:3], others[:3], strict=True))


def in_stack(specs: Sequence[RunSpec], size: int, every: int) -> list[Result]:
    """The runs trained in stacks of one size, filled up with others, among which they are spread."""
    found = []
    for start in range(0, len(specs), size):
        own = list(specs[start : start + size])
        others = [own[0].with_seed(1000 + i) for i in range(size - len(own))]
        step = max(1, size // len(own))
        stack, wanted = list(others), []
        for i, spec in enumerate(own):
            place = min(len(stack), (i * step + 1) % size) if others else i
            stack.insert(place, spec)
        wanted = [stack.index(spec) for spec in own]
        found += trained(stack, every, wanted)
    return found


@precisions
def test_the_papers_model_in_stacks_of_1_to_512(precision: str) -> None:
    base = RunSpec(precision=precision, training=Training(steps=600))
    specs = [
        replace(base.with_seed(seed), training=replace(base.training, weight_decay=0.5 + 0.25 * seed))
        for seed in range(16)
    ]
    alone = in_stack(specs, 1, every=100)
    for size in (2, 7, 64, 512):
        equal = [same(ours, other) for ours, other in zip(alone, in_stack(specs, size, every=100), strict=True)]
        assert equal == [True] * 16, f"stack of {size}"


def small(architecture: Architecture, precision: str, **training: Any) -> list[RunSpec]:
    """Runs of different tasks whose stacks have one padded size."""
    options = {"steps": 60, "batch_size": 64, **training}
    spec = RunSpec(architecture=architecture, precision=precision, training=Training(**options), train_fraction=0.4)
    if not architecture.layer_norm:
        spec = replace(spec, initialization=NORMAL)
    tasks = ("add_mod23", "add_mod23", "mult_mod23", "S4", "add_mod23") if options["batch_size"] else ("add_mod23",) * 5
    return [replace(spec.with_seed(seed), task=task) for seed, task in enumerate(tasks)]


@pytest.mark.parametrize("architecture", ALL.values(), ids=ALL.keys())
def test_every_architecture_alone_and_among_others(architecture: Architecture) -> None:
    for precision in ("tf32", "bf16"):
        sizes = {"width": 32, "mlp_width": 72} if architecture.width == 16 else {}
        specs = small(replace(architecture, **sizes), precision)
        alone = in_stack(specs, 1, every=20)
        for size in (5, 7, 64):
            assert all(same(*pair) for pair in zip(alone, in_stack(specs, size, every=20), strict=True)), size


@pytest.mark.parametrize("name", ROW_RUNS)
def test_every_other_task_and_loss_alone_and_in_stacks_of_7_and_64(name: str) -> None:
    for precision in ("float32", "tf32", "bf16"):
        first, second, _ = row_runs(name, steps=60)
        specs = [replace(one, precision=precision).with_seed(seed) for seed, one in enumerate((first, second) * 2)]
        alone = in_stack(specs, 1, every=20)
        for size in (7, 64):
            assert all(same(*pair) for pair in zip(alone, in_stack(specs, size, every=20), strict=True)), size


@pytest.mark.parametrize("options", OTHER_OPTIONS, ids=lambda options: ", ".join(options))
def test_every_option_alone_and_among_others(options: dict[str, Any]) -> None:
    specs = small(Architecture(width=32, mlp_width=64), "tf32", **options)
    alone = in_stack(specs, 1, every=20)
    for size in (5, 7, 64):
        assert all(same(*pair) for pair in zip(alone, in_stack(specs, size, every=20), strict=True)), size


@pytest.mark.parametrize(
    "hold", HOLDS, ids=["led", "parts", "floor", "parts along directions", "raised along a direction", "matrices"]
)
def test_a_held_norm_alone_and_among_others(hold: NormHold) -> None:
    for precision in ("tf32", "bf16"):
        plain = small(Architecture(width=32, mlp_width=64), precision)
        specs = [replace(spec, norm_hold=hold) for spec in plain]
        alone = in_stack(specs, 1, every=20)
        for size in (5, 7, 64):
            assert all(same(*pair) for pair in zip(alone, in_stack(specs, size, every=20), strict=True)), size
        idle = [replace(spec, norm_hold=NormHold(level=1e-6, side="at_least")) for spec in plain]
        free = trained(plain, 20, range(5))
        assert all(same(*pair) for pair in zip(free, trained(idle, 20, range(5)), strict=True))


def contents(store: Path, spec: RunSpec) -> tuple[list[Any], bytes]:
    """A run's log rows from step 300 on, and its last state."""
    with Store(store) as opened:
        folder = opened.find(spec.content_hash)
        rows = [row for kind in ("log", "measures") for row in folder.log(kind) if row["step"] >= 300]
        (last,) = folder.path.glob("state-00000400*")
        return rows, last.read_bytes()


@precisions
def test_a_control_fork_is_its_parents_continuation(precision: str, tmp_path: Path) -> None:
    parent = replace(CONTROL, precision=precision)
    others = [replace(parent.with_seed(seed), task="S4") for seed in range(1, 6)]
    forks = [replace(parent, fork=Fork(parent=parent.content_hash, step=step)) for step in (100, 230)]
    run_all([*others, parent], Store(tmp_path / "all"), device="cuda", measuring=MEASURES)
    run_all([*forks, others[0].with_seed(9)], Store(tmp_path / "all"), device="cuda", measuring=MEASURES)
    run_all([parent], Store(tmp_path / "alone"), device="cuda", measuring=MEASURES)
    expected = contents(tmp_path / "all", parent)
    assert len(expected[0]) == 5
    assert contents(tmp_path / "alone", parent) == expected
    for fork in forks:
        assert contents(tmp_path / "all", fork) == expected


def test_a_fork_with_a_temperature_of_its_own_alone_and_among_others(tmp_path: Path) -> None:
    parents = [CONTROL.with_seed(seed) for seed in range(3)]
    hotter = replace(CONTROL.architecture, temperature=2.0)
    forks = [replace(one, architecture=hotter, fork=Fork(parent=one.content_hash, step=100)) for one in parents]
    run_all(parents, Store(tmp_path / "all"), device="cuda")
    run_all(forks, Store(tmp_path / "all"), device="cuda")
    run_all(parents[:1], Store(tmp_path / "alone"), device="cuda")
    run_all(forks[:1], Store(tmp_path / "alone"), device="cuda")
    ours = contents(tmp_path / "alone", forks[0])
    assert contents(tmp_path / "all", forks[0]) == ours
    assert ours != contents(tmp_path / "alone", parents[0])
