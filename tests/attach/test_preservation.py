"""Models that are evaluated and left exactly as they were: modes, buffers, generators, hooks, compiled graphs."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from own_models import SITE, Attended, attended, pairs_of, train
from torch import Tensor, nn

from grokscope import Monitor
from grokscope.attach.preservation import preserve_state
from grokscope.errors import InputError


def trained(monitor: Monitor | None, autocast: bool = False) -> tuple[list[float], dict[str, Tensor]]:
    model = attended()
    model.attention.eval()  # one part that its owner keeps in evaluation
    tokens, answers, _ = pairs_of("add_mod7")
    np.random.seed(1)
    torch.manual_seed(1)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        if monitor is None:
            losses = train(model, tokens, answers, 30)
        else:
            with monitor.attach(model):
                losses = train(model, tokens, answers, 30, monitor.step)
    assert not model.attention.training
    assert model.mlp[2].training
    losses += [float(np.random.random()), float(torch.rand(1))]
    assert all(not module._forward_hooks and not module._forward_pre_hooks for module in model.modules())
    return losses, model.state_dict()


@pytest.mark.parametrize("autocast", [False, True])
def test_training_with_and_without_it_is_bit_identical(autocast: bool) -> None:
    monitor = Monitor("add_mod7", ["mlp.1", "attention", _draws_by_chance], ["fsd", "trig"], every=5, chunk=20)
    alone, watched = trained(None, autocast), trained(monitor, autocast)
    assert len(monitor.log) == 7
    assert alone[0] == watched[0]
    for name, value in alone[1].items():
        assert torch.equal(value, watched[1][name]), name


def _draws_by_chance(model: nn.Module, tokens: Tensor) -> Tensor:
    np.random.random()
    return torch.rand(len(tokens), 8)


def test_every_generator_is_restored() -> None:
    model = attended()
    states = (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())
    with preserve_state(model):
        random.random()
        np.random.random()
        torch.rand(1)
    assert states == (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())


def test_autocast_does_not_reach_what_is_read() -> None:
    model = attended()
    with torch.autocast("cpu", torch.bfloat16):
        inside = Monitor("add_mod7", SITE).evaluate(model)
    assert inside == Monitor("add_mod7", SITE).evaluate(model)


def test_an_error_in_an_evaluation_leaves_modes_and_hooks_as_they_were() -> None:
    model = attended()

    def broken(model: nn.Module, tokens: Tensor) -> Tensor:
        raise RuntimeError("mine")

    before = torch.get_rng_state()
    with pytest.raises(InputError, match="the site 'broken' fails: RuntimeError: mine"):
        Monitor("add_mod7", [SITE, broken]).evaluate(model)
    assert all(module.training and not module._forward_hooks for module in model.modules())
    assert torch.equal(before, torch.get_rng_state())


def test_a_compiled_model_is_read_inside_and_not_compiled_again() -> None:
    model = attended()
    compiled = torch.compile(model, backend="eager")
    assert Monitor("add_mod7", SITE).evaluate(compiled) == Monitor("add_mod7", SITE).evaluate(model)


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # of the compiler itself
@pytest.mark.parametrize("compile_part", ["the model in place", "a part of it"])
def test_evaluations_compile_nothing_and_disturb_nothing_compiled(compile_part: str) -> None:
    from torch._dynamo.testing import CompileCounter

    def run(is_watched: bool) -> tuple[list[float], int, list[float]]:
        torch._dynamo.reset()
        model, counter = attended(), CompileCounter()
        if compile_part == "a part of it":
            model.mlp = torch.compile(model.mlp, backend=counter)
        else:
            model.compile(backend=counter)
        tokens, answers, _ = pairs_of("add_mod7")
        monitor = Monitor("add_mod7", ["mlp._orig_mod.1" if compile_part == "a part of it" else SITE], every=4)
        torch.manual_seed(1)
        with monitor.attach(model):
            losses = train(model, tokens, answers, 12, monitor.step if is_watched else lambda step: None)
        return losses, counter.frame_count, [row["fsd"] for row in monitor.log]

    alone, watched = run(False), run(True)
    assert alone[:2] == watched[:2]
    assert len(watched[2]) == 4


class Drawn(torch.utils.data.Dataset[tuple[Tensor, Tensor]]):
    """Pairs, shifted by chance of every kind that a worker has."""

    def __init__(self) -> None:
        self.tokens, self.answers, _ = pairs_of("add_mod7")

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
        other = (place + random.randrange(2) + int(torch.randint(2, ()))) % len(self)
        return self.tokens[other], self.answers[other]


def test_a_loader_with_workers_gives_the_same_batches() -> None:
    def run(monitor: Monitor | None) -> list[float]:
        model = attended()
        random.seed(1)
        torch.manual_seed(1)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        losses = []
        for epoch in range(2):
            if monitor is not None:
                monitor.measure(model, epoch)
            loader = torch.utils.data.DataLoader(Drawn(), batch_size=8, shuffle=True, num_workers=1)
            for tokens, answers in loader:
                loss = nn.functional.cross_entropy(model(tokens), answers)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        return [*losses, random.random()]

    def by_chance(model: nn.Module, tokens: Tensor) -> Tensor:
        random.random()
        return torch.rand(len(tokens), 8)

    assert run(None) == run(Monitor("add_mod7", [SITE, by_chance], ["fsd"]))


class Noisy(nn.Module):
    """Counts its calls in a buffer, averages what it sees and adds noise of its own generator, in every mode."""

    def __init__(self, in_place: bool) -> None:
        super().__init__()
        self.embed, self.act = nn.Embedding(8, 16), nn.ReLU(inplace=True)
        self.hidden, self.head = nn.Linear(48, 24), nn.Linear(24, 7)
        self.generator = torch.Generator().manual_seed(5)
        self.in_place = in_place
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("average", torch.zeros(24))
        self.register_buffer("nothing", None)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.hidden(self.embed(tokens).flatten(1))
        hidden = hidden + 0.01 * torch.randn(hidden.shape, generator=self.generator)
        if self.in_place:
            self.calls += 1
            self.average.mul_(0.9).add_(hidden.detach().mean(dim=0))
        else:
            self.calls = self.calls + 1
            self.average = 0.9 * self.average + hidden.detach().mean(dim=0)
        return self.head(self.act(hidden - 0.1 * self.average))


@pytest.mark.parametrize("in_place", [True, False])
def test_buffers_and_generators_of_the_model_itself_are_restored(in_place: bool) -> None:
    def run(monitor: Monitor | None) -> tuple[list[float], dict[str, Tensor]]:
        torch.manual_seed(0)
        model = Noisy(in_place)
        tokens, answers, _ = pairs_of("add_mod7")
        evaluate = (lambda step: monitor.measure(model, step)) if monitor else (lambda step: None)
        return train(model, tokens, answers, 8, evaluate), model.state_dict()

    monitor = Monitor("add_mod7", "act", chunk=20)
    alone, watched = run(None), run(monitor)
    assert len(monitor.log) == 9
    assert alone[0] == watched[0]
    assert all(torch.equal(value, watched[1][name]) for name, value in alone[1].items())
    assert float(watched[1]["calls"]) == 8


def test_an_evaluation_between_forward_and_backward_leaves_the_graph_whole() -> None:
    torch.manual_seed(0)
    model, other = Attended(8, 7), Attended(8, 7)
    other.load_state_dict(model.state_dict())
    tokens, answers, _ = pairs_of("add_mod7")
    for one in (model, other):
        torch.manual_seed(1)
        loss = nn.functional.cross_entropy(one(tokens), answers)
        if one is model:
            Monitor("add_mod7", "mlp.1").evaluate(one)
        loss.backward()
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    assert all(torch.equal(a.grad, b.grad) for a, b in pairs)


def test_a_model_that_fails_inside_the_pass_is_left_as_it_was() -> None:
    model = Noisy(in_place=True)
    model.act.register_forward_hook(lambda *_: (_ for _ in ()).throw(RuntimeError("mine")))
    before = (model.generator.get_state(), torch.get_rng_state(), len(model.act._forward_hooks))
    with pytest.raises(InputError, match=r"Noisy rejects what encode gives, .*: RuntimeError: mine"):
        Monitor("add_mod7", ["act", "hidden.input"]).evaluate(model)
    assert float(model.calls) == 0
    assert torch.equal(before[0], model.generator.get_state())
    assert torch.equal(before[1], torch.get_rng_state())
    assert len(model.act._forward_hooks) == before[2]
    assert not model.hidden._forward_pre_hooks
    assert all(module.training for module in model.modules())


class Folding(nn.Linear):
    """A layer that does more than change its mode when it is told to."""

    def train(self, mode: bool = True) -> "Folding":
        with torch.no_grad():
            self.weight.mul_(1.0 if mode else 1.5)
        return super().train(mode)


def test_modes_are_set_without_what_a_module_does_beside() -> None:
    model = nn.Sequential(nn.Linear(14, 8), nn.ReLU(), Folding(8, 7))
    before = model[2].weight.detach().clone()
    Monitor("add_mod7", "1", encode="one_hot").evaluate(model)
    assert torch.equal(before, model[2].weight)


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


def evaluate(model: nn.Module) -> dict[str, Any]:
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
    evaluate(model)
    assert model.held is held
    assert (bits(held), held._version) == (before, version)


@pytest.mark.parametrize("kind", [name for name in KINDS if name != "expanded"])
def test_a_buffer_that_the_pass_changes_is_restored(kind: str) -> None:
    model = Holder(KINDS[kind](), lambda model: model.held.mul_(3))
    before, had_gradient = bits(model.held), model.held.requires_grad
    evaluate(model)
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
        evaluate(model)
        assert bits(model.held) == [1.0, 1.0, 1.0]


def test_buffers_without_numbers_are_left_alone() -> None:
    model = Holder(torch.zeros(3, device="meta"))
    assert evaluate(model)["fsd"] == evaluate(Holder(None))["fsd"]
    assert model.held.is_meta


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
def test_a_layer_whose_buffers_have_no_shape_yet_is_evaluated() -> None:
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
        evaluate(model)
        assert "cache" not in model._buffers
        assert "cache" not in model._non_persistent_buffers_set
        assert list(model.state_dict()) == names
    model(torch.zeros(1, 14))
    assert bits(model.cache) == [2.0, 2.0]


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_one_buffer_that_cannot_be_restored_is_named_and_the_others_are_restored() -> None:
    model = Holder(torch.eye(3).to_sparse_csr(), lambda model: model.held.zero_())
    with pytest.raises(InputError, match="the model changes 'held' when it is run, which cannot be undone: "):
        evaluate(model)
    assert bits(model.first) == bits(model.last) == [0.0, 0.0]
    assert model.training
