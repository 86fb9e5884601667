"""Three models of other people's kinds, each by its own untouched loop and by three lines of steering.

Nanda et al.'s one-layer transformer, a decoder as Hugging Face writes it (tied embeddings, LayerNorm, dropout), and an
MLP on sparse parity. Each is trained until it has generalised stably (validation accuracy ≥ 0.95 at every evaluation of
2,000 steps) or to the end of its budget, and the steps before and after are written as JSON.

    python examples/steered_models.py --device cuda --models nanda --seeds 8 --out steered.json
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from nanda import OneLayer
from torch import Tensor, nn

from grokscope import Steering, named_task
from grokscope.files import write_atomically
from grokscope.runs.provenance import provenance
from grokscope.stats import median_time
from grokscope.tasks import split
from grokscope.timeline import stability

EVERY = 50  # steps between evaluations


class Decoder(nn.Module):
    """A small decoder with Hugging Face's names: wte, wpe, h, ln_f, and a head that is the embedding."""

    def __init__(self, vocabulary: int, width: int = 128, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(3, width)
        block = {"nhead": heads, "dim_feedforward": 4 * width, "activation": "gelu", "dropout": 0.0}
        self.h = nn.ModuleList(
            nn.TransformerEncoderLayer(width, batch_first=True, norm_first=True, **block) for _ in range(layers)
        )
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        nn.init.normal_(self.wte.weight, std=0.02)
        self.lm_head.weight = self.wte.weight

    def get_output_embeddings(self) -> nn.Module:
        """As `transformers` has it."""
        return self.lm_head

    def forward(self, tokens: Tensor) -> Tensor:
        stream = self.wte(tokens) + self.wpe.weight
        for block in self.h:
            stream = block(stream)
        logits: Tensor = self.lm_head(self.ln_f(stream))
        return logits


class Parity(nn.Module):
    """One hidden layer of ReLUs."""

    def __init__(self, bits: int, neurons: int = 512) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(bits, neurons), nn.ReLU(), nn.Linear(neurons, 2))

    def forward(self, bits: Tensor) -> Tensor:
        logits: Tensor = self.layers(bits)
        return logits


@dataclass(frozen=True)
class Host:
    """A model, its task and its own loop."""

    task: str
    """What it learns."""
    fraction: float
    """Share of the rows that is trained on."""
    model: Callable[[int], nn.Module]
    """From the tokens, or the bits of an input, to the model."""
    optimizer: Callable[[Any], torch.optim.Optimizer]
    """Its own, from the parameters."""
    batch: int | None
    """Rows per step; all if not given."""
    budget: int
    """Steps."""


HOSTS = {
    "nanda": Host(
        "add_mod113",
        0.3,
        OneLayer,
        lambda parameters: torch.optim.AdamW(parameters, lr=1e-3, betas=(0.9, 0.98), weight_decay=1.0),
        None,
        15_000,
    ),
    "decoder": Host(
        "add_mod97",
        0.3,
        Decoder,
        lambda parameters: torch.optim.AdamW(parameters, lr=1e-3, weight_decay=1.0),
        512,
        10_000,
    ),
    "parity": Host(
        "parity_n30_k3",
        0.25,
        Parity,
        lambda parameters: torch.optim.AdamW(parameters, lr=1e-3, weight_decay=1.0),
        128,
        10_000,
    ),
}


def train(host: Host, seed: int, is_steered: bool, device: str = "cpu", budget: int | None = None) -> dict[str, Any]:
    """Train one model; when it generalised stably, and what was decided."""
    torch.manual_seed(seed)
    task = named_task(host.task)
    given = torch.tensor(task.tokens if task.vectors is None else task.vectors, device=device)
    given = given.float() if task.vectors is not None else given
    answers = torch.tensor(task.answers, device=device)
    parts = split(task, host.fraction, seed)
    rows, held_out = (torch.tensor(part.copy(), device=device) for part in (parts.train, parts.validation))
    model = host.model(int(given.max()) + 1 if task.vectors is None else given.shape[1]).to(device)
    generator = torch.Generator().manual_seed(seed)

    def logits(chosen: Tensor) -> Tensor:
        found: Tensor = model(given[chosen])
        return found[:, -1] if found.ndim == 3 else found

    def accuracy() -> float:
        with torch.no_grad():
            return float((logits(held_out)[:, : task.classes].argmax(dim=1) == answers[held_out]).double().mean())

    steering = Steering(model, validation=accuracy) if is_steered else None  # the first of three lines
    optimizer = steering or host.optimizer(model.parameters())
    seen: dict[int, float] = {0: accuracy()}
    began, last = time.perf_counter(), budget or host.budget
    for step in range(1, last + 1):
        size = host.batch or len(rows)
        batch = rows[torch.randint(len(rows), (size,), generator=generator).to(device)] if host.batch else rows
        loss = nn.functional.cross_entropy(logits(batch).double(), answers[batch])
        optimizer.zero_grad()
        loss.backward()
        if steering is not None:
            steering.observe(loss)  # the second
        optimizer.step()  # the third: as it was
        if step % EVERY == 0:
            seen[step] = steering.log[-1]["validation_accuracy"] if steering else accuracy()
            if stability([*seen], [*seen.values()]).step is not None:
                break
    stable = stability([*seen], [*seen.values()])
    return {
        "seed": seed,
        "steered": is_steered,
        "stable": stable.step,
        "grokked": next((at for at, value in seen.items() if value >= 0.95), None),
        "steps": max(seen),
        "seconds": round(time.perf_counter() - began, 2),
        "decisions": steering.decisions if steering else [],
    }


def main(
    device: str = "cpu",
    models: tuple[str, ...] = tuple(HOSTS),
    seeds: int = 8,
    budget: int | None = None,
    out: Path | None = None,
) -> dict[str, list[dict[str, Any]]]:
    """Train each model before and after, and print what each needed."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name in models:
        kinds = [(is_steered, seed) for is_steered in (False, True) for seed in range(seeds)]
        found[name] = [train(HOSTS[name], seed, is_steered, device, budget) for is_steered, seed in kinds]
        for is_steered in (False, True):
            own = [run for run in found[name] if run["steered"] == is_steered]
            reached = sum(run["stable"] is not None for run in own)
            median = median_time(run["stable"] for run in own)
            word = "after" if is_steered else "before"
            print(f"{name:<8} {word:<6} stable {reached}/{len(own)}, median {median:,.0f} steps", flush=True)
    if out is not None:
        content = {"provenance": provenance(device), "runs": found}
        write_atomically(out, (json.dumps(content, indent=1) + "\n").encode())
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--models", nargs="+", choices=tuple(HOSTS), default=tuple(HOSTS))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--budget", type=int, help="steps, if not each model's own")
    parser.add_argument("--out", type=Path, help="a JSON file to write")
    main(**vars(parser.parse_args()))
