"""Steering is the optimisers it is made of until it decides; what it decides follows from its log; it resumes."""

import copy
import io
import re
import warnings
from dataclasses import replace
from typing import Any

import jaxtyping._decorator
import pytest
import torch
from own_models import attended, pairs_of
from torch import Tensor, nn

from grokscope import InputError, Steering
from grokscope.attach import group_parameters
from grokscope.model import reference_module, sizes_of
from grokscope.specs import Architecture, Release, RunSpec, Training
from grokscope.steering import FAST, Grokfast, Muon, released
from grokscope.tasks import split
from grokscope.training import Cohort, advance, initial_state

AT_ONCE = FAST.release  # strong from the first step
SOON = Release(at=("norm_target",), every=4, norm_target=9.0)


def mlp(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 2))


def data() -> tuple[Tensor, Tensor]:
    inputs = torch.randn(64, 10, generator=torch.Generator().manual_seed(1))
    return inputs, (inputs[:, 0] * inputs[:, 1] > 0).long()


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int, observe: bool = True) -> list[float]:
    inputs, labels = data()
    losses = []
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        if observe:
            optimizer.observe(loss)
        optimizer.step()
        losses.append(loss.item())
    return losses


def weights(model: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@pytest.mark.parametrize("own", [True, False])
def test_until_it_decides_it_is_muon_and_adamw_with_decay_of_one_thousandth_lambda_a_step(own: bool) -> None:
    if not own and not hasattr(torch.optim, "Muon"):
        pytest.skip("torch.optim.Muon came with torch 2.9")
    steered, plain = mlp(), mlp()
    train(steered, Steering(steered, weight_decay=3.0, release=AT_ONCE, own_muon=own), 8)
    groups = group_parameters(plain)
    muon = (Muon if own else torch.optim.Muon)([*groups["matrix"].values()], lr=0.02, weight_decay=3e-3 / 0.02)
    rest = [parameter for group in ("embedding", "head", "vector") for parameter in groups[group].values()]
    adamw = torch.optim.AdamW(rest, lr=1e-3, weight_decay=3.0)
    inputs, labels = data()
    for _ in range(8):
        plain.zero_grad()
        nn.functional.cross_entropy(plain(inputs), labels).backward()
        muon.step()
        adamw.step()
    assert (weights(steered) - weights(plain)).abs().max() < 1e-6


def test_it_is_the_engines_recipe() -> None:
    """Whole batches of an engine's run, by its reference module and the three lines: one trajectory, one release."""
    small = Architecture(layers=1, width=16, heads=2, mlp_width=32)
    release = Release(at=("norm_target",), every=4, norm_target=14.0)
    training = Training(steps=40, batch_size=None, weight_decay=20.0, optimizer="muon", epsilon=1e-3)
    run = RunSpec("add_mod7", 0.7, architecture=small, training=training, release=release, precision="float64")
    cohort = Cohort([run])
    state, log = initial_state(cohort), []
    task = cohort.tasks[0]
    model = reference_module(small, sizes_of(task), cohort.layout.views(state.weights.clone()))
    optimizer = Steering(model, recipe=replace(FAST, weight_decay=20.0), release=release, own_muon=True)
    for group in optimizer.param_groups:
        if "eps" in group:
            group["eps"] = 1e-3
    rows = torch.tensor(split(task, 0.7, 0).train.copy())
    tokens, answers = torch.tensor(task.tokens)[rows], torch.tensor(task.answers)[rows]
    for step in range(40):
        if step and step % 4 == 0:
            log.append({"step": step, "norm": float(state.weights.norm())})
            state.weight_decay[0] = released(release, 20.0, log).weight_decay
        advance(state, cohort, 1, compiled=False)
        loss = nn.functional.cross_entropy(model(tokens), answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.observe(loss)
        optimizer.step()
    assert optimizer.is_released
    assert 4 < optimizer.decisions[0]["step"] < 40
    after = reference_module(small, sizes_of(task), cohort.layout.views(state.weights))
    assert (weights(model) - weights(after)).abs().max() < 1e-9


def test_around_another_optimizer_only_its_decay_changes_and_spared_groups_stay_spared() -> None:
    def made(model: nn.Module) -> torch.optim.Optimizer:
        matrices = [p for p in model.parameters() if p.ndim == 2]
        vectors = [p for p in model.parameters() if p.ndim == 1]
        groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
        return torch.optim.Adam(groups, lr=0.01, decoupled_weight_decay=True)

    steered, plain = mlp(), mlp()
    steering = Steering(steered, made(steered), weight_decay=4.0, release=SOON)
    assert [group["weight_decay"] for group in steering.param_groups] == [0.4, 0.0]
    inner = made(plain)
    inner.param_groups[0]["weight_decay"] = 0.4
    train(steered, steering, 3)
    train(plain, inner, 3, observe=False)
    assert torch.equal(weights(steered), weights(plain))
    steering.decide()
    norm = float(weights(steered).norm())
    assert steering.log[-1]["norm"] == pytest.approx(norm, rel=1e-6)


OPTIMIZERS = {
    "AdamW": lambda own: torch.optim.AdamW(own, lr=0.01),
    "Adam": lambda own: torch.optim.Adam(own, lr=0.01),
    "decoupled Adam": lambda own: torch.optim.Adam(own, lr=0.01, decoupled_weight_decay=True),
    "RMSprop": lambda own: torch.optim.RMSprop(own, lr=0.01, momentum=0.9),
    "SGD": lambda own: torch.optim.SGD(own, lr=0.1),
    "SGD with momentum": lambda own: torch.optim.SGD(own, lr=0.1, momentum=0.9),
    "Grokfast around Adam": lambda own: Grokfast(torch.optim.Adam(own, lr=0.01)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_step_decays_by_one_thousandth_lambda_whatever_the_optimizer(name: str) -> None:
    model = mlp()
    before = weights(model)
    steering = Steering(model, OPTIMIZERS[name](model.parameters()), weight_decay=5.0, release=AT_ONCE)
    decay = [group["weight_decay"] for group in steering.param_groups]
    for _ in range(10):
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        steering.observe(0.1)
        steering.step()
    assert torch.allclose(weights(model), before * 0.995**10, rtol=1e-5, atol=0)
    assert [group["weight_decay"] for group in steering.param_groups] == decay


def test_around_adam_it_is_adamw() -> None:
    coupled, decoupled = mlp(), mlp()
    train(coupled, Steering(coupled, torch.optim.Adam(coupled.parameters(), lr=0.01)), 20)
    train(decoupled, Steering(decoupled, torch.optim.AdamW(decoupled.parameters(), lr=0.01)), 20)
    assert (weights(coupled) - weights(decoupled)).abs().max() < 1e-6


def test_what_it_decided_follows_from_its_log_alone() -> None:
    model = mlp()
    steering = Steering(model, weight_decay=20.0, release=replace(SOON, norm_target=5.6))
    train(model, steering, 60)
    assert [row["step"] for row in steering.log] == list(range(4, 61, 4))
    found = released(steering.release, 20.0, steering.log)
    assert [(one["step"], one["weight_decay"]) for one in steering.decisions] == [
        (change.step, change.weight_decay) for change in found.changes
    ]
    assert steering.is_released
    assert steering.weight_decay == 1.0
    assert steering.decisions[0]["why"] == "the norm is down to its target"
    assert steering.param_groups[0]["weight_decay"] == pytest.approx(1e-3 / 0.02)


@pytest.mark.parametrize("stop", [2, 8, 13, 30])
def test_resumed_equals_uninterrupted(stop: int) -> None:
    def made(model: nn.Module) -> Steering:
        return Steering(model, release=replace(SOON, norm_target=5.6), weight_decay=20.0)

    straight = mlp()
    whole = made(straight)
    train(straight, whole, 40)
    first = mlp()
    begun = made(first)
    train(first, begun, stop)
    stored = io.BytesIO()
    torch.save({"model": first.state_dict(), "steering": begun.state_dict()}, stored)
    stored.seek(0)
    read = torch.load(stored, weights_only=True)
    second = mlp(seed=9)
    second.load_state_dict(read["model"])
    resumed = made(second)
    resumed.load_state_dict(read["steering"])
    assert resumed.weight_decay == begun.weight_decay
    train(second, resumed, 40 - stop)
    assert torch.equal(weights(second), weights(straight))
    assert resumed.decisions == whole.decisions
    assert whole.is_released
    assert [row["step"] for row in resumed.log] == [row["step"] for row in whole.log]


def test_it_lets_go_at_generalisation_and_not_before() -> None:
    model = mlp()
    seen = iter([0.2, 0.94, 0.96, 0.1, 0.1])
    steering = Steering(model, validation=lambda: next(seen), release=replace(FAST.release, every=2))
    train(model, steering, 10)
    assert [(one["step"], one["weight_decay"]) for one in steering.decisions] == [(6, 1.0)]


def test_it_warns_and_lets_go_when_what_is_memorised_breaks() -> None:
    model = mlp()
    steering = Steering(model, release=Release(at=("generalization", "loss_rises", "accuracy_breaks"), every=1))
    for loss in (2.0, 0.05, 0.2):
        steering.observe(loss)
        steering.step()
    assert not steering.is_released
    steering.observe(0.4)
    with pytest.warns(UserWarning, match=r"step 4: what is memorised breaks: train loss rises; weight decay is let go"):
        steering.step()
    assert steering.weight_decay == 1.0


def test_with_validation_the_norm_does_not_decide() -> None:
    for known in (False, True):
        model = mlp()
        steering = Steering(model)
        assert "norm_slows" in steering.release.at
        fall = [640, 320, 160, 80, 40, 38, 37, 36.9, 36.8, 36.7, 36.7, 36.7]
        for i, norm in enumerate(fall):
            steering.log.append({"step": 50 * i, "norm": norm, "train_accuracy": 1.0})
        if known:
            steering.log[-1]["validation_accuracy"] = 0.2
        steering._follow()
        assert steering.is_released != known


def test_a_closures_loss_is_observed_and_schedulers_act_on_the_groups() -> None:
    model, (inputs, labels) = mlp(), data()
    steering = Steering(model, release=replace(FAST.release, every=1))
    scheduler = torch.optim.lr_scheduler.StepLR(steering, 1, gamma=0.5)

    def closure() -> Tensor:
        steering.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        return loss

    first = steering.step(closure)
    assert steering.log[0]["train_loss"] == pytest.approx(first.item())
    decay = [group["weight_decay"] for group in steering.param_groups]
    scheduler.step()
    assert [group["lr"] for group in steering.optimizers[0].param_groups] == [0.01]
    assert [group["weight_decay"] for group in steering.param_groups] == decay
    assert "Steering of Muon and AdamW" in repr(steering)


def test_the_mean_loss_since_the_last_decision_counts() -> None:
    steering = Steering(mlp(), release=replace(FAST.release, every=2))
    for loss in (1.0, 3.0, 0.5, 0.5):
        steering.observe(torch.tensor(loss))
        steering.step()
    assert [row["train_loss"] for row in steering.log] == [2.0, 0.5]


def test_steering_that_sees_nothing_says_so() -> None:
    steering = Steering(mlp(), release=replace(FAST.release, every=1))
    with pytest.warns(UserWarning, match=r"seen the norm alone: call observe\(loss\) before step"):
        steering.step()


def test_a_loss_that_is_no_number_is_named_once_at_the_callers_line_and_decides_nothing() -> None:
    steering = Steering(mlp(), release=Release(at=("loss_rises",), every=1))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for loss in (0.05, float("nan"), float("nan")):
            steering.observe(loss)
            steering.step()
    (only,) = found
    assert str(only.message) == "step 2: train_loss is nan, from which steering can decide nothing"
    assert only.filename in (__file__, jaxtyping._decorator.__file__)  # around every method while testing
    assert not steering.is_released


@pytest.mark.parametrize("steps", [[10, 20, 30, 40], [7, 14, 21, 28, 35]])
def test_steps_of_ones_own_may_pass_over_the_multiples_of_every(steps: list[int]) -> None:
    steering = Steering(mlp(), release=replace(FAST.release, every=15))
    for step in steps:
        steering.observe(1.0, step=step)
        steering.step()
    assert len(steering.log) == (steps[-1] + 1) // 15


def test_a_schedule_that_was_made_before_does_not_make_decay_stronger_than_was_asked_for() -> None:
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 10))  # begins with lr 0
    assert Steering(model, optimizer, release=AT_ONCE).param_groups[0]["weight_decay"] == pytest.approx(5e-3 / 0.01)
    other = torch.optim.AdamW(model.parameters(), lr=0.01)
    torch.optim.lr_scheduler.OneCycleLR(other, max_lr=0.02, total_steps=100)
    assert Steering(model, other, release=AT_ONCE).param_groups[0]["weight_decay"] == pytest.approx(5e-3 / 0.02)


def test_a_model_that_leaves_nothing_to_muon_is_named() -> None:
    shallow = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
    with pytest.warns(UserWarning, match=r"no matrix between what reads the inputs and the head, so that Muon moves"):
        Steering(shallow)
    Steering(shallow, torch.optim.AdamW(shallow.parameters()))


def test_decay_that_is_weaker_than_the_optimizers_own_is_named() -> None:
    model = mlp()
    with pytest.warns(UserWarning, match=r"decays by λ = 10 .*by less, at most λ = 5; .*weight_decay=10\)"):
        Steering(model, torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=1.0))
    own = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=1.0)
    steering = Steering(model, own, weight_decay=10.0, release=AT_ONCE)
    assert steering.param_groups[0]["weight_decay"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("seen", "warns"),
    [
        ({"loss": 1.0}, "step 2000: the training set is not learnt .train loss 1.; .* λ = 5 is too strong"),
        ({"train_accuracy": 0.75}, "step 2000: the training set is not learnt .train accuracy 0.75.; "),
        ({"loss": 0.05}, ""),
        ({"loss": 0.2, "train_accuracy": 1.0}, ""),
        ({"validation_accuracy": 0.1}, ""),
    ],
)
def test_a_training_set_that_is_not_learnt_is_named_once(seen: dict[str, float], warns: str) -> None:
    steering = Steering(mlp(), release=replace(AT_ONCE, patience=0))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for step in range(500, 5000, 500):
            steering.observe(**seen, step=step)
            steering.decide()
    assert len(found) == bool(warns)
    assert not warns or re.match(warns, str(found[0].message))


