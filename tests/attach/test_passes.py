from typing import Any

import pytest
import torch
from own_models import Attended
from torch import nn

from grokscope import Monitor
from grokscope.attach import foreign_measures
from grokscope.errors import InputError


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
def test_what_cannot_be_read_is_rejected_in_a_sentence(model: Any, sentence: str) -> None:
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
