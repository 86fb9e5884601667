"""One closed loop for stack and controller, and training that goes on as if it had not stopped."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))

from own_models import Attended, pairs_of

from grokscope import InputError, Monitor, WeightDecayController
from grokscope.attach import Schedule
from grokscope.jobs import run_all
from grokscope.runs import Store
from grokscope.specs import Architecture, Cadence, ClosedLoop, RunSpec, Training, Trigger
from grokscope.steering import controlled

LOOP = ClosedLoop(every=2, train_accuracy=0.01, train_loss=1.94, factor=4.0, highest=60.0, restore_after_grokking=False)
STACKED = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=24, batch_size=16, weight_decay=1.0, learning_rate=1e-2),
    checkpoints=Cadence(every=24),
    measurements=Cadence(every=2),
    control=LOOP,
)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def controller(rule: Any, *decays: float, **options: Any) -> WeightDecayController:
    groups = [{"params": [nn.Parameter(torch.ones(2))], "weight_decay": decay} for decay in decays or (1.0,)]
    monitor = Monitor("add_mod7", "mlp.1", every=2, train=pairs_of("add_mod7")[2])
    return WeightDecayController(torch.optim.AdamW(groups, lr=1e-3), monitor, rule, **options)


def followed(control: WeightDecayController, rows: list[dict[str, Any]]) -> list[float]:
    found = []
    for row in rows:
        control.monitor.log.append(row)
        found.append(control.step())
    return found


# The closed loop is one function.


def test_the_controller_does_what_the_stack_did_with_the_same_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    run_all([STACKED], Store(tmp_path), compiled=False)
    folder = next(iter(Store(tmp_path)))
    looks = folder.log()
    control = controller(LOOP, bounds=(0.0, 60.0))
    decays = followed(control, looks)
    # A look of the stack has the λ before its own decision: what the controller says is in the next one.
    assert decays[:-1] == [look["weight_decay"] for look in looks[1:]]
    changes = folder.outcome["control"]["changes"]
    assert [(row["step"], row["weight_decay"]) for row in control.log] == [
        (change["step"], change["weight_decay"]) for change in changes
    ]
    assert {"raising", "backing_off"} <= {change["reason"] for change in changes}


shares = st.sampled_from([0.0, 0.5, 0.97, 0.9995, 1.0, float("nan")])
losses = st.sampled_from([0.001, 0.05, 0.2, 3.0, float("nan")])
seen = st.lists(st.tuples(shares, losses, shares), max_size=25)


@settings(max_examples=40, deadline=None)
@given(seen, st.integers(1, 3), st.sampled_from([1.5, 2.0, 4.0]), st.integers(0, 25))
def test_the_controller_says_what_the_rule_says_and_a_restart_changes_nothing(
    values: list[tuple[float, float, float]], patience: int, factor: float, stop: int
) -> None:
    rule = ClosedLoop(patience=patience, factor=factor)
    rows = [
        {"step": 100 * i, "train_accuracy": train, "train_loss": loss, "validation_accuracy": validation}
        for i, (train, loss, validation) in enumerate(values)
    ]
    whole = controller(rule, 1.0, 0.0)
    decays = followed(whole, rows)
    assert decays == [controlled(rule, 1.0, rows[: i + 1]).weight_decay for i in range(len(rows))]
    assert all(group["weight_decay"] == 0 for group in whole.groups[1:])

    before = controller(rule, 1.0, 0.0)
    begun = followed(before, rows[:stop])
    after = controller(rule, before.weight_decay, 0.0)  # as an optimiser's own state brings it back
    after.monitor.load_state_dict(before.monitor.state_dict())
    after.load_state_dict(before.state_dict())
    assert begun + followed(after, rows[stop:]) == decays
    assert after.log == whole.log


def test_a_loop_at_its_bound_backs_off_from_the_decay_in_force() -> None:
    calm = {"train_accuracy": 1.0, "train_loss": 0.01, "validation_accuracy": 0.1}
    rows = [{"step": 100 * i, **calm} for i in range(6)] + [{"step": 600, **calm, "train_loss": 2.0}]
    control = controller(ClosedLoop(factor=2.0, highest=16.0), bounds=(0.0, 3.0))
    assert followed(control, rows) == [2.0, 3.0, 3.0, 3.0, 3.0, 3.0, 1.5]


# States.


def test_groups_that_a_scheduler_set_apart_are_put_back_each_as_it_was() -> None:
    control = controller(Schedule(((1000, 3.0),)), 1.0, 0.5, 0.0)
    control.groups[1]["weight_decay"] = 0.1  # what a scheduler does before the rule speaks
    control.optimizer.add_param_group({"params": [nn.Parameter(torch.ones(2))], "weight_decay": 0.25})
    state = control.state_dict()
    other = controller(Schedule(((1000, 3.0),)), 9.0, 9.0, 9.0, 9.0)
    other.load_state_dict(state)
    assert [group["weight_decay"] for group in other.groups] == [1.0, 0.1, 0.0, 0.25]
    for one in (control, other):
        followed(one, [{"step": 1000}])
    assert [group["weight_decay"] for group in other.groups] == [3.0, 1.5, 0.0, 0.75]
    assert [group["weight_decay"] for group in control.groups] == [3.0, 1.5, 0.0, 0.75]


def test_a_state_of_something_else_is_refused() -> None:
    control = controller(Schedule(((1000, 3.0),)))
    with pytest.raises(InputError, match="the state is not a controller's: it has no entry 'start'"):
        control.load_state_dict(control.monitor.state_dict())
    with pytest.raises(InputError, match="the state is not a monitor's: it has no entry 'log'"):
        control.monitor.load_state_dict({})


def test_a_rule_that_says_nothing_leaves_weight_decay_alone() -> None:
    control = controller(lambda start, looks: None if looks[-1]["step"] < 100 else 2 * start)
    control.groups[0]["weight_decay"] = 0.3
    assert followed(control, [{"step": 0}, {"step": 100}]) == [0.3, 2.0]


def test_training_stopped_while_a_raised_decay_is_held_goes_on_bit_for_bit(tmp_path: Path) -> None:
    tokens, answers, is_train = pairs_of("add_mod7")

    def begun() -> tuple[Any, Any, Monitor, WeightDecayController]:
        torch.manual_seed(0)
        model = Attended(8, 7)
        weights = [p for p in model.parameters() if p.ndim > 1]
        others = [p for p in model.parameters() if p.ndim <= 1]
        groups = [{"params": weights, "weight_decay": 1.0}, {"params": others, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=1e-3)
        monitor = Monitor("add_mod7", "mlp.1", every=4, train=is_train)
        rule = Trigger("step", at_least=8, weight_decay=5.0)
        return model, optimizer, monitor, WeightDecayController(optimizer, monitor, rule, hold=12)

    def run(parts: Any, steps: range) -> None:
        model, optimizer, monitor, control = parts
        with monitor.attach(model):
            for step in steps:
                monitor.step(step)
                control.step()
                batch = torch.randint(len(tokens), (16,))
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(tokens[batch]), answers[batch]).backward()
                optimizer.step()

    whole = begun()
    run(whole, range(30))
    first = begun()
    run(first, range(14))
    states = {"parts": [part.state_dict() for part in first], "rng": torch.get_rng_state()}
    torch.save(states, tmp_path / "all.pt")
    loaded = torch.load(tmp_path / "all.pt", weights_only=True)  # plain values, which need no trust
    second = begun()
    for part, state in zip(second, loaded["parts"], strict=True):
        part.load_state_dict(state)
    assert [group["weight_decay"] for group in second[1].param_groups] == [5.0, 0.0]
    torch.set_rng_state(loaded["rng"])
    run(second, range(14, 30))
    assert all(torch.equal(value, second[0].state_dict()[name]) for name, value in whole[0].state_dict().items())
    assert second[2].log == whole[2].log
    assert second[3].log == whole[3].log
    assert [(row["step"], row["weight_decay"]) for row in whole[3].log] == [(8, 5.0), (20, 1.0)]
