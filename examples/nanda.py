"""The model of Nanda et al. (2023) in plain PyTorch, trained until it groks and watched by a monitor.

One layer, no LayerNorm, ReLU, p = 113, 30 % of the pairs, the full batch, AdamW with lr 1e-3, betas .9 and .98 and
λ = 1. Over training it logs accuracies, losses, FSD, Fourier rank, key frequencies, and restricted and excluded loss:
with the keys of each evaluation (what one could know then) and with those of the last (as in the paper's figures). It
stops some time after it has grokked, and writes one JSON: provenance, log, and what the paper reports with what was
found. On CUDA a step is one graph that is replayed without the host.

    python examples/nanda.py --device cuda --out nanda.json
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from grokscope import Monitor, named_task
from grokscope.activations import means_of
from grokscope.files import write_atomically
from grokscope.measures import spectrum
from grokscope.measures.mode_choice import voted_modes
from grokscope.runs.provenance import provenance
from grokscope.tasks import Basis, Task, split

SITE = "mlp.act"
MEASURES = ["fsd", "rank", "concentration", "trig", "excluded"]
WARMUP = 10  # steps over which the learning rate rises
EXPLAINED = 0.85  # of a neuron's variance, by one frequency (§4.3)
# What the original paper prints of its mainline run (Nanda, Chan, Lieberum, Smith and Steinhardt, ICLR 2023). Which
# frequencies are key differs from seed to seed, and so does their number: 3 or 4 in its other runs (C.2.1). Losses are
# those after 40,000 steps.
PRINTED = {
    "number of key frequencies (§4.1)": 5,
    "share of neurons with 85 % of their variance in one frequency (§4.3)": 0.846,
    "memorisation ends, and excluded loss begins to rise (§5.2)": 1400,
    "test accuracy is near 1 (§3)": 10_000,
    "loss (§4.4)": 2.41e-7,
    "loss of cos and sin of w(a + b) at key frequencies alone (§4.4)": 5.54e-8,
}
PRINTED_KEYS = [14, 35, 41, 42, 52]


class Attention(nn.Module):
    """Causal attention without biases."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Parameter(torch.randn(3, width, width) / width**0.5)
        self.out = nn.Parameter(torch.randn(width, width) / width**0.5)

    def forward(self, stream: Tensor) -> Tensor:
        split_heads = [(stream @ one).unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in self.qkv]
        mixed = nn.functional.scaled_dot_product_attention(*split_heads, is_causal=True)
        return mixed.transpose(1, 2).flatten(2) @ self.out


class Mlp(nn.Module):
    """ReLU neurons."""

    def __init__(self, width: int, neurons: int) -> None:
        super().__init__()
        self.into = nn.Parameter(torch.randn(width, neurons) / width**0.5)
        self.bias_in = nn.Parameter(torch.zeros(neurons))
        self.act = nn.ReLU()
        self.out = nn.Parameter(torch.randn(neurons, width) / width**0.5)
        self.bias_out = nn.Parameter(torch.zeros(width))

    def forward(self, stream: Tensor) -> Tensor:
        return self.act(stream @ self.into + self.bias_in) @ self.out + self.bias_out


