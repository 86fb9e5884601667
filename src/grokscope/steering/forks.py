"""The state in which a fork begins, and the paired run whose norm a matched fork follows."""

from dataclasses import replace

import torch
from torch import Tensor

from grokscope.specs import Fork, RunSpec
from grokscope.training.norm_holds import anchors_of

__all__ = ["forked", "has_paired_run", "paired_run"]


def forked(row: dict[str, Tensor], spec: RunSpec, parent: RunSpec) -> dict[str, Tensor]:
    """The parent's state at the fork's step, changed as the fork says and in nothing else.

    Weights are multiplied by `Fork.scale`; moments are kept or reset; λ is the fork's own if it differs from the
    parent's, else the one in force, which a schedule or a rule may have set; a held norm is noted. Grokfast's average
    of gradients goes with the moments. A fork that goes on with its parent's hold of norms keeps the norms n₀ of that.

    >>> parent = RunSpec()
    >>> spec = replace(parent.with_values({"weight_decay": 3.0}), fork=Fork(parent.content_hash, 1000, scale=0.5))
    >>> row = {"weights": torch.ones(2), "weight_decay": torch.tensor(1.0, dtype=torch.float64)}
    >>> state = forked(row, spec, parent)
    >>> state["weights"].tolist(), float(state["weight_decay"])
    ([0.5, 0.5], 3.0)
    """
    assert spec.fork is not None
    found = {name: value.clone() for name, value in row.items()}
    if spec.fork.scale != 1:
        found["weights"] = found["weights"] * spec.fork.scale
    if spec.fork.moments == "reset":
        moments = ("first", "second", "slow", "recent", "age")
        found |= {name: torch.zeros_like(found[name]) for name in moments if name in found}
    if spec.training.weight_decay != parent.training.weight_decay:
        found["weight_decay"] = torch.tensor(spec.training.weight_decay, dtype=torch.float64)
    found["slow"], found["recent"] = _average(found, spec), _recent(found, spec)
    if parent.norm_hold != spec.norm_hold or spec.norm_hold is None:
        found["anchors"] = anchors_of(found["weights"], spec)
    norm = found["weights"].double().norm() if spec.fork.norm == "frozen" else torch.tensor(0.0, dtype=torch.float64)
    return found | {"alive": torch.tensor(True), "held_norm": norm}


def _average(row: dict[str, Tensor], spec: RunSpec) -> Tensor:
    """Grokfast's average of gradients as the fork needs it: the parent's, zeros where it had none, or nothing."""
    if spec.training.gradient != "grokfast":
        return row["weights"][:0]
    known = row.get("slow")
    return known if known is not None and known.numel() else torch.zeros_like(row["weights"])


def _recent(row: dict[str, Tensor], spec: RunSpec) -> Tensor:
    """The last gradients as the fork needs them: the parent's if it kept as many, else zeros, or nothing."""
    window = spec.training.grokfast_window if spec.training.gradient == "grokfast_window" else 0
    known, places = row.get("recent"), window * row["weights"].numel()
    return known if known is not None and known.numel() == places else row["weights"].new_zeros(places)


def has_paired_run(spec: RunSpec) -> bool:
    """Whether a run has to be trained beside another, whose norm it takes after every step.

    >>> has_paired_run(RunSpec("add_mod97"))
    False
    """
    return spec.fork is not None and spec.fork.norm == "matched"


def paired_run(spec: RunSpec, parent: RunSpec) -> RunSpec:
    """The parent itself, going on from the fork's step to the fork's last: its data, its optimiser, a free norm.

    >>> parent = RunSpec("add_mod97")
    >>> from dataclasses import replace
    >>> fork = replace(parent, fork=Fork(parent.content_hash, step=1000, norm="matched"))
    >>> paired_run(fork, parent).fork.norm
    'free'
    """
    assert spec.fork is not None
    last = spec.training.steps
    schedule = tuple(change for change in parent.training.weight_decay_schedule if change[0] < last)
    return replace(
        parent,
        training=replace(parent.training, steps=last, weight_decay_schedule=schedule),
        fork=Fork(spec.fork.parent, spec.fork.step),
        checkpoints=spec.checkpoints,
        measurements=spec.measurements,
        precision=spec.precision,
    )
