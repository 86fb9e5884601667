"""A stored run at one step: its weights, as a module and as what measures read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from grokscope.activations import RunStack, subject_of
from grokscope.files import DamagedError
from grokscope.model import PlainMlp, ReferenceModule, Sizes, layout_of, padded_sizes, reference_module, sizes_of
from grokscope.runs.records import known_task
from grokscope.shapes import Float
from grokscope.specs import Architecture, RunSpec
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
        """A site's value at the last position for every row, in the order of the task.

        Sites of single heads are [inputs, heads, …]; an attention pattern is what the last position sees of each.
        """
        return self.subject().read(site)[0]

    def subject(self) -> RunStack:
        """What measures read: a stack of this one run."""
        return stack_checkpoints([self], [f"{self.spec.task} at step {self.step}"])

    def module(self) -> ReferenceModule | PlainMlp:
        """The model as a plain `nn.Module`, in evaluation mode."""
        shape = self.spec.architecture
        task = known_task(self.spec.task)  # weights are exported without it, and without running a function for it
        sizes = _sizes_of_tensors(shape, self.tensors) if task is None else sizes_of(task)
        layout = layout_of(shape, sizes)
        row = padded_row(self.tensors, layout, sizes)
        return reference_module(shape, sizes, layout.views(row["weights"][None])).eval()


def _sizes_of_tensors(shape: Architecture, tensors: Mapping[str, Tensor]) -> Sizes:
    """What a model reads and answers, by its weights alone."""
    try:
        classes = tensors["unembed.W_U"].shape[-1]
        if shape.kind == "transformer":
            return Sizes(len(tensors["embed.W_E"]), classes, len(tensors["pos_embed.W_pos"]))
        first = tensors["layers.0.W_in" if shape.layers else "unembed.W_U"]
        if shape.embedded:
            return Sizes(len(tensors["embed.W_E"]), classes, len(first) // shape.width)
        is_one_hot = first.ndim == 3
        return Sizes(first.shape[1], classes, len(first)) if is_one_hot else Sizes(0, classes, 0, len(first))
    except (KeyError, IndexError, TypeError):
        raise DamagedError("a checkpoint does not hold the tensors of its run's architecture") from None


def stack_checkpoints(checkpoints: Sequence[Checkpoint], names: Sequence[str], device: str = "cpu") -> RunStack:
    """Checkpoints of one task and architecture as a subject, as if each were a run."""
    first = checkpoints[0]
    layout = layout_of(first.spec.architecture, padded_sizes(first.task))
    rows = [padded_row(one.tensors, layout, sizes_of(one.task))["weights"] for one in checkpoints]
    return subject_of([one.spec for one in checkpoints], torch.stack(rows).to(device), names)