def test_decay_that_only_hinders_is_eased_with_a_reason_and_goes_on_from_a_checkpoint() -> None:
    """What is not learnt is said in a warning; what is learnt and does not generalise is decided without one."""
    steering = Steering(mlp(), release=AT_ONCE)
    for step in range(500, 2000, 500):
        steering.observe(3.0, step=step)
        if step == 1500:
            sentence = r"step 1500: the training set is not learnt and gets no better; .* eased from λ = 5 to 2.5"
            with pytest.warns(UserWarning, match=sentence):
                steering.decide()
        else:
            steering.decide()
    resumed = Steering(mlp(), release=AT_ONCE)
    resumed.load_state_dict(copy.deepcopy(steering.state_dict()))
    for one in (steering, resumed):
        assert (one.weight_decay, one.is_released) == (2.5, False)
        assert one.param_groups[0]["weight_decay"] == pytest.approx(2.5e-3 / one.param_groups[0]["lr"])
        for step, accuracy in ((2000, 0.1), (2500, 0.1), (3000, 0.1), (3500, 0.97)):
            one.observe(0.01, validation_accuracy=accuracy, step=step)
            one.decide()
        assert [(row["step"], row["weight_decay"], row["is_final"]) for row in one.decisions] == [
            (1500, 2.5, False),
            (3000, 1.25, False),
            (3500, 1.0, True),
        ]
        assert one.decisions[1]["why"] == "what is held out is not learnt and gets no better"