class OneLayer(nn.Module):
    """[a, b, =] → logits over all tokens at every position."""

    def __init__(self, vocabulary: int, width: int = 128, heads: int = 4, neurons: int = 512) -> None:
        super().__init__()
        self.embed = nn.Parameter(torch.randn(vocabulary, width) / width**0.5)
        self.positions = nn.Parameter(torch.randn(3, width) / width**0.5)
        self.attention, self.mlp = Attention(width, heads), Mlp(width, neurons)
        self.unembed = nn.Parameter(torch.randn(width, vocabulary) / vocabulary**0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        stream = self.embed[tokens] + self.positions
        stream = stream + self.attention(stream)
        return (stream + self.mlp(stream)) @ self.unembed


def high_precision_loss(logits: Tensor, answers: Tensor) -> Tensor:
    """Cross-entropy in float64: in float32 it stops at 1e-7 and grokking with it."""
    return nn.functional.cross_entropy(logits.double(), answers)


def train(
    model: OneLayer,
    tokens: Tensor,
    answers: Tensor,
    steps: int,
    compiled: bool,
    evaluate: Callable[[int], object],
    graphed: bool = False,
) -> int:
    """The full batch at every step, until an evaluation says that it is enough; the steps taken."""
    cuda = tokens.device.type == "cuda"
    graphed = graphed and cuda
    settings = {"lr": 1e-3, "betas": (0.9, 0.98), "weight_decay": 1.0}
    optimizer = torch.optim.AdamW(model.parameters(), fused=cuda, capturable=graphed, **settings)
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / WARMUP, 1.0))
    forward = torch.compile(model) if compiled else model

    def one_step() -> None:
        optimizer.zero_grad(set_to_none=True)
        high_precision_loss(forward(tokens)[:, -1], answers).backward()
        optimizer.step()

    take = one_step
    for step in range(steps):
        if evaluate(step):
            return step
        if step == WARMUP and graphed:
            optimizer.zero_grad(set_to_none=True)
            take = _graph_of(one_step).replay
        if step < WARMUP and graphed:
            _aside(one_step)  # as a capture wants it
        else:
            take()
        if step < WARMUP:
            warmup.step()
    evaluate(steps)
    return steps


def _aside(work: Callable[[], None]) -> None:
    """On another stream, one after the other with what is around it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()
    torch.cuda.current_stream().wait_stream(stream)


def _graph_of(work: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """One step as a graph; capturing it trains nothing."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def final_spectra(model: OneLayer, task: Task) -> dict[str, Any]:
    """Key frequencies by the neurons' votes, and where embedding and logits have their power."""
    device, basis = model.embed.device, task.basis()
    tokens, answers = torch.tensor(task.tokens, device=device), torch.tensor(task.answers, device=device)
    held: list[Tensor] = []
    handle = model.mlp.act.register_forward_hook(lambda module, inputs, output: held.append(output[:, -1]))
    with torch.no_grad():
        logits = model(tokens)[:, -1, : task.classes]
    handle.remove()
    keys = voted_modes(held[0][None], task, basis)[0].nonzero().flatten() + 1
    parts = {
        "embedding": model.embed.detach()[: task.symbols],
        "logits": means_of(logits[None], answers, task.symbols).means[0],
    }
    shares = {name: _shares(spectrum(part[None], basis).power[0].sum(dim=-1)) for name, part in parts.items()}
    explained = explained_by_one(held[0].unflatten(0, (task.symbols, task.symbols)), basis)
    single = float((explained > EXPLAINED).double().mean())
    return {"key_frequencies": keys.tolist(), "single_frequency_neurons": single, "power_shares": shares}


def explained_by_one(neurons: Tensor, basis: Basis) -> Tensor:
    """The share of each neuron's variance over (a, b) in the terms of its strongest frequency, alone and multiplied."""
    waves = torch.tensor(basis.modes.basis, device=neurons.device)
    away = neurons.double() - neurons.double().mean(dim=(0, 1))
    squares = torch.einsum("ca,abj,bd->cdj", waves.T, away, waves).square()
    mode = torch.tensor(basis.modes.column_mode, device=neurons.device)
    places = [torch.nn.functional.pad((mode == k).nonzero().flatten() + 1, (1, 0)) for k in range(len(basis.modes))]
    parts = torch.stack([squares[place][:, place].sum(dim=(0, 1)) for place in places])
    return parts.amax(dim=0) / squares.sum(dim=(0, 1)).clamp(min=1e-300)


def _shares(power: Tensor) -> dict[str, float]:
    """The frequencies with at least a hundredth of the power, strongest first."""
    share = power / power.sum()
    return {str(int(f) + 1): round(float(share[f]), 4) for f in share.argsort(descending=True) if share[f] >= 0.01}


