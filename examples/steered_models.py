"""Three models of other people's kinds, each by its own untouched loop and by three lines of steering.

Nanda et al.'s one-layer transformer in plain PyTorch, a small GPT-2 of Hugging Face's, and an MLP on sparse parity.
Each is trained from the same weights on the same batches until it has generalised stably (validation accuracy ≥ 0.95 at
an evaluation and at every one of the next 2,000 steps) or to the end of its budget. What was found is written as JSON;
`python docs/make_steered_models.py` puts it into docs/how-to/steer.md. On one thread of a CPU it takes a quarter of an
hour. It needs `transformers`.

    python examples/steered_models.py --device cpu --out results/steered_models/cpu.json
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from math import exp, inf, log
from pathlib import Path
from typing import Any

import torch
from nanda import OneLayer
from torch import Tensor, nn

from grokscope import Steering, named_task
from grokscope.files import write_atomically
from grokscope.runs.provenance import provenance
from grokscope.stats import Estimate, estimate_mean, kaplan_meier
from grokscope.tasks import split
from grokscope.timeline import stability

EVERY = 50  # steps between evaluations
SEEDS = 8
Run = dict[str, Any]


def gpt2(vocabulary: int, width: int = 32, layers: int = 1, heads: int = 4) -> nn.Module:
    """A GPT-2 from nothing, without dropout; tokens → logits over all tokens at every position."""
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": vocabulary, "n_positions": 3, "n_embd": width, "n_layer": layers, "n_head": heads}
    ends = {"bos_token_id": vocabulary - 1, "eos_token_id": vocabulary - 1}
    return GPT2LMHeadModel(GPT2Config(**sizes, **ends, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))


def parity_mlp(bits: int, neurons: int = 512) -> nn.Module:
    """One hidden layer of ReLUs."""
    return nn.Sequential(nn.Linear(bits, neurons), nn.ReLU(), nn.Linear(neurons, 2))


@dataclass(frozen=True)
class Host:
    """A model, its task and its own loop."""

    title: str
    """For a table."""
    task: str
    """What it learns."""
    fraction: float
    """Share of the rows that is trained on."""
    model: Callable[[int], nn.Module]
    """From the tokens, or the bits of an input, to the model."""
    betas: tuple[float, float]
    """AdamW's; its learning rate is 0.001 and its weight decay 1, so that λ = 1, for all three."""
    batch: int | None
    """Rows per step; all if not given."""
    budget: int
    """Steps."""

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Its own."""
        return torch.optim.AdamW(model.parameters(), lr=1e-3, betas=self.betas, weight_decay=1.0)


# Learning rate, decay and betas are those of Nanda et al. (2023) and Power et al. (2022) for both transformers. Tasks
# and sizes are small enough for one thread, and such that a run of the untouched loop with another seed (1,000)
# memorises and later generalises; nothing was chosen by steered runs.
HOSTS = {
    "nanda": Host(
        "one-layer transformer of Nanda et al. (width 48), addition mod 23, 0.8 of the pairs, all in each step",
        "add_mod23", 0.8, lambda vocabulary: OneLayer(vocabulary, width=48, heads=4, neurons=192),
        (0.9, 0.98), None, 10_000,
    ),
    "gpt2": Host(
        "Hugging Face GPT-2 (1 layer, width 32), addition mod 31, 0.47 of the pairs, 226 in each step",
        "add_mod31", 0.47, gpt2, (0.9, 0.98), 226, 8000,
    ),
    "parity": Host(
        "MLP of one hidden layer of 512 ReLUs, parity of 3 of 30 bits, 0.25 of the rows, 128 in each step",
        "parity_n30_k3", 0.25, parity_mlp, (0.9, 0.999), 128, 10_000,
    ),
}  # fmt: skip


class Data:
    """A task's inputs and answers on a device, split, with a model's accuracy on what is held out."""

    def __init__(self, host: Host, seed: int, device: str) -> None:
        task, parts = named_task(host.task), split(named_task(host.task), host.fraction, seed)
        has_bits = task.vectors is not None
        self.inputs = torch.tensor(task.vectors if has_bits else task.tokens, device=device)
        self.inputs = self.inputs.float() if has_bits else self.inputs
        self.size = self.inputs.shape[1] if has_bits else task.vocabulary
        self.answers, self.classes = torch.tensor(task.answers, device=device), task.classes
        self.train, self.held_out = (
            torch.tensor(part.copy(), device=device) for part in (parts.train, parts.validation)
        )

    def logits(self, model: nn.Module, rows: Tensor) -> Tensor:
        """At the last position, whatever the model returns around them."""
        found = model(self.inputs[rows])
        found = getattr(found, "logits", found)
        return found[:, -1] if found.ndim == 3 else found

    def accuracy(self, model: nn.Module) -> float:
        """Of the held-out rows."""
        with torch.no_grad():
            guesses = self.logits(model, self.held_out)[:, : self.classes].argmax(dim=1)
            return float((guesses == self.answers[self.held_out]).double().mean())


def train(host: Host, seed: int, is_steered: bool, device: str = "cpu", budget: int | None = None) -> Run:
    """Train one model; when it generalised stably, and what was decided."""
    torch.manual_seed(seed)
    data = Data(host, seed, device)
    model = host.model(data.size).to(device)
    generator = torch.Generator().manual_seed(seed)
    steering = (
        Steering(model, validation=lambda: data.accuracy(model)) if is_steered else None
    )  # the first of three lines
    optimizer = steering or host.optimizer(model)
    seen, last = {0: data.accuracy(model)}, budget or host.budget
    began, used = time.perf_counter(), time.process_time()
    for step in range(1, last + 1):
        rows = data.train
        if host.batch is not None:
            rows = rows[torch.randint(len(rows), (host.batch,), generator=generator).to(device)]
        loss = nn.functional.cross_entropy(data.logits(model, rows).double(), data.answers[rows])  # as Nanda et al.
        optimizer.zero_grad()
        loss.backward()
        if steering is not None:
            steering.observe(loss)  # the second
        optimizer.step()  # the third: as it was
        if step % EVERY == 0:
            seen[step] = steering.log[-1]["validation_accuracy"] if steering else data.accuracy(model)
            if stability([*seen], [*seen.values()]).step is not None:
                break
    steps = max(seen)
    on_a_cpu = device == "cpu"  # the time of this process, which others on the machine do not lengthen
    seconds = time.process_time() - used if on_a_cpu else time.perf_counter() - began
    return {
        "seed": seed,
        "steered": is_steered,
        "stable": stability([*seen], [*seen.values()]).step,
        "grokked": next((at for at, value in seen.items() if value >= 0.95), None),
        "steps": steps,
        "seconds_per_step": round(seconds / max(steps, 1), 6),
        "decisions": steering.decisions if steering else [],
        "validation_accuracy": [round(value, 4) for value in seen.values()],
    }


def compare(runs: Sequence[Run], budget: int) -> dict[str, Any]:
    """Both loops over the same seeds: reached, medians, and how many times sooner the steered one is, by pairs.

    Not reached counts as the budget. The ratio is the geometric mean over seeds of steps before / steps after, with the
    t interval of the mean of its logarithms.
    """
    loops = {
        name: {run["seed"]: run for run in runs if run["steered"] == (name == "after")} for name in ("before", "after")
    }
    waits = {name: {seed: run["stable"] or budget for seed, run in own.items()} for name, own in loops.items()}
    found: dict[str, Any] = {"budget": budget}
    for name, own in loops.items():
        reached = [run["stable"] is not None for run in own.values()]
        median = kaplan_meier([*map(float, waits[name].values())], reached).median
        found[name] = {
            "runs": len(own),
            "reached": sum(reached),
            "median": None if median.value == inf else median.value,
            "worst": max(waits[name].values()) if all(reached) else None,
            "released": sum(any(one["is_final"] for one in run["decisions"]) for run in own.values()),
            "seconds_per_step": statistics.median(run["seconds_per_step"] for run in own.values()),
        }
    logs = estimate_mean([log(waits["before"][seed] / waits["after"][seed]) for seed in loops["before"]])
    ratio = Estimate(exp(logs.value), exp(logs.low), exp(logs.high), logs.items)
    return found | {"ratio": {name: round(getattr(ratio, name), 4) for name in ("value", "low", "high")}}


def _transformers() -> str | None:
    """Its version; None where it is not installed, and the other two models are all that can be trained."""
    try:
        return version("transformers")
    except PackageNotFoundError:
        return None


def main(
    device: str = "cpu",
    models: Sequence[str] = tuple(HOSTS),
    seeds: int = SEEDS,
    first_seed: int = 0,
    budget: int | None = None,
    out: Path | None = None,
) -> dict[str, Any]:
    """Train each model before and after, and print what each needed."""
    if device == "cpu":
        torch.set_num_threads(1)  # more threads make models of this size slower
    made_with = provenance(device) | {"transformers": _transformers()}
    record: dict[str, Any] = {"provenance": made_with, "every": EVERY, "models": {}}
    for name in models:
        host = HOSTS[name]
        numbers = range(first_seed, first_seed + seeds)
        runs = [train(host, seed, steered, device, budget) for seed in numbers for steered in (False, True)]
        found = compare(runs, budget or host.budget)
        record["models"][name] = {"title": host.title, "comparison": found, "runs": runs}
        for word in ("before", "after"):
            own = found[word]
            median = "beyond the budget" if own["median"] is None else f"{own['median']:,.0f} steps"
            print(f"{name:<8} {word:<6} stable {own['reached']}/{own['runs']}, median {median}", flush=True)
        if out is not None:  # after each model, so that what is there is kept
            out.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(out, (json.dumps(record) + "\n").encode())
    return record


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--models", nargs="+", choices=tuple(HOSTS), default=tuple(HOSTS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--budget", type=int, help="steps, if not each model's own")
    parser.add_argument("--out", type=Path, help="a JSON file to write")
    main(**vars(parser.parse_args()))
