"""A TransformerLens model, read at its own hook names: addition mod 23.

python examples/transformer_lens_model.py --steps 300
"""

import argparse

import torch
from torch import nn
from transformer_lens.config import TransformerBridgeConfig
from transformer_lens.model_bridge import TransformerBridge

from grokscope import Monitor, named_task
from grokscope.tasks import split

SITES = ["blocks.0.mlp.hook_post", "blocks.0.hook_attn_out"]


def main(steps: int = 300) -> Monitor:
    """Train, and print what was seen."""
    torch.manual_seed(0)
    task = named_task("add_mod23")
    rows = torch.tensor(split(task, 0.5, seed=0).train.copy())
    model = TransformerBridge.boot_native(
        TransformerBridgeConfig(
            d_model=32,
            d_head=16,
            n_heads=2,
            n_layers=1,
            n_ctx=3,
            d_vocab=task.vocabulary,
            d_vocab_out=task.classes,
            d_mlp=64,
            act_fn="relu",
            normalization_type=None,
            seed=0,
        )
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1.0, betas=(0.9, 0.98))
    tokens, answers = torch.tensor(task.tokens)[rows], torch.tensor(task.answers)[rows]

    monitor = Monitor("add_mod23", sites=SITES, every=50, train=rows)
    with monitor.attach(model, optimizer):
        for step in range(steps + 1):
            monitor.step(step)
            loss = nn.functional.cross_entropy(model(tokens)[:, -1], answers)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    for row in monitor.log:
        attention = row["fsd@blocks.0.hook_attn_out"]
        print(
            f"step {row['step']:>5}  train {row['train_accuracy']:.2f}  FSD {row['fsd']:.2f}, attention {attention:.2f}"
        )
    return monitor


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    main(**vars(parser.parse_args()))