def test_what_was_let_go_is_not_called_too_strong() -> None:
    steering = Steering(mlp())
    steering.observe(0.2, validation_accuracy=0.99, step=1000)
    steering.decide()
    steering.observe(0.2, validation_accuracy=0.99, step=2000)
    steering.decide()  # a warning would be an error
    assert steering.is_released


def test_parameters_are_found_by_kind_in_other_peoples_models() -> None:
    found = {group: set(own) for group, own in group_parameters(attended()).items()}
    assert found["embedding"] == {"embed.weight"}
    assert found["head"] == {"head.weight"}
    attention = {"attention.in_proj_weight", "attention.out_proj.weight"}
    assert found["matrix"] == {*attention, "mlp.0.weight", "mlp.3.weight"}
    assert sum(map(len, found.values())) == len([*attended().parameters()])


class Tied(nn.Module):
    """A head that is the embedding, as in GPT-2."""

    def __init__(self) -> None:
        super().__init__()
        self.wte, self.inner, self.lm_head = nn.Embedding(5, 4), nn.Linear(4, 4), nn.Linear(4, 5, bias=False)
        self.lm_head.weight = self.wte.weight
        self.frozen = nn.Parameter(torch.zeros(3, 3), requires_grad=False)
        self.W_Q = nn.Parameter(torch.zeros(2, 2, 4))

    def get_output_embeddings(self) -> nn.Module:
        return self.lm_head


