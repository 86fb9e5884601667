"""Muon for a user's own loop, as `torch.optim.Muon`: for versions of PyTorch that lack it, and in any precision."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from grokscope.errors import InputError, shown
from grokscope.specs.spec import require
from grokscope.training.muon import EXACT, IN_BFLOAT16, MuonScalars, muon_

__all__ = ["Muon"]


class Muon(Optimizer):
    """Momentum of matrices made orthogonal, w ← (1 − lr·wd) w − lr √max(1, out/in) NS(…) (Jordan et al. 2024).

    Momentum is Nesterov's, and matrices are [out, in], as `torch.nn.Linear` has them; a parameter of three axes is a
    stack of matrices, such as one for each head. It computes in the precision of
    the weights; `torch.optim.Muon` (torch ≥ 2.9) in bfloat16, as this does with `precision=torch.bfloat16`.

    >>> weight = torch.nn.Parameter(torch.eye(2))
    >>> optimizer = Muon([weight], lr=0.1)
    >>> weight.grad = torch.diag(torch.tensor([2.0, 1.0]))
    >>> optimizer.step()
    >>> weight.data.round(decimals=2)
    tensor([[0.9300, 0.0000],
            [0.0000, 0.8900]])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.02,
        weight_decay: float = 0.0,
        momentum: float = 0.95,
        precision: torch.dtype | None = None,
    ) -> None:
        require(lr >= 0, "lr must be at least 0", lr)
        require(weight_decay >= 0, "weight_decay must be at least 0", weight_decay)
        require(0 <= momentum < 1, "momentum must lie in [0, 1)", momentum)
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "precision": precision})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add matrices; anything else is rejected."""
        super().add_param_group(param_group)
        for parameter in param_group["params"]:
            if parameter.ndim not in (2, 3):
                shape = shown(list(parameter.shape))
                raise InputError(f"Muon moves matrices and stacks of them; got a parameter of shape {shape}")

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step of every matrix that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            moved = [parameter for parameter in group["params"] if parameter.grad is not None]
            for parameter in moved:
                own = self.state[parameter]
                if "momentum_buffer" not in own:
                    own["momentum_buffer"] = torch.zeros_like(parameter)
                self._move(parameter, own["momentum_buffer"], group)
        return loss

    def _move(self, parameter: Tensor, momentum: Tensor, group: dict[str, Any]) -> None:
        """As a stack, [matrices, in, out]."""
        assert parameter.grad is not None
        rate, mu = float(group["lr"]), float(group["momentum"])
        numbers = (rate, 1 - rate * float(group["weight_decay"]), mu, 1 - mu)
        scalars = MuonScalars(*(parameter.new_tensor([number]) for number in numbers))
        active = torch.ones(1, dtype=torch.bool, device=parameter.device)
        first, second, third = (
            one.mT if one.ndim == 3 else one.T[None] for one in (parameter.data, momentum, parameter.grad)
        )
        rounds = group["precision"] == torch.bfloat16
        muon_([(first, second, third)], active, scalars, IN_BFLOAT16 if rounds else EXACT)
