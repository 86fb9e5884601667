"""Grokfast-EMA and ⊥Grad around any PyTorch optimiser: the gradient transforms of the stack, for a user's own loop."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from grokscope.errors import InputError
from grokscope.specs.spec import require
from grokscope.training.gradients import grokfast_, orthogonal

__all__ = ["GradientWrapper", "Grokfast", "OrthogonalGradient"]


class GradientWrapper(Optimizer):
    """An optimiser that changes every gradient just before another one takes its step.

    Parameter groups and state are the other's own, so schedulers and anything that sets `lr` or `weight_decay` work as
    before. Gradients that are clipped or unscaled before `step` are changed afterwards, as in the stack.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        super().__init__(optimizer.param_groups, optimizer.defaults)
        self.optimizer = optimizer
        self._share()

    def _share(self) -> None:
        self.param_groups, self.state = self.optimizer.param_groups, self.optimizer.state

    def _parameters(self) -> list[Tensor]:
        return [parameter for group in self.param_groups for parameter in group["params"]]

    def transformed(self, parameter: Tensor, gradient: Tensor) -> Tensor:
        """What the optimiser is given in place of a parameter's gradient; each of these optimisers says what."""
        raise NotImplementedError

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the gradients in place, and let the optimiser take its step; a closure is called once, before."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for parameter in self._parameters():
            if parameter.grad is not None:
                if parameter.grad.layout != torch.strided:
                    raise InputError(f"gradients must be dense, got one with layout {parameter.grad.layout}")
                parameter.grad.copy_(self.transformed(parameter, parameter.grad))
        self.optimizer.step()
        return loss

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters to the optimiser inside."""
        inside = self.__dict__.get("optimizer")  # not there yet while torch's own constructor runs
        super().add_param_group(param_group) if inside is None else inside.add_param_group(param_group)

    def state_dict(self) -> dict[str, Any]:
        """The state of the optimiser inside; a transform that remembers something adds it."""
        return {"optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The inverse of `state_dict`."""
        if "optimizer" not in state_dict:
            raise InputError(f"the state is not one of {type(self).__name__}: it has no entry 'optimizer'")
        self.optimizer.load_state_dict(state_dict["optimizer"])
        self._share()


class Grokfast(GradientWrapper):
    """Grokfast-EMA (Lee et al. 2024): the optimiser is given g + lamb·μ, with μ ← alpha·μ + (1 − alpha)·g.

    μ begins as a parameter's first gradient. Defaults are the authors' for modular arithmetic.

    >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = Grokfast(torch.optim.SGD([weight], lr=0.1), alpha=0.5, lamb=2.0)
    >>> weight.grad = torch.tensor([1.0])
    >>> optimizer.step()
    >>> weight.data
    tensor([0.7000])
    """

    def __init__(self, optimizer: Optimizer, alpha: float = 0.98, lamb: float = 2.0) -> None:
        require(0 <= alpha < 1, "alpha must lie in [0, 1)", alpha)
        require(lamb >= 0, "lamb must be at least 0", lamb)
        super().__init__(optimizer)
        self.alpha, self.lamb = alpha, lamb
        self.slow: dict[Tensor, Tensor] = {}

    def transformed(self, parameter: Tensor, gradient: Tensor) -> Tensor:
        """The gradient and lamb times its average, as a stack of one run."""
        is_first = torch.tensor([parameter not in self.slow], device=gradient.device)
        slow = self.slow.setdefault(parameter, torch.zeros_like(gradient))
        active = torch.ones(1, dtype=torch.bool, device=gradient.device)
        alpha, lamb = (gradient.new_tensor([value]) for value in (self.alpha, self.lamb))
        return grokfast_(slow[None], gradient[None], active, is_first, alpha, lamb)[0]

    def state_dict(self) -> dict[str, Any]:
        """With μ of every parameter, in the order of the groups; None before its first step."""
        return {**super().state_dict(), "slow": [self.slow.get(parameter) for parameter in self._parameters()]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The inverse of `state_dict`: every μ on its parameter's device and in its precision."""
        super().load_state_dict(state_dict)
        stored, parameters = state_dict.get("slow", []), self._parameters()
        require(len(stored) == len(parameters), f"the state must have {len(parameters)} averages", len(stored))
        pairs = zip(parameters, stored, strict=True)
        self.slow = {parameter: mu.to(parameter, copy=True) for parameter, mu in pairs if mu is not None}


class OrthogonalGradient(GradientWrapper):
    """⊥Grad (Prieto et al. 2025): the optimiser is given g without its part along the weights, at the length of g.

    >>> weight = torch.nn.Parameter(torch.tensor([1.0, 0.0]))
    >>> optimizer = OrthogonalGradient(torch.optim.SGD([weight], lr=0.1))
    >>> weight.grad = torch.tensor([3.0, 4.0])
    >>> optimizer.step()
    >>> weight.data
    tensor([ 1.0000, -0.5000])
    """

    def transformed(self, parameter: Tensor, gradient: Tensor) -> Tensor:
        """The gradient's part across the weights, as a stack of one run."""
        return orthogonal(parameter[None], gradient[None])[0]