def test_a_tied_head_is_an_embedding_and_what_is_frozen_is_left_out() -> None:
    found = {group: set(own) for group, own in group_parameters(Tied()).items()}
    assert found == {
        "matrix": {"inner.weight", "W_Q"}, "embedding": {"wte.weight"}, "head": set(), "vector": {"inner.bias"}
    }  # fmt: skip


@pytest.mark.parametrize("own", [True, False])
def test_a_stack_of_matrices_is_moved_as_each_of_them_alone(own: bool) -> None:
    class Heads(nn.Module):
        def __init__(self, weights: list[Tensor], head: Tensor) -> None:
            super().__init__()
            self.each = nn.ParameterList([nn.Parameter(one.clone()) for one in weights])
            self.embed, self.lm_head = nn.Parameter(head.clone()), nn.Parameter(head.clone())

    draws = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(0))
    gradients = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(1))
    apart, joined = Heads([*draws], torch.zeros(2, 2)), Heads([draws], torch.zeros(2, 2))
    for model in (apart, joined):
        steering = Steering(model, own_muon=own)
        for parameter, gradient in zip(model.each, gradients if model is apart else [gradients], strict=True):
            parameter.grad = gradient.clone()
        steering.observe(1.0)
        steering.step()
    difference = torch.stack([*apart.each]) - joined.each[0]
    assert difference.norm() < (1e-5 if own else 2e-2) * (draws - joined.each[0]).norm()


