import os
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from own_models import SITE, Attended, pairs_of, train
from torch import nn

from grokscope import Monitor, WeightDecayController, specs
from grokscope.attach import Schedule
from grokscope.errors import InputError
from grokscope.jobs import run_all
from grokscope.runs import Store
from grokscope.specs import Architecture, Cadence, ClosedLoop, RunSpec, Training, Trigger
from grokscope.steering import controlled, decision

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


def watched(**given: Any) -> Monitor:
    return Monitor("add_mod7", SITE, **({"train": pairs_of("add_mod7")[2]} | given))


def optimizer_with(*decays: float, kind: Any = torch.optim.AdamW) -> torch.optim.Optimizer:
    return kind([{"params": [nn.Parameter(torch.ones(2))], "weight_decay": decay} for decay in decays], lr=1e-3)


def logged(step: int, fsd: float = 0.1, train_accuracy: float = 1.0, validation: float = 0.1) -> dict[str, Any]:
    row = {"step": step, "fsd": fsd, "train_accuracy": train_accuracy, "validation_accuracy": validation}
    return row | {"train_loss": 0.01, "undefined": ""}


def steps(controller: WeightDecayController, rows: list[dict[str, Any]]) -> list[float]:
    found = []
    for row in rows:
        controller.monitor.log.append(row)
        found.append(controller.step())
    return found


def test_the_fsd_trigger_raises_holds_and_restores_and_gives_the_reason() -> None:
    rows = [logged(0), logged(100, fsd=0.85), logged(200, fsd=0.5), logged(300, validation=0.96), logged(400)]
    controller = WeightDecayController(optimizer_with(1.0), watched(), Trigger(restore_after_grokking=True))
    assert steps(controller, rows) == [1.0, 3.0, 3.0, 1.0, 1.0]
    assert [(row["step"], row["was"], row["weight_decay"]) for row in controller.log] == [
        (100, 1.0, 3.0),
        (300, 3.0, 1.0),
    ]
    assert [row["why"] for row in controller.log] == [
        "fsd reached 0.8 at step 100",
        "validation accuracy reached 0.95 at step 300",
    ]


@pytest.mark.parametrize("signal", ["fsd", "train_accuracy", "step"])
def test_it_decides_as_the_stacked_engine_does(signal: Any) -> None:
    rule = Trigger(signal, restore_after_grokking=True)
    rows = [
        logged(100 * i, fsd=0.1 * i, train_accuracy=0.3 * i, validation=0.11 * i)
        | {"fsd": float("nan") if i == 8 else 0.1 * i}
        for i in range(11)
    ]
    controller = WeightDecayController(optimizer_with(1.0), watched(), rule)
    assert steps(controller, rows) == [decision(rule, 1.0, rows[: i + 1]).weight_decay for i in range(len(rows))]


def test_hold_ends_a_raised_decay_that_did_not_grok() -> None:
    rows = [logged(step, fsd=0.9) for step in (0, 100, 200, 300)]
    controller = WeightDecayController(optimizer_with(1.0), watched(), Trigger(), hold=200)
    assert steps(controller, rows) == [3.0, 3.0, 1.0, 1.0]
    assert controller.log[-1]["why"] == "held for 200 steps"


def test_a_schedule_is_followed_between_evaluations_too() -> None:
    controller = WeightDecayController(optimizer_with(1.0), watched(), Schedule(((100, 2.0), (250, 0.5))))
    assert steps(controller, [logged(0), logged(200), logged(300)]) == [1.0, 2.0, 0.5]


def test_bounds_are_kept_and_logged() -> None:
    controller = WeightDecayController(optimizer_with(1.0), watched(), lambda start, log: 50.0, bounds=(0.5, 4.0))
    assert steps(controller, [logged(0)]) == [4.0]
    assert controller.log[0]["why"] == "your rule, kept within 0.5 to 4"


def test_groups_keep_their_proportions() -> None:
    optimizer = optimizer_with(2.0, 0.0, 1.0)
    controller = WeightDecayController(optimizer, watched(), Schedule(((0, 4.0),)))
    steps(controller, [logged(0)])
    assert [group["weight_decay"] for group in optimizer.param_groups] == [4.0, 0.0, 2.0]


def test_it_goes_on_with_an_optimiser_whose_state_was_loaded_and_which_was_given_a_group() -> None:
    optimizer = optimizer_with(2.0, 0.0)
    controller = WeightDecayController(optimizer, watched(), Schedule(((0, 4.0),)))
    optimizer.load_state_dict(optimizer.state_dict())  # torch makes new groups of it
    optimizer.add_param_group({"params": [nn.Parameter(torch.ones(2))], "weight_decay": 1.0})
    assert steps(controller, [logged(0)]) == [4.0]
    assert [group["weight_decay"] for group in optimizer.param_groups] == [4.0, 0.0, 2.0]


