"""A site read by an nnsight expression, in a plain loop: addition mod 23.

python examples/nnsight_site.py --steps 200
"""

import argparse

import torch
from torch import nn

from grokscope import Monitor, named_task
from grokscope.attach import one_hot
from grokscope.attach.adapters import nnsight_site


def main(steps: int = 200) -> Monitor:
    """Train, and print what was seen."""
    torch.manual_seed(0)
    task = named_task("add_mod23")
    a, b = torch.tensor(task.inputs.T)
    inputs, answers = one_hot(a, b, task.symbols), torch.tensor(task.answers)
    model = nn.Sequential(nn.Linear(46, 64), nn.ReLU(), nn.Linear(64, 23))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    # Beside the module's output by its name, any expression: here the positive part of its input.
    expression = nnsight_site(lambda traced: traced[0].output.relu(), name="traced")
    monitor = Monitor("add_mod23", sites=["1", expression], every=50, encode="one_hot")
    with monitor.attach(model):
        for step in range(steps + 1):
            monitor.step(step)
            loss = nn.functional.cross_entropy(model(inputs), answers)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    for row in monitor.log:
        print(f"step {row['step']:>4}  accuracy {row['accuracy']:.2f}  FSD {row['fsd']:.3f} = {row['fsd@traced']:.3f}")
    return monitor


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    main(**vars(parser.parse_args()))
