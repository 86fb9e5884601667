"""What a monitor costs somebody's own loop: one evaluation in training steps, and its share of training at every = 100.

Nanda et al.'s model in plain PyTorch, p = 113, all 12,769 pairs at every evaluation. Training and
evaluating take turns, so that a slow minute of the machine is everybody's.
"""

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.peers import synchronize
from benchmarks.provenance import save
from grokscope import Monitor, named_task
from grokscope.tasks import split

EVERY = 100
STEPS = {512: 20, 3830: 4}  # steps in a turn, for a batch and for the full batch
MEASURES = {"FSD and rank": ["fsd", "rank"], "with restricted and excluded loss": ["fsd", "rank", "trig", "excluded"]}


def nanda() -> Any:
    path = Path(__file__).parents[1] / "examples" / "nanda.py"
    spec = importlib.util.spec_from_file_location("nanda", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def seconds(work: Callable[[], object], device: str) -> float:
    synchronize(torch.device(device))
    start = time.perf_counter()
    work()
    synchronize(torch.device(device))
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    device, example = chosen.device, nanda()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    task = named_task("add_mod113")
    rows = torch.tensor(split(task, 0.3, seed=0).train.copy())
    model = example.OneLayer(task.vocabulary).to(device)
    tokens, answers = (torch.tensor(part, device=device)[rows.to(device)] for part in (task.tokens, task.answers))
    monitors = {name: Monitor(task, [example.SITE], measures, train=rows) for name, measures in MEASURES.items()}
    works: dict[str, Callable[[], object]] = {
        f"step of {batch} pairs": lambda batch=batch, steps=steps: example.train(
            model, tokens[:batch], answers[:batch], steps, False, lambda step: None
        )
        for batch, steps in STEPS.items()
    }
    works |= {name: lambda monitor=monitor: monitor.evaluate(model) for name, monitor in monitors.items()}
    turns = dict(zip(works, [*STEPS.values(), *(1 for _ in monitors)], strict=True))
    for work in works.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(chosen.rounds):
        for name, work in works.items():
            times[name].append(seconds(work, device) / turns[name])
    medians = {name: statistics.median(values) for name, values in times.items()}
    record = [
        {
            "evaluation": evaluation,
            "training": step,
            "evaluation_ms": round(1e3 * medians[evaluation], 2),
            "step_ms": round(1e3 * medians[step], 3),
            "evaluation_in_steps": round(medians[evaluation] / medians[step], 2),
            "share_of_training": round(medians[evaluation] / (EVERY * medians[step]), 4),
        }
        for step in list(works)[: len(STEPS)]
        for evaluation in monitors
    ]
    for row in record:
        cost = f"{row['evaluation_in_steps']} steps, {row['share_of_training']:.1%}"
        print(f"{row['evaluation']:>34}, {row['training']}: {cost}")
    save(f"monitor-{device}", {"rows": record, "rounds": chosen.rounds, "every": EVERY, "p": 113}, device)


if __name__ == "__main__":
    main()