@pytest.mark.parametrize(
    "rule", [Trigger("fsd"), Trigger("train_accuracy"), Schedule(((300, 5.0),)), specs.ClosedLoop()], ids=repr
)
def test_a_scheduler_has_weight_decay_to_itself_until_the_rule_decides(rule: Any) -> None:
    controller = WeightDecayController(optimizer_with(1.0), watched(), rule)
    for step in (0, 100):
        controller.groups[0]["weight_decay"] = 0.1 * step  # what a scheduler does
        assert steps(controller, [logged(step, train_accuracy=0.2)]) == [0.1 * step]
    assert controller.log == []
    steps(controller, [logged(300, fsd=0.9)])
    raised = controller.weight_decay
    assert raised > 1.0
    controller.groups[0]["weight_decay"] = 0.2
    assert controller.step() == 0.2, "between evaluations it changes nothing"
    steps(controller, [logged(400, fsd=0.9)])
    assert controller.weight_decay >= raised


def test_a_decay_that_cannot_be_is_rejected_before_any_group_has_it() -> None:
    optimizer = optimizer_with(1.0, 2.0)
    controller = WeightDecayController(optimizer, watched(), Schedule(((0, 1500.0),)), bounds=(0.0, 1e4))
    with pytest.raises(InputError, match="must stay below 1"):
        steps(controller, [logged(0)])
    assert [group["weight_decay"] for group in optimizer.param_groups] == [1.0, 2.0]
    assert controller.log == []


def test_an_optimiser_that_begins_without_decay_can_be_given_some() -> None:
    optimizer = optimizer_with(0.0, 0.0, kind=torch.optim.SGD)
    steps(WeightDecayController(optimizer, watched(), Schedule(((0, 0.3),))), [logged(0)])
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.3, 0.3]


def test_a_restored_controller_goes_on_as_the_first_would_have() -> None:
    rows = [logged(100 * i, fsd=0.2 * i, validation=0.15 * i) for i in range(9)]
    rule = Trigger(restore_after_grokking=True)
    whole = WeightDecayController(optimizer_with(1.0), watched(), rule)
    expected = steps(whole, rows)
    first = WeightDecayController(optimizer_with(1.0), watched(), rule)
    begun = steps(first, rows[:5])
    second = WeightDecayController(optimizer_with(7.0), watched(), rule)
    second.monitor.load_state_dict(first.monitor.state_dict())
    second.load_state_dict(first.state_dict())
    assert begun + steps(second, rows[5:]) == expected
    assert second.log == whole.log


def test_it_changes_real_training_and_the_log_shows_it() -> None:
    tokens, answers, is_train = pairs_of("add_mod7")
    torch.manual_seed(0)
    model = Attended(8, 7)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1.0)
    monitor = Monitor("add_mod7", SITE, every=10, train=is_train)
    controller = WeightDecayController(optimizer, monitor, Trigger("step", at_least=20, weight_decay=9.0))

    def after_step(step: int) -> None:
        monitor.step(step)
        controller.step()

    with monitor.attach(model):
        train(model, tokens, answers, 40, after_step, optimizer)
    assert monitor.columns()["weight_decay"] == [1.0, 1.0, 1.0, 9.0, 9.0]


def test_the_closed_loop_raises_backs_off_and_restores() -> None:
    rows = [logged(0), logged(100), logged(200) | {"train_accuracy": 0.9}, logged(300), logged(400, validation=1.0)]
    closed_loop = specs.ClosedLoop(factor=2.0)
    controller = WeightDecayController(optimizer_with(1.0), watched(), closed_loop)
    assert steps(controller, rows) == [2.0, 4.0, 2.0, 2.0, 1.0]
    assert controller.log[2]["why"] == "train accuracy or loss left its bound"


