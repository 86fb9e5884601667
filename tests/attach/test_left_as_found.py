"""Models that are hard to look at without a trace, and sites that are easily misread."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parent))

from own_models import Attended, pairs_of, train

from grokscope import Monitor
from grokscope.attach import foreign_measures
from grokscope.errors import InputError


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


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
def test_buffers_and_generators_of_the_model_itself_are_put_back(in_place: bool) -> None:
    def run(monitor: Monitor | None) -> tuple[list[float], dict[str, Tensor]]:
        torch.manual_seed(0)
        model = Noisy(in_place)
        tokens, answers, _ = pairs_of("add_mod7")
        look = (lambda step: monitor.measure(model, step)) if monitor else (lambda step: None)
        return train(model, tokens, answers, 8, look), model.state_dict()

    monitor = Monitor("add_mod7", "act", chunk=20)
    alone, watched = run(None), run(monitor)
    assert len(monitor.log) == 9
    assert alone[0] == watched[0]
    assert all(torch.equal(value, watched[1][name]) for name, value in alone[1].items())
    assert float(watched[1]["calls"]) == 8


def test_a_look_between_forward_and_backward_leaves_the_graph_whole() -> None:
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


# Sites that are easily misread.


class Twice(nn.Module):
    """One activation, under two names and used by two layers; the second is called by keyword."""

    def __init__(self) -> None:
        super().__init__()
        act = nn.ReLU(inplace=True)
        self.embed = nn.Embedding(8, 8)
        self.first, self.second = nn.Sequential(nn.Linear(24, 16), act), nn.Sequential(nn.Linear(16, 12), act)
        self.head = Named(12, 7)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(x=self.second(self.first(self.embed(tokens).flatten(1))))

    def hidden(self, tokens: Tensor, layer: int, relu: bool) -> Tensor:
        """What a layer holds, without anything in place."""
        value = self.embed(tokens).flatten(1)
        for linear in [self.first[0], self.second[0]][:layer]:
            before = linear(value)
            value = before.relu()
        return value if relu else before


class Named(nn.Linear):
    """A layer whose input has a name of its own."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x)


def answer_share(model: Twice, layer: int, relu: bool) -> float:
    def site(model: Twice, tokens: Tensor) -> Tensor:
        return model.hidden(tokens, layer, relu)

    return Monitor("add_mod7", site).evaluate(model)["answer_share"]


@pytest.mark.parametrize(
    ("site", "layer", "relu"),
    [
        ("first.0", 1, False),  # changed in place by what follows
        ("second.0", 2, False),
        ("first", 1, True),
        ("first.1#1", 1, True),
        ("second.1#2", 2, True),
        ("first.1.input#1", 1, False),
        ("second.1.input#2", 2, False),
        ("head.input", 2, True),
    ],
)
def test_what_is_read_is_what_was_there_at_that_moment(site: str, layer: int, relu: bool) -> None:
    torch.manual_seed(0)
    model = Twice()
    assert Monitor("add_mod7", site).evaluate(model)["answer_share"] == answer_share(model, layer, relu)


@pytest.mark.parametrize(
    ("site", "sentence"),
    [
        (
            "first.1",
            "the site 'first.1' is reached 2 times in a forward pass; choose one, from 'first.1#1' to 'first.1#2'",
        ),
        ("first.1#3", "the site 'first.1#3' is reached 2 times in a forward pass, not more"),
        ("first.1#0", "Twice has no site 'first.1#0'; the nearest are"),
        ("frist.1#1", "Twice has no site 'frist.1#1'; the nearest are"),
    ],
)
def test_a_module_that_runs_twice_is_not_read_at_random(site: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence), Monitor("add_mod7", site).attach(Twice()):
        pass


class Several(nn.Module):
    """Gives a dict."""

    def forward(self, value: Tensor) -> dict[str, Tensor]:
        return {"hidden": value.relu(), "extra": value.sum()}


