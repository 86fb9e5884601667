"""FSD as a torchmetrics Metric, fed with the activations of a validation loop: addition mod 23.

python examples/torchmetrics_fsd.py
"""

import torch
from torch import nn

from grokscope import Monitor, named_task
from grokscope.attach import one_hot
from grokscope.attach.adapters import fsd_metric


def main() -> tuple[float, float]:
    """FSD of an untrained MLP: by the metric, batch by batch, and by a monitor."""
    torch.manual_seed(0)
    task = named_task("add_mod23")
    pairs = torch.tensor(task.inputs)
    model = nn.Sequential(nn.Linear(46, 64), nn.ReLU(), nn.Linear(64, 23))
    metric = fsd_metric("add_mod23", neurons=64)
    with torch.no_grad():
        for a, b in ((batch[:, 0], batch[:, 1]) for batch in pairs.split(100)):
            metric.update(model[:2](one_hot(a, b, 23)), a, b)
    by_metric = float(metric.compute())
    by_monitor = Monitor("add_mod23", "1", encode="one_hot").evaluate(model)["fsd"]
    print(f"FSD {by_metric:.4f} by the metric, {by_monitor:.4f} by the monitor")
    return by_metric, by_monitor


if __name__ == "__main__":
    main()
