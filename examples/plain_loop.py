"""A plain PyTorch loop with a monitor and a controller: addition mod 23 by an MLP.

python examples/plain_loop.py --steps 2000 --out runs/mine
"""

import argparse
from pathlib import Path

import torch
from torch import nn

from grokscope import Monitor, WeightDecayController, named_task
from grokscope.attach import one_hot
from grokscope.specs import Trigger
from grokscope.tasks import split


def main(steps: int = 2000, out: Path | None = None) -> Monitor:
    """Train, and print what was seen."""
    torch.manual_seed(0)
    task = named_task("add_mod23")
    a, b = torch.tensor(task.inputs.T)
    answers = torch.tensor(task.answers)
    is_train = split(task, 0.5, seed=0).mask
    model = nn.Sequential(nn.Linear(46, 128), nn.ReLU(), nn.Linear(128, 23))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1.0)

    monitor = Monitor("add_mod23", sites=["1"], every=100, encode="one_hot", train=is_train, out=out)
    rule = Trigger("train_accuracy", weight_decay=3.0, restore_after_grokking=True)
    controller = WeightDecayController(optimizer, monitor, rule)
    inputs, labels = one_hot(a, b, 23)[is_train], answers[is_train]
    with monitor.attach(model):
        for step in range(steps + 1):
            monitor.step(step)
            controller.step()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    for row in monitor.log[:: max(1, len(monitor.log) // 10)]:
        print(
            f"step {row['step']:>5}  train {row['train_accuracy']:.2f}  validation {row['validation_accuracy']:.2f}  "
            f"FSD {row['fsd']:.2f}  λ {row['weight_decay']:g}"
        )
    for change in controller.log:
        print(f"step {change['step']}: λ {change['was']:g} → {change['weight_decay']:g}, as {change['why']}")
    return monitor


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=None, help="a folder of runs, for grokscope list and show")
    main(**vars(parser.parse_args()))