def test_the_first_of_a_modules_outputs_is_read() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lift, self.parts, self.head = nn.Linear(14, 16), Several(), nn.Linear(16, 7)

        def forward(self, x: Tensor) -> tuple[Tensor, None]:
            return self.head(self.parts(self.lift(x))["hidden"]), None

    torch.manual_seed(0)
    row = Monitor("add_mod7", ["parts", "head.input"], encode="one_hot").evaluate(Model())
    assert row["fsd"] == row["fsd@head.input"]


def test_torchs_own_encoder_is_read_inside_although_it_has_a_fused_path() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
            self.embed, self.head = nn.Embedding(8, 16), nn.Linear(16, 7)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, tokens: Tensor) -> Tensor:
            return self.head(self.encoder(self.embed(tokens)))

    torch.manual_seed(0)
    model = Model()
    row = Monitor("add_mod7", ["encoder.layers.1.linear2.input", "encoder.layers.1.dropout"]).evaluate(model)
    assert row["fsd"] == row["fsd@encoder.layers.1.dropout"]
    with pytest.raises(InputError, match=r"'encoder.layers.0.self_attn.out_proj' was not reached"):
        Monitor("add_mod7", "encoder.layers.0.self_attn.out_proj").check(model)


# Precision, devices, wrappers.


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16, torch.float64])
def test_models_of_every_precision_are_read(precision: torch.dtype) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(14, 32), nn.ReLU(), nn.Linear(32, 7))
    monitor = Monitor("add_mod7", "1", list(foreign_measures()), encode="one_hot")
    full, other = monitor.evaluate(model), monitor.evaluate(model.to(precision))
    assert other["loss"] == pytest.approx(full["loss"], rel=0.01)
    assert other["answer_share"] == pytest.approx(full["answer_share"], rel=0.05)
    assert not other["undefined"]
    assert all(parameter.dtype == precision for parameter in model.parameters())


def test_wrapped_models_are_read_inside() -> None:
    torch.manual_seed(0)
    model, monitor = Attended(8, 7), Monitor("add_mod7", "mlp.1")
    assert monitor.evaluate(nn.DataParallel(model)) == monitor.evaluate(model)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (lambda: lambda tokens: tokens, "a monitor reads a torch.nn.Module, got <function"),
        (lambda: Attended(8, 7).to("meta"), "Attended is on the meta device, without numbers: give it weights first"),
        (lambda: torch.jit.script(Attended(8, 7)), "the site 'mlp.1' is compiled by torch.jit, which cannot be read"),
        (
            lambda: nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.Linear(8, 7)),
            "Sequential has no shape for 0.weight yet: run one batch through it first",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature", "ignore:.*torch.jit.script")
def test_what_cannot_be_read_is_told_in_a_sentence(model: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Monitor("add_mod7", "mlp.1").evaluate(model())


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"chunk": 0}, "chunk must be a whole number of pairs, at least 1, got 0"),
        ({"sites": [lambda m, x: x, lambda m, x: x]}, "two sites are called '<lambda>': give each a name of its own"),
        ({"measures": "fds"}, "there is no measure 'fds'; did you mean 'fsd'"),
    ],
)
def test_bad_input_is_one_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Monitor(**({"task": "add_mod7", "sites": "mlp.1"} | given))


# The log on the disk.


def test_a_step_looked_at_twice_is_written_once_and_reasons_survive_a_restart(tmp_path: Path) -> None:
    from grokscope.runs import Store

    _, _, is_train = pairs_of("add_mod7")
    model, broken, places = Attended(8, 7), Attended(8, 7), {"train": is_train, "out": tmp_path}
    with torch.no_grad():
        broken.mlp[0].weight[0, 0] = torch.nan
    first = Monitor("add_mod7", "mlp.1", **places)
    first.measure(model, 0)
    first.measure(broken, 0)
    again = Monitor("add_mod7", "mlp.1", **places)
    again.load_state_dict(first.state_dict())
    again.finish()  # nothing seen since: nothing to write
    again.measure(model, np.int64(100))
    again.finish()
    folder = next(iter(Store(tmp_path)))
    assert [row["step"] for row in folder.log()] == [0, 100]
    assert folder.outcome["undefined"] == {"0": first.log[0]["undefined"]}
    assert "not numbers" in folder.outcome["undefined"]["0"]
