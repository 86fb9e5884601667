"""What others run: the paper's training as most repositories write it, and as PyTorch's and JAX's own recipes do.

The work is everybody's: one AdamW step of the p = 97 model on a shuffled batch of 512 (the epoch's last has 262), and
now and then accuracy, loss, norm and block-0 FSD over all 9,409 pairs. Each peer is given what costs it nothing: data
on the device, no logging, no reading of the loss between measurements. Matmul precision is the framework's default:
float32 in PyTorch, TF32 in JAX on a GPU.
"""

import argparse
import importlib.util
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import cross_entropy

from grokscope.tasks import named_task, split

__all__ = ["PEERS", "Encoder", "Measurement", "Peer", "available", "build", "throughput"]

SYMBOLS, POSITIONS, WIDTH, HEADS, MLP_WIDTH, LAYERS = 97, 3, 128, 4, 512, 2
TRAIN_FRACTION, BATCH = 0.3, 512
STEPS_PER_EPOCH = 6  # ⌈2,822 / 512⌉
LEARNING_RATE, WEIGHT_DECAY, BETA1, BETA2, EPSILON = 1e-3, 1.0, 0.9, 0.999, 1e-8
FREQUENCIES = SYMBOLS // 2
CHANCE = 1 / FREQUENCIES
PEERS = ("naive", "compiled", "compiled_graphs", "vmap", "jax")


@dataclass(frozen=True)
class Measurement:
    """What a run is asked every few hundred steps; one number per run."""

    train_loss: list[float]
    """Mean cross-entropy over the training pairs."""
    train_accuracy: list[float]
    """Share of the training pairs answered correctly."""
    validation_loss: list[float]
    """The same over all other pairs."""
    validation_accuracy: list[float]
    """The same over all other pairs."""
    norm: list[float]
    """Euclidean norm of all parameters together."""
    fsd: list[float]
    """Frequency Synchronization Degree of block 0's MLP at the last position (paper: Definition 2)."""


class Peer(Protocol):
    """One way to train; its state lives inside."""

    runs: int
    """Runs advanced by each step."""

    def steps(self, n: int) -> None:
        """Take n optimiser steps; may return before the device has finished."""

    def measure(self) -> Measurement:
        """Evaluate every run."""

    def wait(self) -> None:
        """Return once the device has finished."""


@dataclass(frozen=True, eq=False)
class Data:
    """All pairs, and each run's split of them."""

    tokens: Tensor
    """[a, b, separator] of every pair."""
    answers: Tensor
    """Of every pair."""
    train: Tensor
    """[runs, 2822] rows of the pairs."""
    validation: Tensor
    """[runs, 6587] rows of the pairs."""


class Encoder(nn.Module):
    """The paper's transformer (Appendix B) from PyTorch's own encoder layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS + 1, WIDTH)
        self.position = nn.Embedding(POSITIONS, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                WIDTH, HEADS, MLP_WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            for _ in range(LAYERS)
        )
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits at the last position, [inputs, 97]."""
        x = self.embed(tokens) + self.position.weight
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x[:, -1]))


class OneRun:
    """An `Encoder` and torch.optim.AdamW: eager with the optimiser's defaults, or compiled with the fused one."""

    runs = 1

    def __init__(
        self, device: str, seed: int = 0, mode: Literal["eager", "default", "reduce-overhead"] = "eager"
    ) -> None:
        self.device = torch.device(device)
        self.data = paper_data(device, [seed])
        self.model = seeded_encoder(seed).to(device)
        fused = None if mode == "eager" else True
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=fused
        )
        self._batches = shuffled_batches(self.data.train, seed)
        self._uses_graphs = mode == "reduce-overhead"
        self._loss = self._plain_loss
        if mode != "eager":
            # Each peer compiles the same code for its own weights and two batch sizes; past the limit of 8 it would
            # silently run eagerly.
            torch._dynamo.config.recompile_limit = 256
            torch._dynamo.config.accumulated_recompile_limit = 1024
            self._loss = torch.compile(self._plain_loss, mode=mode, dynamic=False, fullgraph=True)

    def steps(self, n: int) -> None:
        """Take n optimiser steps."""
        for _ in range(n):
            self._step(next(self._batches)[0])

    def measure(self) -> Measurement:
        """Through the eager module, whose hooks a compiled one would not call."""
        return measured([self.model], self.data)

    def wait(self) -> None:
        """Return once the device has finished."""
        synchronize(self.device)

    def _plain_loss(self, tokens: Tensor, answers: Tensor) -> Tensor:
        return cross_entropy(self.model(tokens), answers)

    def _step(self, rows: Tensor) -> None:
        # CUDA graphs own the gradients they return: let go of the last step's before the next begins.
        self.optimizer.zero_grad(set_to_none=True)
        if self._uses_graphs:
            torch.compiler.cudagraph_mark_step_begin()
        self._loss(self.data.tokens[rows], self.data.answers[rows]).backward()
        self.optimizer.step()


