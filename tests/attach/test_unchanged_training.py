"""Training is the same bit for bit with and without a monitor: models, loops and kinds of state, one with another."""

import random
from collections.abc import Mapping
from itertools import product
from typing import Any

import hosts
import numpy as np
import pytest
import torch
from hosts import MODELS, STATES, host
from loops import ANSWERS, LOOPS, STEPS, TOKENS
from torch import Tensor, nn

from grokscope import Monitor

pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated"),
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),  # of the compiler itself
]
KINDS = list(STATES)
COMPILED = ("plain", "gradient accumulation", "between forward and backward")  # to compile takes seconds
NOT_COPIED = ("old weight norm", "pruned", "scripted")  # torch copies no module whose weight is computed in a hook


def is_possible(model: str, loop: str) -> bool:
    if model == "compiled":
        return loop in COMPILED
    if model == "scripted" and loop == "user's hooks":  # which it does not take
        return False
    return loop != "averaged model" or model not in NOT_COPIED


# Every model in every loop, with the kinds of state in turn; and every kind of state in a plain loop.
TRIPLES = [
    (model, loop, KINDS[place % len(KINDS)])
    for place, (model, loop) in enumerate(product(MODELS, LOOPS))
    if is_possible(model, loop)
] + [("mlp", "plain", state) for state in STATES]
EVERY = 2


def bits(value: Any, seen: frozenset[int] = frozenset()) -> Any:
    """A value as plain values that are equal where every bit is."""
    if isinstance(value, Tensor):
        raw = value.detach().contiguous().view(torch.uint8) if value.ndim else value.detach()[None].view(torch.uint8)
        return (str(value.dtype), tuple(value.shape), raw.numpy().tobytes())
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, torch.Generator):
        return bits(value.get_state())
    if isinstance(value, np.random.Generator | np.random.BitGenerator):
        return bits(getattr(value, "bit_generator", value).state)
    if isinstance(value, np.random.RandomState):
        return bits(value.get_state())
    if isinstance(value, random.Random):
        return value.getstate()
    if id(value) in seen:
        return "itself"
    inside = seen | {id(value)}
    if isinstance(value, Mapping):
        return [(bits(key, inside), bits(part, inside)) for key, part in value.items()]
    if isinstance(value, list | tuple | set | frozenset) or type(value).__name__ == "deque":
        return [bits(part, inside) for part in value]
    if isinstance(value, nn.Module):
        held = {name: part for name, part in vars(value).items() if not callable(part)}
        return {name: bits(part, inside) for name, part in held.items() if name != "_torchdynamo_wrapper_id"}
    if isinstance(value, hosts.Noise):
        return bits([value.draws, value.past], inside)
    return value if isinstance(value, bool | int | float | str | type(None)) else type(value).__name__


def everything(model: nn.Module, found: dict[str, Any]) -> dict[str, Any]:
    """All that training leaves behind."""
    return {
        "model": bits(model),
        "gradients": [bits(parameter.grad) for parameter in model.parameters()],
        "loop": bits(found),
        "use": _held_by(model.use),
        "globals": bits([hosts.PAST, hosts.DRAWN, hosts.CALLS, hosts.Host.total, hosts.Host.seen]),
        "generators": bits([torch.get_rng_state(), random.getstate(), np.random.get_state()]),
        "next": (float(torch.rand(())), random.random(), float(np.random.random())),
    }


def _held_by(function: Any) -> Any:
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    return bits([part for part in cells if isinstance(part, int)]), bits(vars(getattr(function, "__self__", object)))


def trained(model: str, loop: str, state: str, monitor: Monitor | None) -> dict[str, Any]:
    torch.utils.hooks.RemovableHandle.next_id = 0  # hooks are numbered, which changes nothing but their numbers
    made = host(model, state)
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)

    def evaluate(module: nn.Module, step: int) -> None:
        if monitor is not None and monitor.is_due(step):
            monitor.measure(module, step)

    return everything(made, LOOPS[loop](made, evaluate))


def test_the_table_is_as_large_as_promised() -> None:
    assert len({*TRIPLES}) >= 250
    assert {state for _, _, state in TRIPLES} == {*STATES}


@pytest.mark.parametrize(("model", "loop", "state"), TRIPLES)
def test_training_is_the_same_bit_for_bit(model: str, loop: str, state: str) -> None:
    monitor = Monitor("add_mod5", "act", ["fsd"], every=EVERY, chunk=10)
    alone, watched = trained(model, loop, state, None), trained(model, loop, state, monitor)
    assert [row["step"] for row in monitor.log] == [*range(0, STEPS, EVERY)]
    for part, before in alone.items():
        assert before == watched[part], part


@pytest.mark.parametrize("state", [state for state in STATES if state != "none"])
def test_every_kind_of_state_would_be_changed_by_a_pass(state: str) -> None:
    found = []
    for passes in (0, 1):
        model = host("mlp", state).eval()
        with torch.no_grad():
            for _ in range(passes):
                model(TOKENS)
        found.append(everything(model, {}))
    assert found[0] != found[1]


@pytest.mark.parametrize("loop", ["user's hooks"])
def test_a_pass_of_ones_own_is_recorded_by_hooks(loop: str) -> None:
    """What is restored after an evaluation is what would be recorded."""

    def ones_own(model: nn.Module, step: int) -> None:
        with torch.no_grad():
            model(TOKENS)

    found = [LOOPS[loop](host("mlp", "none"), evaluate) for evaluate in (lambda model, step: None, ones_own)]
    assert len(found[1]["kept"]) == len(found[0]["kept"]) + STEPS
    assert len(ANSWERS) == found[1]["recorder"]["sizes"][0]


class OnCuda(nn.Module):
    """Dropout, batch norm, a generator of its own on the device and a running average."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.norm, self.drop = nn.Embedding(6, 8), nn.BatchNorm1d(24), nn.Dropout(0.2)
        self.act, self.head = nn.ReLU(), nn.Linear(24, 6)
        self.generators = [torch.Generator("cuda").manual_seed(3)]
        self.past: list[Tensor] = []

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.act(self.drop(self.norm(self.embed(tokens).flatten(1))))
        hidden = hidden + 0.01 * torch.randn(hidden.shape, generator=self.generators[0], device="cuda")
        self.past.append(hidden.detach().float().mean())
        return self.head(hidden + self.past[-1].to(hidden))


@pytest.mark.gpu
@pytest.mark.parametrize("mixed", [False, True])
def test_training_on_cuda_is_the_same_bit_for_bit(mixed: bool) -> None:
    def run(monitor: Monitor | None) -> Any:
        torch.manual_seed(0)
        model = OnCuda().cuda()
        optimizer, scaler = torch.optim.AdamW(model.parameters(), lr=0.01), torch.amp.GradScaler("cuda", enabled=mixed)
        losses = []
        for step in range(20):
            if monitor is not None:
                monitor.measure(model, step)
            rows = torch.randint(len(TOKENS), (6,))
            with torch.autocast("cuda", torch.float16, enabled=mixed):
                loss = nn.functional.cross_entropy(model(TOKENS[rows].cuda()), ANSWERS[rows].cuda())
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        held = [*model.state_dict().values(), *model.past, model.generators[0].get_state(), torch.cuda.get_rng_state()]
        return losses, [bits(one.cpu()) for one in held], scaler.state_dict()

    assert run(None) == run(Monitor("add_mod5", "act", ["fsd"]))