class Undecayed(torch.optim.Optimizer):
    """An optimiser that knows no weight decay."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {"lr": 0.1})


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: WeightDecayController(Undecayed([nn.Parameter(torch.ones(1))]), watched()),
            "Undecayed has no weight decay to control",
        ),
        (lambda: WeightDecayController(optimizer_with(1.0), watched(), "fsd"), "rule must be a Trigger, .* got 'fsd'"),
        (
            lambda: WeightDecayController(optimizer_with(1.0), watched(measures=["rank"])),
            "the rule reads fsd, and the monitor does not measure it",
        ),
        (
            lambda: WeightDecayController(optimizer_with(1.0), watched(train=None)),
            "the monitor lacks the training pairs",
        ),
        (
            lambda: WeightDecayController(optimizer_with(1.0), watched(train=None), specs.ClosedLoop()),
            "the monitor lacks the training pairs",
        ),
        (
            lambda: steps(WeightDecayController(optimizer_with(1.0), watched(), lambda *_: float("nan")), [logged(0)]),
            "the rule must give a weight decay, got nan at step 0",
        ),
        (lambda: WeightDecayController(optimizer_with(1.0), watched(), Trigger("random")), "needs the last step"),
        (lambda: WeightDecayController(optimizer_with(1.0), watched(), bounds=(2.0, 1.0)), "bounds must be 0 ≤ lowest"),
        (
            lambda: WeightDecayController(optimizer_with(0.0), watched(), specs.ClosedLoop(), bounds=(0.0, 0.0)),
            r"the closed loop raises λ, and bounds keep it at 0: got \(0.0, 0.0\)",
        ),
        (
            lambda: WeightDecayController(optimizer_with(0.0), watched(), specs.ClosedLoop()),
            "the closed loop multiplies λ, which begins at 0; give the optimiser a weight decay above 0",
        ),
        (lambda: WeightDecayController(optimizer_with(1.0), watched(), hold=0), "hold must be a whole number of steps"),
        (lambda: Schedule(((500, -3.0),)), r"each at least 0, got \(500, -3.0\)"),
        (
            lambda: steps(WeightDecayController(optimizer_with(1.0), watched(), lambda *_: "more"), [logged(0)]),
            "the rule must give a weight decay, or None to leave it, got 'more'",
        ),
        (
            lambda: steps(
                WeightDecayController(optimizer_with(1.0), watched(), Schedule(((0, 2000.0),)), bounds=(0.0, 5000.0)),
                [logged(0)],
            ),
            "learning_rate × weight_decay must stay below 1, got 0.001 × 2000",
        ),
        (
            lambda: WeightDecayController(optimizer_with(1.0), watched()).load_state_dict(
                WeightDecayController(optimizer_with(1.0, 2.0), watched()).state_dict()
            ),
            "the state has 2 groups with weight decay, the optimiser 1",
        ),
    ],
)
def test_bad_input_is_one_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()


def controller(rule: Any, *decays: float, **options: Any) -> WeightDecayController:
    groups = [{"params": [nn.Parameter(torch.ones(2))], "weight_decay": decay} for decay in decays or (1.0,)]
    monitor = Monitor("add_mod7", "mlp.1", every=2, train=pairs_of("add_mod7")[2])
    return WeightDecayController(torch.optim.AdamW(groups, lr=1e-3), monitor, rule, **options)


# The closed loop is one function.


def test_the_controller_does_what_the_stack_did_with_the_same_evaluations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    run_all([STACKED], Store(tmp_path), compiled=False)
    folder = next(iter(Store(tmp_path)))
    evaluations = folder.log()
    control = controller(LOOP, bounds=(0.0, 60.0))
    decays = steps(control, evaluations)
    # An evaluation of the stack has the λ before its own decision: what the controller says is in the next one.
    assert decays[:-1] == [row["weight_decay"] for row in evaluations[1:]]
    changes = folder.outcome.control["changes"]
    assert [(row["step"], row["weight_decay"]) for row in control.log] == [
        (change["step"], change["weight_decay"]) for change in changes
    ]
    assert {"raising", "backing_off"} <= {change["reason"] for change in changes}


shares = st.sampled_from([0.0, 0.5, 0.97, 0.9995, 1.0, float("nan")])
losses = st.sampled_from([0.001, 0.05, 0.2, 3.0, float("nan")])
seen = st.lists(st.tuples(shares, losses, shares), max_size=25)


@settings(max_examples=40, deadline=None)
@given(seen, st.integers(1, 3), st.sampled_from([1.5, 2.0, 4.0]), st.integers(0, 25))
def test_the_controller_decides_what_the_rule_decides_and_a_restart_changes_nothing(
    values: list[tuple[float, float, float]], patience: int, factor: float, stop: int
) -> None:
    rule = ClosedLoop(patience=patience, factor=factor)
    rows = [
        {"step": 100 * i, "train_accuracy": train, "train_loss": loss, "validation_accuracy": validation}
        for i, (train, loss, validation) in enumerate(values)
    ]
    whole = controller(rule, 1.0, 0.0)
    decays = steps(whole, rows)
    assert decays == [controlled(rule, 1.0, rows[: i + 1]).weight_decay for i in range(len(rows))]
    assert all(group["weight_decay"] == 0 for group in whole.groups[1:])

    before = controller(rule, 1.0, 0.0)
    begun = steps(before, rows[:stop])
    after = controller(rule, before.weight_decay, 0.0)  # as an optimiser's own state brings it back
    after.monitor.load_state_dict(before.monitor.state_dict())
    after.load_state_dict(before.state_dict())
    assert begun + steps(after, rows[stop:]) == decays
    assert after.log == whole.log


def test_a_loop_at_its_bound_backs_off_from_the_decay_in_force() -> None:
    calm = {"train_accuracy": 1.0, "train_loss": 0.01, "validation_accuracy": 0.1}
    rows = [{"step": 100 * i, **calm} for i in range(6)] + [{"step": 600, **calm, "train_loss": 2.0}]
    control = controller(ClosedLoop(factor=2.0, highest=16.0), bounds=(0.0, 3.0))
    assert steps(control, rows) == [2.0, 3.0, 3.0, 3.0, 3.0, 3.0, 1.5]


# Several of one monitor.


def test_two_controllers_have_a_column_each_and_each_reads_its_own() -> None:
    torch.manual_seed(0)
    model = Attended(8, 7)
    heads = list(model.head.parameters())
    bodies = [parameter for name, parameter in model.named_parameters() if not name.startswith("head")]
    body, head = torch.optim.AdamW(bodies, weight_decay=1.0), torch.optim.SGD(heads, lr=0.01, weight_decay=0.25)
    monitor = Monitor("add_mod7", SITE, every=10, train=pairs_of("add_mod7")[2])
    calm = ClosedLoop(factor=2.0, train_accuracy=0.01, train_loss=9.0, highest=8.0, restore_after_grokking=False)
    first = WeightDecayController(body, monitor, Schedule(((10, 3.0),)))
    second = WeightDecayController(head, monitor, calm)
    with monitor.attach(model, body):
        for step in (0, 10, 20):
            monitor.step(step)
            first.step()
            second.step()
    assert monitor.columns()["weight_decay"] == [1.0, 1.0, 3.0]
    assert monitor.columns()["weight_decay@2"] == [0.25, 0.5, 1.0]
    assert second.weight_decay == 2.0
    assert list(monitor.optimizers.values()) == [body, head]


def test_a_controller_that_joins_later_begins_with_its_own_decay() -> None:
    monitor, calm = watched(), ClosedLoop(factor=2.0, restore_after_grokking=False)
    monitor.log.append(logged(0) | {"weight_decay": 7.0})
    WeightDecayController(optimizer_with(7.0), monitor, Schedule(((1000, 3.0),)))
    second = WeightDecayController(optimizer_with(1.0), monitor, calm)
    assert second.step() == 2.0


def test_optimisers_are_logged_as_attached_and_one_that_is_known_is_not_logged_twice() -> None:
    first, second, plain = optimizer_with(1.0), optimizer_with(2.0, 3.0), Undecayed([nn.Parameter(torch.ones(1))])
    monitor = watched()
    WeightDecayController(second, monitor, Schedule(((1000, 3.0),)))
    model = Attended(8, 7)
    with monitor.attach(model, first, plain, second):
        row = monitor.step(0)
    assert {name: value for name, value in row.items() if name.startswith("weight_decay")} == {
        "weight_decay": 1.0,
        "weight_decay@3": 3.0,
    }
    assert "weight_decay" not in watched().evaluate(model)


# States.


def test_groups_that_a_scheduler_set_apart_are_restored_each_as_it_was() -> None:
    control = controller(Schedule(((1000, 3.0),)), 1.0, 0.5, 0.0)
    control.groups[1]["weight_decay"] = 0.1  # what a scheduler does before the rule speaks
    control.optimizer.add_param_group({"params": [nn.Parameter(torch.ones(2))], "weight_decay": 0.25})
    state = control.state_dict()
    other = controller(Schedule(((1000, 3.0),)), 9.0, 9.0, 9.0, 9.0)
    other.load_state_dict(state)
    assert [group["weight_decay"] for group in other.groups] == [1.0, 0.1, 0.0, 0.25]
    for one in (control, other):
        steps(one, [{"step": 1000}])
    assert [group["weight_decay"] for group in other.groups] == [3.0, 1.5, 0.0, 0.75]
    assert [group["weight_decay"] for group in control.groups] == [3.0, 1.5, 0.0, 0.75]


def test_a_state_of_something_else_is_rejected() -> None:
    control = controller(Schedule(((1000, 3.0),)))
    with pytest.raises(InputError, match="the state is not a controller's: it has no entry 'start'"):
        control.load_state_dict(control.monitor.state_dict())
    with pytest.raises(InputError, match="the state is not a monitor's: it has no entry 'log'"):
        control.monitor.load_state_dict({})


def test_a_rule_that_decides_nothing_leaves_weight_decay_alone() -> None:
    control = controller(lambda start, log: None if log[-1]["step"] < 100 else 2 * start)
    control.groups[0]["weight_decay"] = 0.3
    assert steps(control, [{"step": 0}, {"step": 100}]) == [0.3, 2.0]


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
