"""Small models of other people's kinds, and a loop that trains them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from grokscope.tasks import named_task, split

SITE = "mlp.1"  # the neurons of `Attended`


class Attended(nn.Module):
    """One block of attention and MLP with dropout and batch norm: everything that has a mode or draws by chance."""

    def __init__(self, vocabulary: int, classes: int, width: int = 16) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.attention = nn.MultiheadAttention(width, 2, dropout=0.1, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, width))
        self.norm = nn.BatchNorm1d(width)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        stream = self.embed(tokens)
        stream = stream + self.attention(stream, stream, stream, need_weights=False)[0]
        stream = stream + self.mlp(stream)
        return self.head(self.norm(stream[:, -1]))


def attended(task: str = "add_mod7") -> Attended:
    """The same model every time, for tokens [a, b, n]."""
    torch.manual_seed(0)
    symbols = named_task(task).symbols
    return Attended(symbols + 1, symbols)


def pairs_of(task_name: str, fraction: float = 0.5) -> tuple[Tensor, Tensor, Tensor]:
    """Training tokens, their answers, and the mask of training pairs."""
    task = named_task(task_name)
    parts = split(task, fraction, seed=0)
    rows = torch.tensor(parts.train.copy())
    return torch.tensor(task.tokens)[rows], torch.tensor(task.answers)[rows], torch.from_numpy(parts.mask)


def train(
    model: nn.Module,
    tokens: Tensor,
    answers: Tensor,
    steps: int,
    after_step: Callable[[int], Any] = lambda step: None,
    optimizer: torch.optim.Optimizer | None = None,
) -> list[float]:
    """Batches drawn from torch's own generator; the losses."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1.0)
    losses = []
    for step in range(steps):
        after_step(step)
        batch = torch.randint(len(tokens), (16,))
        loss = nn.functional.cross_entropy(model(tokens[batch]), answers[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    after_step(steps)
    return losses
