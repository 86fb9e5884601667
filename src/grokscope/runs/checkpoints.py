"""A stored run at one step: its weights, as a module and as what measures read."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from grokscope.activations import RunStack, subject_of
from grokscope.model import ReferenceModule, layout_of, padded_size, reference_module
from grokscope.shapes import Float
from grokscope.specs import RunSpec
from grokscope.tasks import Task, named_task
from grokscope.training.checkpoint import padded_row

__all__ = ["Checkpoint", "stack_checkpoints"]


@dataclass(frozen=True)
class Checkpoint:
    """A run at one step."""

    spec: RunSpec
    """What was run."""
    step: int
    """The optimiser step."""
    tensors: dict[str, Tensor]
    """The stored weights, by name."""

    @property
    def task(self) -> Task:
        """What it learns."""
        return named_task(self.spec.task)

    def activations(self, site: str) -> Float[Tensor, "inputs *rest"]:
        """A site's value at the last position for every pair, in the order of `task.inputs`.

        Sites of single heads are [inputs, heads, …]; an attention pattern is what the last position sees of each.
        """
        return self.subject().read(site)[0]

    def subject(self) -> RunStack:
        """What measures read: a stack of this one run."""
        return stack_checkpoints([self], [f"{self.spec.task} at step {self.step}"])

    def module(self) -> ReferenceModule:
        """The model as a plain `nn.Module`, in evaluation mode."""
        layout = layout_of(self.spec.architecture, padded_size(self.task.symbols))
        row = padded_row(self.tensors, layout, self.task.symbols)
        return reference_module(self.spec.architecture, self.task.symbols, layout.views(row["weights"][None])).eval()


def stack_checkpoints(checkpoints: Sequence[Checkpoint], names: Sequence[str], device: str = "cpu") -> RunStack:
    """Checkpoints of one task and architecture as a subject, as if each were a run."""
    first = checkpoints[0]
    layout = layout_of(first.spec.architecture, padded_size(first.task.symbols))
    rows = [padded_row(one.tensors, layout, one.task.symbols)["weights"] for one in checkpoints]
    return subject_of([one.spec for one in checkpoints], torch.stack(rows).to(device), names)
