"""A Lightning callback."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from grokscope.attach.adapters.framework import Observer, framework
from grokscope.attach.controller import Rule
from grokscope.attach.monitor import Monitor
from grokscope.errors import require

__all__ = ["lightning_callback"]

PREFIX = "grokscope"


def lightning_callback(monitor: Monitor, rule: Rule | None = None, *, prefix: str = PREFIX, **options: Any) -> Any:
    """A `lightning.pytorch.Callback` that evaluates the module every `monitor.every` optimiser steps.

    Every evaluation is logged as `grokscope/fsd` and so on, for loggers, `ModelCheckpoint` and `EarlyStopping`; where
    several evaluate one training, each has a `prefix` of its own. With a rule (and `bounds`, `hold`) it controls the
    weight decay of the first optimiser. Log and controller go into Lightning's checkpoints.

    Example::

        trainer = Trainer(callbacks=[lightning_callback(monitor)])
    """
    require(isinstance(prefix, str) and prefix.strip(), "prefix must be a name to log under", prefix)
    return _callback_class()(Observer(monitor, rule, options), prefix)


@lru_cache(maxsize=1)
def _callback_class() -> Any:
    base = framework("lightning.pytorch").Callback

    class GrokscopeCallback(base):  # type: ignore[misc, valid-type]
        """Evaluates the module while it trains."""

        def __init__(self, observer: Observer, prefix: str) -> None:
            self.observer, self.prefix = observer, prefix

        @property
        def controller(self) -> Any:
            """The weight-decay controller, once training has begun; None without a rule."""
            return self.observer.controller

        def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
            others = [one for one in trainer.callbacks if one is not self and isinstance(one, GrokscopeCallback)]
            require(
                all(other.prefix != self.prefix for other in others),
                f"two monitors of one trainer would log under {self.prefix!r}: give each lightning_callback a "
                "prefix of its own",
            )

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            self.observer.begin(pl_module, next(iter(trainer.optimizers), None), trainer.global_step)

        def on_train_batch_end(self, trainer: Any, pl_module: Any, *batch: Any, **more: Any) -> None:
            if (row := self.observer.evaluate(pl_module, trainer.global_step)) is not None:
                numbers = {name: value for name, value in row.items() if name != "step" and not isinstance(value, str)}
                pl_module.log_dict({f"{self.prefix}/{name}": float(value) for name, value in numbers.items()})

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            self.observer.monitor.finish()

        @property
        def state_key(self) -> str:
            """One for each monitor, so that several may evaluate one training."""
            own = "" if self.prefix == PREFIX else f", as {self.prefix}"
            return f"{type(self).__name__}: {self.observer.about}{own}"

        def state_dict(self) -> dict[str, Any]:
            return self.observer.state_dict()

        def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
            self.observer.load_state_dict(state_dict)

    return GrokscopeCallback
