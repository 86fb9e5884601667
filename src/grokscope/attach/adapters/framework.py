"""Other people's frameworks, imported when they are used, and what every callback does for them."""

import importlib
from collections.abc import Mapping
from typing import Any

import torch

from grokscope.attach.controller import Rule, WeightDecayController
from grokscope.attach.monitor import Monitor, Row
from grokscope.attach.sites import site_name
from grokscope.errors import InputError

__all__ = ["Observer", "framework"]


def framework(name: str) -> Any:
    """The module with this name, or a sentence that says how to get it.

    >>> framework("not_a_framework")
    Traceback (most recent call last):
    ...
    grokscope.errors.InputError: not_a_framework is not installed; install it with: pip install 'grokscope[interop]'
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != name.partition(".")[0]:
            raise  # it is there, and lacks something itself
        package = name.partition(".")[0]
        raise InputError(f"{package} is not installed; install it with: pip install 'grokscope[interop]'") from None


class Observer:
    """Evaluates when due, applies the rule, and keeps both in the framework's checkpoint.

    A monitor and, if there is a rule, a controller, which is made once the framework has made its optimiser.
    """

    def __init__(self, monitor: Monitor, rule: Rule | None = None, options: Mapping[str, Any] | None = None) -> None:
        self.monitor, self.rule, self.options = monitor, rule, dict(options or {})
        self.controller: WeightDecayController | None = None
        self._pending: Mapping[str, Any] | None = None

    @property
    def about(self) -> str:
        """What tells this monitor's state from another's in one checkpoint."""
        places = ", ".join(map(site_name, self.monitor.sites)) or "no site"
        return f"{self.monitor.task.name} at {places}, position {self.monitor.position}"

    def begin(self, model: Any, optimizer: torch.optim.Optimizer | None, step: int) -> None:
        """Check the model, take the optimiser, and evaluate for the first time."""
        self.monitor.check(model)
        self.monitor.attached, self.monitor.controlled = () if optimizer is None else (optimizer,), ()
        if self.rule is not None:
            if optimizer is None:
                raise InputError("a rule needs an optimiser, and the framework gave none")
            before = self._control()
            self.controller = WeightDecayController(optimizer, self.monitor, self.rule, **self.options)
            if before is not None:  # from a checkpoint, or from training that ended and is taken up again
                self.controller.load_state_dict(before)
            self._pending = None
        if not self.monitor.log:
            self.evaluate(model, step)

    def evaluate(self, model: Any, step: int) -> Row | None:
        """Evaluate if a step is due and was not evaluated yet, and apply the rule."""
        last = self.monitor.log[-1]["step"] if self.monitor.log else None
        if last == step or not self.monitor.is_due(step):
            return None
        row = self.monitor.measure(model, step)
        if self.controller is not None:
            self.controller.step()
        return row

    def state_dict(self) -> dict[str, Any]:
        """The monitor's log, and the controller's state."""
        return {"monitor": self.monitor.state_dict(), "controller": self._control()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; the controller takes its part when it is made."""
        self.monitor.load_state_dict(state["monitor"])
        self._pending = state["controller"]

    def _control(self) -> Mapping[str, Any] | None:
        if self._pending is not None or self.controller is None:
            return self._pending
        return self.controller.state_dict()
