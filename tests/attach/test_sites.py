import pytest
import torch
from torch import Tensor, nn

from grokscope import Monitor
from grokscope.errors import InputError


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