def main(
    device: str = "cpu",
    steps: int = 40_000,
    out: Path | None = None,
    every: int = 100,
    seed: int = 0,
    p: int = 113,
    compiled: bool = False,
    after: int = 10_000,
    graphed: bool = True,
) -> dict[str, Any]:
    """Train, measure again with the keys of the last evaluation, and write one JSON."""
    torch.manual_seed(seed)
    task = named_task(f"add_mod{p}")
    rows = torch.tensor(split(task, 0.3, seed).train.copy())
    model = OneLayer(task.vocabulary).to(device)
    tokens, answers = (torch.tensor(part, device=device)[rows.to(device)] for part in (task.tokens, task.answers))
    monitor = Monitor(task, sites=[SITE], measures=MEASURES, every=every, train=rows)
    kept: dict[int, dict[str, Tensor]] = {}
    begun = time.perf_counter()

    def evaluate(step: int) -> bool:
        """Whether it has been seen for long enough since it grokked."""
        row = monitor.step(step)
        if row is not None:
            kept[step] = {name: value.detach().clone() for name, value in model.state_dict().items()}
            if step % (10 * every) == 0:
                print(_line(row), flush=True)
        grokked = monitor.timeline().grokked if row is not None else None
        return grokked is not None and step >= grokked + after

    with monitor.attach(model):
        taken = train(model, tokens, answers, steps, compiled, evaluate, graphed)
    seconds = time.perf_counter() - begun
    found = final_spectra(model, task)
    later = Monitor(task, [SITE], ["trig", "excluded"], every, train=rows, keys=found["key_frequencies"])
    for step, weights in kept.items():
        model.load_state_dict(weights)
        later.measure(model, step)
    timeline, columns = monitor.timeline(), monitor.columns()
    columns |= {f"{name}_with_final_keys": later.columns()[name] for name in ("trig", "excluded")}
    settings = {"p": p, "steps": steps, "every": every, "seed": seed, "compiled": compiled, "after": after}
    result = {
        "provenance": provenance(device),
        "settings": settings | {"train_fraction": 0.3},
        "seconds": round(seconds, 1),
        "steps": taken,
        "outcome": timeline.outcome.name.lower(),
        "memorized": timeline.memorized,
        "grokked": timeline.grokked,
        "fsd_synchronized": timeline.sync.step,
        **found,
        "printed_key_frequencies": PRINTED_KEYS,
        "comparison": compared(found, columns, timeline.grokked),
        "log": {name: [value if value == value else None for value in values] for name, values in columns.items()},
    }
    print(f"{timeline.outcome}: memorised at {timeline.memorized}, grokked at {timeline.grokked}, {seconds:.0f} s")
    print(f"key frequencies {found['key_frequencies']}; the paper's run has {PRINTED_KEYS}")
    for row in result["comparison"]:
        print(f"{row['what']}: {row['found']} here, {row['printed']} printed")
    if out is not None:
        write_atomically(out, (json.dumps(result) + "\n").encode())
        print(f"wrote {out}")
    return result


def compared(found: dict[str, Any], columns: dict[str, list[Any]], grokked: int | None) -> list[dict[str, Any]]:
    """What the paper prints beside what this run has, in the order of PRINTED."""
    excluded = columns["excluded_with_final_keys"]
    ours = (
        len(found["key_frequencies"]),
        round(found["single_frequency_neurons"], 3),
        columns["step"][excluded.index(min(excluded))],
        grokked,
        columns["loss"][-1],
        columns["trig_with_final_keys"][-1],
    )
    return [
        {"what": what, "printed": value, "found": own} for (what, value), own in zip(PRINTED.items(), ours, strict=True)
    ]


def _line(row: dict[str, Any]) -> str:
    return (
        f"step {row['step']:>6}  train {row['train_loss']:.2e}  validation {row['validation_loss']:.2e} "
        f"({row['validation_accuracy']:.2f})  FSD {row['fsd']:.2f}  rank {row['rank']:.0f}  "
        f"restricted {row['trig']:.2e}  excluded {row['excluded']:.2e}  keys {row['trig_modes']:.0f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=40_000, help="at the most")
    parser.add_argument("--after", type=int, default=10_000, help="steps to go on after it has grokked")
    parser.add_argument("--out", type=Path, default=None, help="where to write the result, as JSON")
    parser.add_argument("--every", type=int, default=100, help="steps between evaluations")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--p", type=int, default=113)
    parser.add_argument("--compile", dest="compiled", action="store_true", help="compile the forward pass")
    parser.add_argument("--no-graph", dest="graphed", action="store_false", help="on CUDA, take every step by itself")
    main(**vars(parser.parse_args()))
