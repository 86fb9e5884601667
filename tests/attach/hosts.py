"""Small models of many kinds, each with a kind of state that every forward pass changes and depends on."""

import random
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune
from torch.utils.checkpoint import checkpoint

WIDTH, SYMBOLS = 8, 5


class Host(nn.Module):
    """A body, the activations that are read, what its state does with them, and a head."""

    total = 0
    seen: list[float] = []  # noqa: RUF012 (shared by its instances on purpose, as people do)

    def __init__(self, body: nn.Module, use: Callable[["Host", Tensor], Tensor]) -> None:
        super().__init__()
        self.body, self.act, self.head = body, nn.ReLU(), nn.Linear(WIDTH, SYMBOLS + 1)
        self.use = use

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.use(self, self.act(self.body(tokens))))


# Bodies: from tokens [a, b, n] to [inputs, WIDTH].


def mlp(last: Callable[[nn.Linear], nn.Module] = lambda layer: layer, *others: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Embedding(SYMBOLS + 1, 4), nn.Flatten(), last(nn.Linear(12, WIDTH)), *others)


class Attention(nn.Module):
    """A layer with dropout, read at the last position."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS + 1, WIDTH)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, 12, dropout=0.2, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.layer(self.embed(tokens))[:, -1]


class Recurrent(nn.Module):
    """Two layers of an LSTM, whose flat weights are a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.lstm = nn.Embedding(SYMBOLS + 1, 4), nn.LSTM(4, WIDTH, 2, dropout=0.2, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.lstm(self.embed(tokens))[0][:, -1]


class Checkpointed(nn.Module):
    """Runs its inside again in the backward pass, with the same dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = mlp(lambda layer: layer, nn.Dropout(0.2))

    def forward(self, tokens: Tensor) -> Tensor:
        return checkpoint(self.inside, tokens, use_reentrant=False)


class Capped(nn.Module):
    """Scales its own weights down in every forward pass, as max-norm layers do."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, value: Tensor) -> Tensor:
        self.layer.weight.data = 0.99 * torch.renorm(self.layer.weight.data, 2, 0, maxnorm=0.7)
        return self.layer(value)


def pruned(layer: nn.Linear) -> nn.Module:
    return prune.l1_unstructured(layer, "weight", amount=0.3)


def old_weight_norm(layer: nn.Linear) -> nn.Module:
    return nn.utils.weight_norm(layer)


def tied(host: Host) -> Host:
    embed = nn.Embedding(SYMBOLS + 1, WIDTH)
    host.body = nn.Sequential(embed, nn.Flatten(), nn.Linear(3 * WIDTH, WIDTH))
    host.head.weight = embed.weight
    return host


BODIES: dict[str, Callable[[], nn.Module]] = {
    "mlp": mlp,
    "transformer with dropout": Attention,
    "batch norm": lambda: mlp(lambda layer: layer, nn.BatchNorm1d(WIDTH), nn.Dropout(0.1)),
    "batch norm that counts": lambda: mlp(lambda layer: layer, nn.BatchNorm1d(WIDTH, momentum=None)),
    "LSTM": Recurrent,
    "old weight norm": lambda: mlp(old_weight_norm),
    "weight norm": lambda: mlp(parametrizations.weight_norm),
    "spectral norm": lambda: mlp(parametrizations.spectral_norm),
    "orthogonal": lambda: mlp(parametrizations.orthogonal),
    "pruned": lambda: mlp(pruned),
    "capped": lambda: mlp(Capped),
    "checkpointed": Checkpointed,
    "scripted": lambda: torch.jit.script(mlp(lambda layer: layer, nn.BatchNorm1d(WIDTH))),
    "compiled": lambda: torch.compile(Attention(), backend="eager"),
}
FINISH: dict[str, Callable[[Host], Host]] = {
    "shared weights": tied,
    "float64": Host.double,
    "bfloat16": Host.bfloat16,
    "in evaluation mode": Host.eval,
    "partly frozen": lambda host: host.body[2].requires_grad_(False) and host,
}
MODELS = (*BODIES, *FINISH)


def host(model: str, state: str) -> Host:
    """The same model with the same state, every time."""
    torch.manual_seed(0)
    prepare, use = STATES[state]
    made = FINISH.get(model, lambda host: host)(Host(BODIES.get(model, mlp)(), use))
    prepare(made)
    return made


# States: how one is begun, and how a forward pass uses it.


@dataclass(slots=True)
class Noise:
    """An object of the model's owner, without a dictionary."""

    draws: np.random.Generator
    past: list[float] = field(default_factory=list)


class Stream(list[float]):
    """A list of the owner's own, with an attribute."""

    offset = 0.0


PAST: list[float] = []
DRAWN = np.random.default_rng(0)
CALLS = 0


def begin_globals(host: Host) -> None:
    global CALLS, DRAWN
    PAST.clear()
    CALLS, DRAWN = 0, np.random.default_rng(0)
    Host.total = 0
    Host.seen.clear()


def by_globals(host: Host, hidden: Tensor) -> Tensor:
    global CALLS
    CALLS += 1
    PAST.append(float(DRAWN.normal()))
    return hidden + 0.01 * (sum(PAST) + CALLS)


def by_class(host: Host, hidden: Tensor) -> Tensor:
    type(host).total += 1
    host.seen.append(0.01 * host.total)
    return hidden + sum(host.seen)


def counting(host: Host) -> None:
    calls = 0

    def use(host: Host, hidden: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return hidden + 0.01 * calls

    host.use = use


class Counter:
    """An object whose bound method is what the model calls."""

    def __init__(self) -> None:
        self.calls = 0

    def use(self, host: Host, hidden: Tensor) -> Tensor:
        self.calls += 1
        return hidden + 0.01 * self.calls


def has(**held: Callable[[], Any]) -> Callable[[Host], None]:
    """Begins with these attributes."""

    def prepare(host: Host) -> None:
        for name, begin in held.items():
            setattr(host, name, begin())

    return prepare


def adds(draw: Callable[[Host], Any]) -> Callable[[Host, Tensor], Tensor]:
    """Adds a number that is drawn from the state."""
    return lambda host, hidden: hidden + 0.01 * float(draw(host))


def torch_draw(generator: torch.Generator) -> float:
    return float(torch.randn((), generator=generator))


def made_torch() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def averaged(host: Host, hidden: Tensor) -> Tensor:
    host.average = 0.9 * host.average + hidden.detach().float().mean()
    return hidden - 0.1 * host.average.to(hidden)


def averaged_in_place(host: Host, hidden: Tensor) -> Tensor:
    host.average.mul_(0.9).add_(hidden.detach().float().mean())
    return hidden - 0.1 * host.average.to(hidden)


def remembered(host: Host, hidden: Tensor) -> Tensor:
    host.past.append(hidden.detach().float().mean())
    return hidden - 0.1 * torch.stack([*host.past]).mean().to(hidden)


def cached_by_size(host: Host, hidden: Tensor) -> Tensor:
    kept = host.cache.setdefault("sizes", {}).setdefault(len(host.cache), [])
    kept.append(float(hidden.detach().float().mean()))
    return hidden + 0.01 * sum(kept)


def in_array(host: Host, hidden: Tensor) -> Tensor:
    host.array[1:] = host.array[:-1].copy()
    host.array[0] = float(hidden.detach().float().mean())
    return hidden + 0.01 * float(host.array.sum())


def in_buffer(host: Host, hidden: Tensor) -> Tensor:
    host.calls += 1
    return hidden + 0.01 * host.calls.to(hidden)


def counted(host: Host, hidden: Tensor) -> Tensor:
    host.calls += 1
    return hidden + 0.01 * host.calls


def made_lazily(host: Host, hidden: Tensor) -> Tensor:
    if not hasattr(host, "first"):
        host.first = hidden.detach().float().mean()
        host.register_buffer("offset", torch.zeros(()))
    host.offset += 1
    return hidden + 0.1 * (host.first + 0.1 * host.offset).to(hidden)


def learnt_inside(host: Host, hidden: Tensor) -> Tensor:
    """A step of its own on a parameter's gradient: a backward pass inside the forward pass."""
    with torch.enable_grad():
        (host.head.bias.float().square().sum() + host.inner.square().sum()).backward()
    host.inner.data -= 0.1 * host.inner.grad
    return hidden + 0.01 * host.inner.detach().to(hidden)


def in_counts(host: Host, hidden: Tensor) -> Tensor:
    host.counts["forward"] += 1
    host.order[len(host.order)] = host.counts["forward"]
    host.order.move_to_end(0)
    host.kinds.add(len(host.kinds))
    return hidden + 0.01 * (host.counts["forward"] + len(host.kinds))


def in_stream(host: Host, hidden: Tensor) -> Tensor:
    host.stream.append(0.01)
    host.stream.offset += 0.01
    return hidden + host.stream.offset * len(host.stream)


def in_object(host: Host, hidden: Tensor) -> Tensor:
    host.noise.past.append(host.noise.draws.normal())
    host.noise.past = host.noise.past[-3:]
    return hidden + 0.01 * sum(host.noise.past)


STATES: dict[str, tuple[Callable[[Host], None], Callable[[Host, Tensor], Tensor]]] = {
    "none": (has(), lambda host, hidden: hidden),
    "torch's generator": (has(rng=made_torch), adds(lambda host: torch_draw(host.rng))),
    "numpy's generator": (has(rng=lambda: np.random.default_rng(3)), adds(lambda host: host.rng.normal())),
    "numpy's old generator": (has(rng=lambda: np.random.RandomState(3)), adds(lambda host: host.rng.normal())),
    "numpy's bits": (has(rng=lambda: np.random.MT19937(3)), adds(lambda host: host.rng.random_raw() % 9)),
    "Python's generator": (has(rng=lambda: random.Random(3)), adds(lambda host: host.rng.gauss(0, 1))),
    "generators in a dict": (
        has(rngs=lambda: {"torch": made_torch(), "python": [random.Random(3)]}),
        adds(lambda host: torch_draw(host.rngs["torch"]) + host.rngs["python"][0].random()),
    ),
    "generators in a tuple": (
        has(rngs=lambda: (np.random.default_rng(3), SimpleNamespace(own=made_torch()))),
        adds(lambda host: host.rngs[0].normal() + torch_draw(host.rngs[1].own)),
    ),
    "an object with slots": (has(noise=lambda: Noise(np.random.default_rng(3))), in_object),
    "a tensor bound anew": (has(average=lambda: torch.zeros(())), averaged),
    "a tensor changed in place": (has(average=lambda: torch.zeros(())), averaged_in_place),
    "a list of past values": (has(past=list), remembered),
    "a deque of past values": (has(past=lambda: deque(maxlen=2)), remembered),
    "a cache in a dict": (has(cache=dict), cached_by_size),
    "counts": (has(counts=lambda: defaultdict(int), order=OrderedDict, kinds=set), in_counts),
    "a list of its own class": (has(stream=lambda: Stream()), in_stream),
    "an array": (has(array=lambda: np.zeros(3)), in_array),
    "a plain number": (has(calls=lambda: 0), counted),
    "a buffer": (lambda host: host.register_buffer("calls", torch.zeros(())), in_buffer),
    "what the first pass makes": (has(), made_lazily),
    "globals": (begin_globals, by_globals),
    "attributes of the class": (begin_globals, by_class),
    "a closure": (counting, lambda host, hidden: hidden),
    "a bound method": (has(use=lambda: Counter().use), lambda host, hidden: hidden),
    "a step of its own": (has(inner=lambda: nn.Parameter(torch.ones(()))), learnt_inside),
}
