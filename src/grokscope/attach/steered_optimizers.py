"""The optimisers that steering moves a model by: those of a recipe, or the user's own, once they are checked."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from grokscope.errors import require
from grokscope.steering import Muon, Recipe

__all__ = ["begin_rate", "recipe_optimizers", "reject_foreign"]


def reject_foreign(optimizer: Any, model: nn.Module) -> None:
    """Reject what is no optimiser of this model's parameters; none at all is accepted.

    >>> reject_foreign(None, nn.Linear(2, 2))
    """
    if optimizer is None:
        return
    kind = type(optimizer).__name__
    require(isinstance(optimizer, Optimizer), f"optimizer must be a torch.optim.Optimizer, got {kind}")
    own = {id(parameter) for parameter in model.parameters()}
    moved = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    is_own = any(id(parameter) in own for parameter in moved)
    require(is_own, f"the optimiser moves no parameter of {type(model).__name__}: give it model.parameters()")


def begin_rate(group: Mapping[str, Any]) -> float:
    """The lr that divides λ: of a schedule that was made before the largest that it has noted.

    >>> begin_rate({"lr": 0.0, "initial_lr": 0.1})  # at the begin of a warm-up
    0.1
    """
    rates = [float(group.get(name) or 0.0) for name in ("lr", "initial_lr", "max_lr")]
    require(max(rates) > 0, "lr must be positive where steering begins, for it divides λ", group.get("lr"))
    return max(rates)


def recipe_optimizers(
    names: Mapping[str, Mapping[str, nn.Parameter]], recipe: Recipe, own_muon: bool
) -> list[Optimizer]:
    """Muon for the matrices, if there are any, and AdamW for the rest; each group keeps its name.

    PyTorch's Muon takes no stacks of matrices: these are moved by ours, which then rounds where PyTorch's does.

    >>> from grokscope.steering import FAST
    >>> names = {"matrix": {"w": nn.Parameter(torch.eye(2))}, "vector": {"b": nn.Parameter(torch.zeros(2))}}
    >>> [type(one).__name__ for one in recipe_optimizers(names, FAST, own_muon=True)]
    ['Muon', 'AdamW']
    """
    rest = [{"params": [*own.values()], "name": group} for group, own in names.items() if own and group != "matrix"]
    found: list[Optimizer] = [torch.optim.AdamW(rest, lr=recipe.learning_rate)] if rest else []
    torchs = None if own_muon else getattr(torch.optim, "Muon", None)
    flat, stacks = (
        [one for one in names["matrix"].values() if one.ndim == axes or (torchs is None and axes == 2)]
        for axes in (2, 3)
    )
    rate = recipe.muon_learning_rate
    if stacks and torchs is not None:
        found.insert(0, Muon([{"params": stacks, "name": "matrix"}], lr=rate, precision=torch.bfloat16))
    if flat:
        groups = [{"params": flat, "name": "matrix"}]
        found.insert(0, Muon(groups, lr=rate) if torchs is None else torchs(groups, lr=rate))
    return found
