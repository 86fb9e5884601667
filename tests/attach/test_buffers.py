"""Buffers of every kind, looked at and left as they were."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from grokscope import Monitor
from grokscope.errors import InputError


class Holder(nn.Module):
    """A layer with one buffer, and what a pass does to it."""

    def __init__(self, held: Tensor | None, change: Callable[["Holder"], Any] = lambda model: None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(14, 8), nn.ReLU(), nn.Linear(8, 7))
        self.change = change
        self.register_buffer("first", torch.zeros(2))
        self.register_buffer("held", held)
        self.register_buffer("last", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        self.first += 1
        self.change(self)
        self.last += 1
        return self.net(x)


def look(model: nn.Module) -> dict[str, Any]:
    return Monitor("add_mod7", "net.1", encode="one_hot").evaluate(model)


def bits(tensor: Tensor) -> list[float]:
    return tensor.detach().to_dense().nan_to_num(nan=-7.0).flatten().tolist()


KINDS: dict[str, Callable[[], Tensor]] = {
    "sparse": lambda: torch.eye(3).to_sparse(),
    "undefined": lambda: torch.tensor([1.0, torch.nan]),
    "with a gradient": lambda: torch.ones(3, requires_grad=True),
    "computed": lambda: torch.ones(3, requires_grad=True) * 2,
    "expanded": lambda: torch.ones(1).expand(4),
    "whole numbers": lambda: torch.arange(3),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_buffer_that_nothing_changes_is_not_written(kind: str) -> None:
    model = Holder(KINDS[kind]())
    held, before, version = model.held, bits(model.held), model.held._version
    look(model)
    assert model.held is held
    assert (bits(held), held._version) == (before, version)


@pytest.mark.parametrize("kind", [name for name in KINDS if name != "expanded"])
def test_a_buffer_that_the_pass_changes_is_put_back(kind: str) -> None:
    model = Holder(KINDS[kind](), lambda model: model.held.mul_(3))
    before, had_gradient = bits(model.held), model.held.requires_grad
    look(model)
    assert bits(model.held) == before
    assert model.held.requires_grad == had_gradient


@pytest.mark.parametrize("has_gradient", [True, False])
def test_a_change_that_torch_does_not_count_is_undone_too(has_gradient: bool) -> None:
    def behind(model: Holder) -> None:
        model.held.data.add_(1)

    def longer(model: Holder) -> None:
        model.held.data = torch.zeros(len(model.held) + 2)

    for change in (behind, longer):
        model = Holder(torch.ones(3, requires_grad=has_gradient), change)
        look(model)
        assert bits(model.held) == [1.0, 1.0, 1.0]


def test_buffers_without_numbers_are_left_alone() -> None:
    model = Holder(torch.zeros(3, device="meta"))
    assert look(model)["fsd"] == look(Holder(None))["fsd"]
    assert model.held.is_meta


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
def test_a_layer_whose_buffers_have_no_shape_yet_is_looked_at() -> None:
    model, plain = Holder(None), Holder(None)
    model.net.insert(1, nn.LazyBatchNorm1d(affine=False))
    plain.net.insert(1, nn.BatchNorm1d(8, affine=False))
    monitor = Monitor("add_mod7", "net.2", encode="one_hot")
    assert monitor.evaluate(model) == monitor.evaluate(plain)


def test_a_buffer_made_by_the_pass_is_gone_and_is_made_again() -> None:
    def make(model: Holder) -> None:
        if not getattr(model, "is_made", False):
            model.register_buffer("cache", torch.ones(2), persistent=False)
            model.is_made = True
        model.cache.add_(1)  # what fails if only the flag were left

    model = Holder(None, make)
    names = list(model.state_dict())
    for _ in range(2):
        look(model)
        assert "cache" not in model._buffers
        assert "cache" not in model._non_persistent_buffers_set
        assert list(model.state_dict()) == names
    model(torch.zeros(1, 14))
    assert bits(model.cache) == [2.0, 2.0]


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_one_buffer_that_cannot_be_put_back_is_told_and_the_others_are_put_back() -> None:
    model = Holder(torch.eye(3).to_sparse_csr(), lambda model: model.held.zero_())
    with pytest.raises(
        InputError, match="the model changes its buffer 'held' when it is run, which cannot be undone: "
    ):
        look(model)
    assert bits(model.first) == bits(model.last) == [0.0, 0.0]
    assert model.training
