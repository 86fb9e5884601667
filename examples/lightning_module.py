"""A Lightning module, watched by a callback: addition mod 23.

python examples/lightning_module.py --steps 400
"""

import argparse

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from grokscope import Monitor, named_task
from grokscope.attach.adapters import lightning_callback
from grokscope.specs import Trigger
from grokscope.tasks import split


class Adder(pl.LightningModule):
    """An embedding, an MLP, a head."""

    def __init__(self, symbols: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(symbols + 1, 32)
        self.act = nn.ReLU()
        self.hidden, self.head = nn.Linear(96, 128), nn.Linear(128, symbols)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.act(self.hidden(self.embed(tokens).flatten(1))))

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        tokens, answers = batch
        return nn.functional.cross_entropy(self(tokens), answers)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3, weight_decay=1.0)


def main(steps: int = 400) -> Monitor:
    """Train, and print what was seen."""
    pl.seed_everything(0, verbose=False)
    task = named_task("add_mod23")
    rows = torch.tensor(split(task, 0.5, seed=0).train.copy())
    data = TensorDataset(torch.tensor(task.tokens)[rows], torch.tensor(task.answers)[rows])

    monitor = Monitor("add_mod23", sites=["act"], every=100, train=rows)
    callback = lightning_callback(monitor, rule=Trigger("train_accuracy", restore_after_grokking=True))
    trainer = pl.Trainer(
        max_steps=steps,
        callbacks=[callback],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Adder(task.symbols), DataLoader(data, batch_size=64, shuffle=True))
    for row in monitor.log:
        print(
            f"step {row['step']:>5}  train {row['train_accuracy']:.2f}  FSD {row['fsd']:.2f}  λ {row['weight_decay']:g}"
        )
    print(f"the framework sees it too: grokscope/fsd = {trainer.callback_metrics['grokscope/fsd']:.2f}")
    return monitor


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    main(**vars(parser.parse_args()))
