import itertools
import logging
import random
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from grokscope import Monitor
from grokscope.attach.model_state import preserve_held, warn_of_iterators
from grokscope.errors import InputError


class Holder(nn.Module):
    """A layer that holds one thing."""

    def __init__(self, held: Any = None) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.held = held


@dataclass(frozen=True, slots=True)
class Frozen:
    """An object that only its own tricks can change."""

    value: int


class Endless:
    """An iterator of the owner's own."""

    def __init__(self) -> None:
        self.place = 0

    def __iter__(self) -> "Endless":
        return self

    def __next__(self) -> int:
        self.place += 1
        return self.place


def test_objects_stay_the_same_and_have_their_contents_back() -> None:
    inner, cell = [1], {"a": 1, "b": [2]}
    model = Holder((inner, cell))
    names = list(vars(model))
    with preserve_held(model):
        inner.append(2)
        cell["b"].clear()
        del cell["a"]
        cell["a"] = 3
        del model.held
        model.made = model.layer
        model.layer = nn.Linear(2, 3)
    assert model.held == (inner, cell) == ([1], {"a": 1, "b": [2]})
    assert model.held[0] is inner
    assert model.held[1] is cell
    assert list(cell) == ["a", "b"]
    assert list(vars(model)) == names
    assert model.layer.out_features == 2


def test_a_frozen_object_with_slots_is_restored() -> None:
    held = Frozen(1)
    with preserve_held(Holder([held])):
        object.__setattr__(held, "value", 2)
    assert held.value == 1


def test_an_iterator_of_ones_own_is_restored_and_others_are_reported() -> None:
    own = Endless()
    with preserve_held(Holder(own)):
        next(own)
    assert next(own) == 1
    warn_of_iterators(Holder([own, random.Random(0)]))  # nothing to warn of, and warnings are errors
    stream = (number for number in range(3))
    model = Holder({"streams": [stream, itertools.count()]})
    with pytest.warns(UserWarning, match=r"^Holder holds held.streams\[1\], held.streams\[0\]: an evaluation that"):
        warn_of_iterators(model)


def test_attaching_reports_an_iterator() -> None:
    model = nn.Sequential(nn.Linear(14, 4), nn.ReLU(), nn.Linear(4, 7))
    model.ids = itertools.count()
    with (
        pytest.warns(UserWarning, match="Sequential holds ids: "),
        Monitor("add_mod7", "1", encode="one_hot").attach(model),
    ):
        pass


def test_a_notebooks_own_classes_are_followed_whatever_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = "/usr/lib/python3/site-packages/ipykernel_launcher.py"
    monkeypatch.setattr(sys.modules["__main__"], "__file__", launcher, raising=False)
    kind = type("Counter", (), {"__module__": "__main__", "calls": 0})
    held = kind()
    with preserve_held(Holder(held)):
        kind.calls = held.calls = 1
    assert (kind.calls, held.calls) == (0, 0)


def test_inference_tensors_are_restored() -> None:
    with torch.inference_mode():
        held = torch.zeros(2)
    with preserve_held(Holder(held)), torch.inference_mode():
        held += 1
    assert held.tolist() == [0, 0]


def test_a_container_that_does_not_take_back_its_contents_is_named() -> None:
    class Sealed(dict[str, int]):
        def update(self, *given: Any, **more: int) -> None:
            raise NotImplementedError("sealed")

    held = Sealed(a=1)
    sentence = r"^the model changes 'held' when it is run, which cannot be undone: NotImplementedError: sealed$"
    with pytest.raises(InputError, match=sentence), preserve_held(Holder(held)):
        held["a"] = 2


def test_what_libraries_made_is_left_alone() -> None:
    logger = logging.getLogger("grokscope.test")
    loader = torch.utils.data.DataLoader([1, 2])
    with preserve_held(Holder([logger, loader])):
        logger.mark = loader.mark = 1
    assert logger.mark == loader.mark == 1


def test_an_owner_that_is_gone_or_held_weakly_is_no_obstacle() -> None:
    owner = Holder()
    model = Holder([weakref.proxy(owner), weakref.ref(owner)])
    del owner
    with preserve_held(model):
        pass


def test_a_model_that_holds_itself_is_walked_once() -> None:
    model = Holder()
    model.held = [model, {"again": model}]
    model.held.append(model.held)
    with preserve_held(model):
        model.held.append(1)
    assert len(model.held) == 3


def test_memory_shape_version_and_values_of_a_tensor_are_restored() -> None:
    held = torch.arange(6.0).view(2, 3)
    alias = held.view(6)
    model = Holder(held)
    version = held._version
    for change in (
        lambda: held.mul_(2),
        lambda: held.data.mul_(2),
        lambda: held.t_(),
        lambda: held.resize_(7, 5),
        lambda: setattr(held, "data", torch.zeros(4)),
    ):
        with preserve_held(model):
            change()
        assert held.tolist() == [[0, 1, 2], [3, 4, 5]]
        assert held._version == version
        assert held.data_ptr() == alias.data_ptr()


def test_a_backward_pass_goes_on_after_a_weight_was_changed_and_restored() -> None:
    model = Holder()
    inputs = torch.ones(1, 2, requires_grad=True)
    loss = model.layer(inputs).sum()
    expected = model.layer.weight.detach().sum(dim=0)
    with preserve_held(model), torch.no_grad():
        model.layer.weight.mul_(2)
    loss.backward()
    assert torch.equal(inputs.grad[0], expected)


def test_of_several_that_cannot_be_restored_the_first_is_named_and_the_rest_is_restored() -> None:
    class Stubborn(Tensor):
        def copy_(self, *given: Any) -> Tensor:
            raise RuntimeError("mine")

    held = torch.zeros(2).as_subclass(Stubborn)
    model = Holder([held, np.zeros(2)])
    sentence = r"changes 'held\[0\]' .*, which cannot be undone: RuntimeError: mine"
    with pytest.raises(InputError, match=sentence), preserve_held(model):  # noqa: PT012 (the change is what fails)
        held += 1
        model.held[1] += 1
        model.extra = 1
    assert model.held[1].tolist() == [0, 0]
    assert not hasattr(model, "extra")


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
def test_a_lazy_module_that_is_given_its_shape_inside_keeps_it() -> None:
    model = nn.Sequential(nn.LazyBatchNorm1d(affine=False))
    with preserve_held(model):
        model(torch.ones(3, 2))
    assert type(model[0]) is nn.BatchNorm1d
    model(torch.ones(3, 2))


SHARED: list[int] = []


def test_a_function_is_followed_into_what_it_names_and_no_further() -> None:
    outside: list[int] = []

    def inner(defaults: list[int] = []) -> None:  # noqa: B006 (that is what is tested)
        defaults.append(1)
        SHARED.append(1)

    def hook(module: nn.Module, inputs: Any, output: Tensor) -> None:
        inner()

    model = Holder()
    model.layer.register_forward_hook(hook)
    SHARED.clear()
    with preserve_held(model):
        model.layer(torch.ones(1, 2))
        outside.append(1)
    assert (SHARED, inner.__defaults__, outside) == ([], ([],), [1])


def streaming() -> Iterator[int]:
    yield from range(3)


def test_a_walk_advances_no_iterator() -> None:
    stream = streaming()
    with preserve_held(Holder([stream])):
        pass
    assert next(stream) == 0