def test_a_copy_goes_its_own_way() -> None:
    model = mlp()
    steering = Steering(model)
    train(model, steering, 2)
    state = copy.deepcopy(steering.state_dict())
    train(model, steering, 2)
    assert state["steps"] == 2


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Steering(data()), "model must be a torch.nn.Module, got tuple"),
        (lambda: Steering(nn.ReLU()), "ReLU has no parameter to train"),
        (lambda: Steering(mlp(), weight_decay=-1.0), "weight_decay must be at least 0 and below 1,000, got -1.0"),
        (lambda: Steering(mlp(), weight_decay=1000.0), "weight_decay must be at least 0 and below 1,000, got 1000.0"),
        (lambda: Steering(mlp(), weight_decay="strong"), "weight_decay must be a number, or a tensor with one, got 's"),
        (lambda: Steering(mlp(), recipe="fast"), r"recipe must be a Recipe, such as grokscope.steering.FAST, got 'f"),
        (lambda: Steering(mlp(), release=50), r"release must be a grokscope.specs.Release, got 50"),
        (lambda: Steering(mlp(), 0.001), "optimizer must be a torch.optim.Optimizer, got float"),
        (lambda: Steering(m := mlp(), Steering(m)), "the optimiser is steered already"),
        (lambda: Steering(mlp(), torch.optim.AdamW(mlp().parameters())), "the optimiser moves no parameter of Sequent"),
        (lambda: Steering(mlp(), validation=0.3), "validation must be a function without arguments"),
        (lambda: Steering(m := mlp(), torch.optim.Rprop(m.parameters())), "Rprop has no weight decay to steer"),
        (
            lambda: Steering(m := mlp(), torch.optim.SGD(m.parameters(), lr=0.0)),
            "lr must be positive where steering begins, for it divides λ, got 0.0",
        ),
        (lambda: Steering(mlp()).observe(validation_accuracy=97.0), r"from 0 to 1 \(divide percent by 100\), got 97.0"),
        (lambda: Steering(mlp()).observe(train_accuracy=-0.1), "train_accuracy must be a share, from 0 to 1, got -0.1"),
        (lambda: Steering(mlp()).observe(torch.ones(3)), "loss must be a number, or a tensor with one, got tensor"),
        (lambda: Steering(mlp()).observe(0.1, step="x"), "a step must be a whole number, at least 0, got 'x'"),
        (lambda: Steering(mlp(), validation=lambda: None).decide(), "validation must give an accuracy, got None"),
        (lambda: Steering(mlp()).observe("x"), "loss must be a number, or a tensor with one, got 'x'"),
        (
            lambda: Steering(mlp()).observe(train_accuracy=torch.ones(2)),
            "train_accuracy must be a number, or a tensor with one, got",
        ),
        (lambda: Steering(mlp()).load_state_dict({}), "is not one of Steering: it has no entry 'optimizers'"),
        (
            lambda: Steering(m := mlp(), torch.optim.AdamW(m.parameters())).load_state_dict(
                Steering(mlp()).state_dict()
            ),
            "the state has 2 optimisers, this steering has 1",
        ),
        (lambda: Steering(mlp()).add_param_group({"params": []}), "parameters cannot be added while steering"),
        (
            lambda: Muon([nn.Parameter(torch.zeros(3))]),
            r"Muon moves matrices and stacks of them; got a .* '?\[3\]",
        ),
    ],
)
def test_what_makes_no_sense_is_rejected(make: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()


def test_pairs_of_a_task_are_learnt_in_three_lines() -> None:
    tokens, answers, _ = pairs_of("add_mod7")
    model = attended()
    steering = Steering(model)
    for _ in range(60):
        loss = nn.functional.cross_entropy(model(tokens), answers)
        steering.zero_grad()
        loss.backward()
        steering.observe(loss)
        steering.step()
    assert loss < 1.5  # chance is ln 7 = 1.95
    assert len(steering.log) == 1
