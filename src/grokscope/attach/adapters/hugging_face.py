"""A callback for Hugging Face's Trainer."""

import warnings
from typing import Any

from grokscope.attach.adapters.framework import Observer, framework
from grokscope.attach.controller import Rule
from grokscope.attach.monitor import Monitor
from grokscope.errors import require

__all__ = ["hugging_face_callback"]

NAME = "GrokscopeCallback"


def hugging_face_callback(monitor: Monitor, rule: Rule | None = None, **options: Any) -> Any:
    """A `transformers.TrainerCallback` that evaluates the model every `monitor.every` optimiser steps.

    With a rule (and `bounds`, `hold`) it controls the weight decay of the Trainer's optimiser; groups without decay,
    as the Trainer makes them for biases and norms, stay without. The log is `monitor.log`. Log and controller go into
    the Trainer's checkpoints, and `resume_from_checkpoint` goes on from there.

    Example::

        trainer = Trainer(model, arguments, callbacks=[hugging_face_callback(monitor)])
    """
    return _callback_class(Observer(monitor, rule, options))()


def _callback_class(observer: Observer) -> Any:
    """A class for one monitor: the Trainer restores a callback by its class's name, and makes a new one of the class.

    So the class holds what JSON cannot, and is named after what it reads.
    """
    callbacks = framework("transformers.trainer_callback")

    class GrokscopeCallback(callbacks.TrainerCallback, callbacks.ExportableState):  # type: ignore[misc, name-defined]
        """Evaluates the model while the Trainer trains it."""

        @property
        def controller(self) -> Any:
            """The weight-decay controller, once training has begun; None without a rule."""
            return observer.controller

        @property
        def watched(self) -> dict[str, Any]:
            """Log and controller, as plain values."""
            return observer.state_dict()

        @watched.setter
        def watched(self, state: dict[str, Any]) -> None:
            observer.load_state_dict(state)

        def state(self) -> dict[str, Any]:
            return {"args": {}, "attributes": {"watched": self.watched}}

        def on_train_begin(
            self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, **more: Any
        ) -> None:
            # The Trainer itself restores callbacks only with `restore_callback_states_from_checkpoint`; its
            # optimiser's λ always, which without the controller's state would be taken for the λ to return to.
            if (stored := _stored(state, type(self).__name__)) is not None:
                self.watched = stored
            state.stateful_callbacks.setdefault(type(self).__name__, self.state())  # a save finds it there
            observer.begin(model, optimizer, state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **more: Any) -> None:
            observer.evaluate(model, state.global_step)

        def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            observer.monitor.finish()

    GrokscopeCallback.__name__ = f"{NAME}: {observer.about}"
    return GrokscopeCallback


def _stored(state: Any, name: str) -> dict[str, Any] | None:
    """What the checkpoint has of this monitor; None for training that begins, or that had none."""
    known = state.stateful_callbacks
    require(
        not isinstance(known.get(name), list),
        f"two callbacks are called {name!r}, which a checkpoint cannot tell apart; give one",
    )
    if not state.global_step:
        return None
    if name in known:
        found: dict[str, Any] = known[name]["attributes"]["watched"]
        return found
    others = [other for other in known if other.startswith(NAME)]
    if others:
        warnings.warn(
            f"the checkpoint has no {name!r}, it has {others[0]!r}: this monitor begins anew, with λ as it is now",
            stacklevel=2,
        )
    return None