class Vmapped:
    """PyTorch's ensembling recipe: `stack_module_state`, vmap over the gradient of `functional_call`, one AdamW.

    The optimiser is the fused one, which is elementwise and so the same for stacked weights.
    """

    def __init__(self, device: str, runs: int, seed: int = 0) -> None:
        self.runs = runs
        self.device = torch.device(device)
        seeds = range(seed, seed + runs)
        self.data = paper_data(device, seeds)
        self.model = seeded_encoder(seed).to(device)
        self.parameters, _ = stack_module_state([seeded_encoder(s).to(device) for s in seeds])
        self.optimizer = torch.optim.AdamW(
            self.parameters.values(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True
        )
        self._batches = shuffled_batches(self.data.train, seed)
        # Dropout of 0 draws nothing, but vmap wants to be told what to do with chance.
        self._gradients = vmap(grad(self._loss), randomness="different")

    def steps(self, n: int) -> None:
        """Take n optimiser steps."""
        for _ in range(n):
            self._step(next(self._batches))

    def measure(self) -> Measurement:
        """One run after another: hooks do not see through vmap."""
        return measured(self._models(), self.data)

    def wait(self) -> None:
        """Return once the device has finished."""
        synchronize(self.device)

    def _models(self) -> Iterator[Encoder]:
        for run in range(self.runs):
            self.model.load_state_dict({name: stacked[run] for name, stacked in self.parameters.items()})
            yield self.model

    def _loss(self, parameters: dict[str, Tensor], tokens: Tensor, answers: Tensor) -> Tensor:
        return cross_entropy(functional_call(self.model, parameters, (tokens,)), answers)

    def _step(self, rows: Tensor) -> None:
        # The fused attention kernels have no batching rule for their backward (pytorch/pytorch #117016) and would
        # loop over the runs.
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
            gradients = self._gradients(self.parameters, self.data.tokens[rows], self.data.answers[rows])
        for name, parameter in self.parameters.items():
            parameter.grad = gradients[name]
        self.optimizer.step()


def available(device: str) -> tuple[str, ...]:
    """The peers that this machine can build: JAX where it is installed, CUDA graphs where there is CUDA."""
    missing = set() if importlib.util.find_spec("jax") else {"jax"}
    if not device.startswith("cuda"):
        missing.add("compiled_graphs")
    return tuple(name for name in PEERS if name not in missing)


def build(name: str, device: str, runs: int = 1, seed: int = 0) -> Peer:
    """A peer by name; its runs have the seeds from `seed` on."""
    if name == "vmap":
        return Vmapped(device, runs, seed)
    if name == "jax":
        from benchmarks.peers_jax import JaxPeer

        return JaxPeer(device, runs, seed)
    if runs != 1:
        raise ValueError(f"{name} trains one run at a time, got runs = {runs}")
    match name:
        case "naive":
            return OneRun(device, seed)
        case "compiled":
            return OneRun(device, seed, "default")
        case "compiled_graphs":
            return OneRun(device, seed, "reduce-overhead")
    raise ValueError(f"no peer {name!r}; there are {', '.join(PEERS)}")


def throughput(peer: Peer, steps: int, measure_every: int = 0) -> float:
    """Run-steps per second, measuring after every `measure_every` steps (0: never), everything compiled before."""
    warm_up(peer)
    stride = measure_every or steps
    start = time.perf_counter()
    for done in range(0, steps, stride):
        now = min(stride, steps - done)
        peer.steps(now)
        if now == measure_every:
            peer.measure()
    peer.wait()
    return peer.runs * steps / (time.perf_counter() - start)


def warm_up(peer: Peer) -> None:
    """Compile and record all that will be run, wherever in its epoch the peer stands.

    A CUDA graph is replayed from the third call on, for each batch size; JAX has a program for whole epochs and one
    for each batch size.
    """
    for steps in (4 * STEPS_PER_EPOCH - 1, STEPS_PER_EPOCH + 1):
        peer.steps(steps)
        peer.measure()
    peer.wait()


def seeded_encoder(seed: int) -> Encoder:
    """PyTorch's default initialization from this seed, on the CPU."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Encoder()


def paper_data(device: str, seeds: Sequence[int]) -> Data:
    """Addition modulo 97, with each seed's split."""
    task = named_task("add_mod97")
    splits = [split(task, TRAIN_FRACTION, seed) for seed in seeds]
    return Data(
        tokens=torch.tensor(task.tokens, device=device),
        answers=torch.tensor(task.answers, device=device),
        train=torch.stack([torch.tensor(s.train) for s in splits]).to(device),
        validation=torch.stack([torch.tensor(s.validation) for s in splits]).to(device),
    )


def shuffled_batches(train: Tensor, seed: int) -> Iterator[Tensor]:
    """Each step's rows [runs, batch], without end: every epoch is shuffled anew, its last batch is partial."""
    generator = torch.Generator(train.device).manual_seed(seed)
    while True:
        order = torch.rand(train.shape, generator=generator, device=train.device).argsort(dim=1)
        yield from train.gather(1, order).split(BATCH, dim=1)


@torch.no_grad()
def measured(models: Sequence[Encoder] | Iterator[Encoder], data: Data) -> Measurement:
    """Each run's model on all pairs at once, with a hook on block 0."""
    columns: dict[str, list[float]] = {name: [] for name in Measurement.__dataclass_fields__}
    for model, train, validation in zip(models, data.train, data.validation, strict=True):
        logits, hidden = logits_and_hidden(model, data.tokens)
        for name, rows in (("train", train), ("validation", validation)):
            columns[f"{name}_loss"].append(cross_entropy(logits[rows], data.answers[rows]).item())
            correct = logits[rows].argmax(dim=1) == data.answers[rows]
            columns[f"{name}_accuracy"].append(correct.float().mean().item())
        columns["norm"].append(nn.utils.parameters_to_vector(model.parameters()).norm().item())
        columns["fsd"].append(synchronization(hidden, data.answers))
    return Measurement(**columns)


def logits_and_hidden(model: Encoder, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Logits, and block 0's activations after GELU at the last position.

    The model stays in training mode, in which it computes the same (dropout is 0): in evaluation mode the encoder layer
    may take a fused path that does not call its linear maps.
    """
    seen: list[Tensor] = []
    handle = model.layers[0].linear2.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0][:, -1]))
    try:
        return model(tokens), seen[0]
    finally:
        handle.remove()


def synchronization(hidden: Tensor, answers: Tensor) -> float:
    """FSD: the share of neurons whose answer-conditioned mean has the commonest dominant frequency, against chance."""
    sums = torch.zeros(SYMBOLS, hidden.shape[1], device=hidden.device).index_add_(0, answers, hidden)
    means = sums / answers.bincount(minlength=SYMBOLS)[:, None]
    power = torch.fft.rfft(means - means.mean(dim=0), dim=0).abs().square()[1:]
    participation = power.argmax(dim=0).bincount(minlength=FREQUENCIES) / hidden.shape[1]
    return (participation.max().item() - CHANCE) / (1 - CHANCE)


def synchronize(device: torch.device) -> None:
    """Wait for a GPU; a CPU has always finished."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main() -> None:
    """Measure one peer in this process and print it as JSON."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--measure-every", type=int, default=0)
    parser.add_argument("--threads", type=int, help="PyTorch's CPU threads; by default what OMP_NUM_THREADS says")
    chosen = parser.parse_args()
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    if chosen.peer not in available(chosen.device):
        print(json.dumps({"peer": chosen.peer, "skipped": f"not available on {chosen.device}"}))
        return
    peer = build(chosen.peer, chosen.device, chosen.runs)
    speed = throughput(peer, chosen.steps, chosen.measure_every)
    print(json.dumps({**vars(chosen), "run_steps_per_second": speed, "last": asdict(peer.measure())}))


if __name__ == "__main__":
    main()
