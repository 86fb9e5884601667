"""Closed loops and changed gradients, trained, interrupted, forked and stored by the runner."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from grokscope.errors import InputError
from grokscope.jobs import Stopped, run_all, state_at
from grokscope.runs import RunFolder, Store, run_name
from grokscope.runs.packing import pack_records, unpack_records
from grokscope.specs import Architecture, Cadence, ClosedLoop, Fork, RunSpec, Training
from grokscope.steering import controlled
from stacks import train_stack

pytestmark = pytest.mark.usefixtures("quick_disk")

STEPS = 16
# Bounds that an untrained model leaves and meets again within a few steps.
LOOP = ClosedLoop(every=2, train_accuracy=0.01, train_loss=2.05, factor=2.0, highest=30.0)
PLAIN = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=STEPS, batch_size=16, weight_decay=1.0, learning_rate=3e-3),
    checkpoints=Cadence(every=4, at=(6,)),
    measurements=Cadence(every=4),
    precision="float64",
)
CONTROLLED = replace(PLAIN, control=LOOP)
GROKFAST = replace(PLAIN, training=replace(PLAIN.training, gradient="grokfast"))


def run(store: Store, spec: RunSpec, **options: object) -> RunFolder:
    run_all([spec], store, compiled=False, **options)
    return store.find(run_name(spec))


def contents(folder: RunFolder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.path.iterdir()}


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("straight"))
    for spec in (CONTROLLED, GROKFAST, PLAIN):
        run(store, spec)
    return store


def test_a_loop_is_a_schedule_that_was_not_known_before(straight: Store, tmp_path: Path) -> None:
    folder = straight.find(run_name(CONTROLLED))
    did = folder.outcome.control
    assert len(did["changes"]) >= 2, "the bounds are met within the run"
    assert folder.outcome.trigger is None
    assert [row["step"] for row in folder.log()] == list(range(0, STEPS + 1, 2))
    schedule = tuple((change["step"], change["weight_decay"]) for change in did["changes"] if change["step"] < STEPS)
    known = replace(PLAIN, training=replace(PLAIN.training, weight_decay_schedule=schedule))
    ends = [state_at(one, STEPS, straight)["weights"] for one in (folder, run(Store(tmp_path), known))]
    assert torch.equal(*ends)
    assert not torch.equal(ends[0], state_at(straight.find(run_name(PLAIN)), STEPS, straight)["weights"])


def test_what_is_stored_is_what_the_log_says(straight: Store) -> None:
    folder = straight.find(run_name(CONTROLLED))
    again = controlled(LOOP, 1.0, folder.log())
    assert folder.outcome.control == again.to_dict()
    # An evaluation logs the λ before its own decision.
    decays = {row["step"]: row["weight_decay"] for row in folder.log()}
    for change in again.changes:
        if change.step < STEPS:
            assert decays[change.step + 2] == change.weight_decay


def test_plain_runs_say_nothing_of_loops(straight: Store) -> None:
    assert "control" not in straight.find(run_name(PLAIN)).outcome.to_dict()


def test_what_a_loop_did_survives_packing(straight: Store, tmp_path: Path) -> None:
    record = straight.find(run_name(CONTROLLED)).record()
    (tmp_path / "all.records.gz").write_bytes(pack_records([record]))
    again = unpack_records(tmp_path / "all.records.gz")[0]
    assert again.spec == CONTROLLED
    assert again.outcome.control == record.outcome.control


@pytest.mark.parametrize("spec", [CONTROLLED, GROKFAST], ids=["closed loop", "grokfast"])
@pytest.mark.parametrize("often", [1, 2, 3])
def test_resumed_equals_uninterrupted(spec: RunSpec, often: int, straight: Store, tmp_path: Path) -> None:
    store, calls, stops = Store(tmp_path), iter(range(1000)), 0
    while True:
        try:
            run_all([spec], store, compiled=False, should_stop=lambda: next(calls) % (often + 1) == often)
            break
        except Stopped:
            stops += 1
    assert stops >= 2 - (often == 3)
    assert contents(store.find(run_name(spec))) == contents(straight.find(run_name(spec)))


@pytest.mark.parametrize("spec", [CONTROLLED, GROKFAST], ids=["closed loop", "grokfast"])
def test_a_state_between_checkpoints_is_trained_again(spec: RunSpec, straight: Store, tmp_path: Path) -> None:
    often = replace(spec, checkpoints=Cadence(every=1))
    stored = state_at(run(Store(tmp_path), often, keep="state"), 11, Store(tmp_path), compiled=False)
    again = state_at(straight.find(run_name(spec)), 11, straight, compiled=False)
    assert torch.equal(again["weights"], stored["weights"])
    assert float(again["weight_decay"]) == float(stored["weight_decay"])


def test_weights_alone_are_kept_without_the_average(straight: Store) -> None:
    folder = straight.find(run_name(GROKFAST))
    assert not any(name.startswith(("slow.", "first.")) for name in folder.weights_at(8))
    assert "slow.embed.W_E" in folder.latest_state()[1]


def fork(parent: RunSpec, gradient: str, moments: str = "kept") -> RunSpec:
    changed = replace(parent.training, gradient=gradient)
    return replace(parent, fork=Fork(parent.content_hash, 6, moments), training=changed)


def test_an_unchanged_fork_of_a_grokfast_run_is_its_parent(straight: Store) -> None:
    child = run(straight, fork(GROKFAST, "grokfast"))
    parent = straight.find(run_name(GROKFAST))
    for name, value in state_at(child, STEPS, straight).items():
        assert torch.equal(value, state_at(parent, STEPS, straight)[name]), name


def test_a_fork_may_take_up_grokfast_or_leave_it(straight: Store) -> None:
    left = state_at(run(straight, fork(GROKFAST, "plain")), STEPS, straight)
    taken = state_at(run(straight, fork(PLAIN, "grokfast")), STEPS, straight)
    anew = state_at(run(straight, fork(GROKFAST, "grokfast", "reset")), STEPS, straight)
    parent = state_at(straight.find(run_name(GROKFAST)), STEPS, straight)
    assert not left.get("slow", torch.zeros(0)).numel()
    assert taken["slow"].abs().max() > 0
    assert not torch.equal(anew["slow"], parent["slow"])


def test_an_average_cannot_be_followed_by_another_gradient(straight: Store) -> None:
    matched = replace(fork(GROKFAST, "plain"), fork=Fork(GROKFAST.content_hash, 6, norm="matched"))
    with pytest.raises(InputError, match="must agree on the batch size, and on the kind of gradient"):
        run_all([matched], straight, compiled=False)


def test_loops_decide_for_their_own_run_in_a_stack(straight: Store, tmp_path: Path) -> None:
    store = Store(tmp_path)
    wild = replace(CONTROLLED, control=replace(LOOP, factor=3.0, patience=2)).with_seed(5)
    specs = [CONTROLLED, PLAIN.with_seed(3), wild]
    train_stack(store, specs)
    for spec in specs:
        stacked, alone = store.find(run_name(spec)), run(straight, spec)
        assert stacked.outcome.control == alone.outcome.control
        ends = [state_at(one, STEPS, where)["weights"] for one, where in ((stacked, store), (alone, straight))]
        assert torch.allclose(*ends, rtol=1e-9, atol=1e-12)
