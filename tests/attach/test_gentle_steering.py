"""Steering that waits with strong decay until the training set is learnt: in a loop, and from a checkpoint."""

import io
from dataclasses import replace

import pytest
import torch
from torch import nn

from grokscope import Steering
from grokscope.steering import FAST, released

RELEASE = replace(FAST.without_muon, every=5, patience=50)


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))


def follow(steering: Steering, losses: list[float], accuracies: list[float]) -> list[float]:
    """λ after each decision, of which one is made every five steps."""
    found = []
    for loss, accuracy in zip(losses, accuracies, strict=True):
        steering.observe(loss, validation_accuracy=accuracy, step=steering.steps + 4)
        steering.step()
        found.append(steering.weight_decay)
    return found


def test_it_begins_gently_becomes_strong_when_the_training_set_is_learnt_and_lets_go() -> None:
    steering = Steering(mlp(), release=RELEASE)
    assert steering.weight_decay == 1.0
    assert steering.param_groups[0]["weight_decay"] == pytest.approx(1e-3 / 0.02)
    assert follow(steering, [1.0, 0.2, 0.1, 0.1, 0.1], [0.1, 0.1, 0.2, 0.3, 0.97]) == [1, 1, 5, 5, 1]
    assert [(one["step"], one["was"], one["weight_decay"], one["why"]) for one in steering.decisions] == [
        (15, 1.0, 5.0, "the training set is learnt: strong decay begins"),
        (25, 5.0, 1.0, "validation accuracy says that it has generalised"),
    ]
    assert [row["weight_decay"] for row in steering.log] == [1, 1, 1, 5, 5], "what was in force before each decision"
    assert steering.is_released
    found = released(steering.release, steering.strong, steering.log)
    assert [change.step for change in found.changes] == [15, 25]


def test_what_is_learnt_within_the_first_steps_is_decayed_strongly_from_there() -> None:
    steering = Steering(mlp(), release=RELEASE)
    assert follow(steering, [0.01, 0.01], [0.1, 0.1]) == [5, 5]
    assert steering.param_groups[0]["weight_decay"] == pytest.approx(5e-3 / 0.02)


def test_what_breaks_under_strong_decay_is_let_go_with_a_warning() -> None:
    steering = Steering(mlp(), release=RELEASE)
    assert follow(steering, [0.5, 0.01], [0.1, 0.1]) == [1, 5]
    with pytest.warns(UserWarning, match=r"train loss rises; weight decay is let go from λ = 5 to 1 before more is"):
        assert follow(steering, [0.5], [0.1]) == [1]


def test_gentle_decay_that_hinders_is_eased_with_a_warning() -> None:
    steering = Steering(mlp(), release=replace(RELEASE, patience=10))
    with pytest.warns(UserWarning, match=r"the training set is not learnt .* eased from λ = 1 to 0.5"):
        assert follow(steering, [2.0, 2.0, 2.0, 0.05], [0.1, 0.1, 0.1, 0.1]) == [1, 1, 0.5, 2.5]


def test_a_training_set_that_is_not_seen_is_named() -> None:
    steering = Steering(mlp(), release=RELEASE)
    steering.observe(validation_accuracy=0.1)
    with pytest.warns(UserWarning, match=r"stays gentle until the training set is seen to be learnt: call observe"):
        steering.decide()
    steering.observe(validation_accuracy=0.1)
    steering.decide()  # once: another would be an error


def test_a_weaker_decay_than_gentle_is_never_raised_above_what_was_asked_for() -> None:
    steering = Steering(mlp(), weight_decay=0.5, release=RELEASE)
    assert follow(steering, [1.0, 0.01, 0.01], [0.1, 0.1, 0.1]) == [0.5, 0.5, 0.5]
    assert steering.decisions == []


@pytest.mark.parametrize("stop", range(6))
def test_from_a_checkpoint_it_goes_on_as_if_it_had_not_stopped(stop: int) -> None:
    losses, accuracies = [1.0, 0.2, 0.05, 0.05, 0.05, 0.05], [0.1, 0.1, 0.2, 0.2, 0.97, 0.5]
    whole, begun, resumed = (Steering(mlp(), release=RELEASE) for _ in range(3))
    expected = follow(whole, losses, accuracies)
    before = follow(begun, losses[:stop], accuracies[:stop])
    stored = io.BytesIO()
    torch.save(begun.state_dict(), stored)
    stored.seek(0)
    resumed.load_state_dict(torch.load(stored, weights_only=True))
    decays = [group["weight_decay"] for group in begun.param_groups]
    assert [group["weight_decay"] for group in resumed.param_groups] == decays
    assert before + follow(resumed, losses[stop:], accuracies[stop:]) == expected == [1, 1, 5, 5, 1, 1]
    assert (resumed.decisions, resumed.log) == (whole.decisions, whole.log)


def test_decay_begins_gently_where_muon_moves_nothing_unless_a_release_is_given() -> None:
    assert Steering(mlp()).weight_decay == 5.0
    assert Steering(mlp(), release=FAST.without_muon).weight_decay == 1.0
    model = mlp()
    assert Steering(model, torch.optim.AdamW(model.parameters())).weight_decay == 1.0
    with pytest.warns(UserWarning, match="Muon moves nothing"):
        assert Steering(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))).weight_decay == 1.0
