"""A callback for Hugging Face's Trainer."""

from functools import lru_cache
from typing import Any

from grokscope.attach.adapters.framework import framework
from grokscope.attach.adapters.watching import Watching
from grokscope.attach.controller import Rule
from grokscope.attach.monitor import Monitor

__all__ = ["hugging_face_callback"]


def hugging_face_callback(monitor: Monitor, rule: Rule | None = None, **options: Any) -> Any:
    """A `transformers.TrainerCallback` that looks at the model every `monitor.every` optimiser steps.

    With a rule (and `bounds`, `hold`) it controls the weight decay of the Trainer's optimiser; groups without decay,
    as the Trainer makes them for biases and norms, stay without. The log is `monitor.log`.
    """
    return _callback_class()(Watching(monitor, rule, options))


@lru_cache(maxsize=1)
def _callback_class() -> Any:
    base = framework("transformers").TrainerCallback

    class GrokscopeCallback(base):  # type: ignore[misc, valid-type]
        """Looks at the model while the Trainer trains it."""

        def __init__(self, watching: Watching) -> None:
            self.watching = watching

        @property
        def controller(self) -> Any:
            """The weight-decay controller, once training has begun; None without a rule."""
            return self.watching.controller

        def on_train_begin(
            self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, **more: Any
        ) -> None:
            self.watching.begin(model, optimizer, state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **more: Any) -> None:
            self.watching.look(model, state.global_step)

        def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            self.watching.monitor.finish()

    return GrokscopeCallback
