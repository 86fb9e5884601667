"""What steering does not see by itself in Lightning and Hugging Face's Trainer: validation, and the Trainer's loss."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from grokscope.attach.adapters.framework import framework
from grokscope.attach.steering import Steering
from grokscope.errors import InputError, did_you_mean, require, shown

__all__ = ["hugging_face_steering", "lightning_steering"]


def lightning_steering(validation: str) -> Any:
    """A Lightning callback that gives a `Steering` the validation accuracy that the module logs under this name.

    The module returns the `Steering` from `configure_optimizers`. Lightning hands it the loss of every step and stores
    its state in checkpoints, so that without validation no callback is needed.

    Example::

        trainer = Trainer(callbacks=[lightning_steering("val_accuracy")], check_val_every_n_epoch=1)
    """
    require(isinstance(validation, str) and validation, "validation must be the name of a logged metric", validation)
    return _lightning_class()(validation)


@lru_cache(maxsize=1)
def _lightning_class() -> Any:
    base = framework("lightning.pytorch").Callback

    class SteeringCallback(base):  # type: ignore[misc, valid-type]
        """Passes validation accuracy on."""

        def __init__(self, validation: str) -> None:
            self.validation = validation

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            _steerings(trainer.optimizers)

        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            if not trainer.sanity_checking:
                value = _metric(trainer.callback_metrics, self.validation)
                for steering in _steerings(trainer.optimizers):
                    steering.observe(validation_accuracy=value)

    return SteeringCallback


def hugging_face_steering(steering: Any, validation: str | None = None) -> Any:
    """A `TrainerCallback` that gives a `Steering` the Trainer's loss, and the metric of its evaluations named here.

    The Trainer is given the same `Steering`, as `optimizers=(steering, None)`, and stores its state in checkpoints. It
    hands on the loss whenever it logs, so `logging_steps` should not be above the release's `every`.

    Example::

        Trainer(..., optimizers=(steering, None), callbacks=[hugging_face_steering(steering, "eval_accuracy")])
    """
    if not isinstance(steering, Steering):
        raise InputError(f"steering must be a Steering, got {type(steering).__name__}")
    callbacks = framework("transformers.trainer_callback")

    class SteeringCallback(callbacks.TrainerCallback):  # type: ignore[misc, name-defined]
        """Passes loss and validation accuracy on."""

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
            if logs and "loss" in logs:
                steering.observe(float(logs["loss"]))

        def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **more: Any) -> None:
            if validation is not None:
                steering.observe(validation_accuracy=_metric(metrics or {}, validation))

    return SteeringCallback()


def _steerings(optimizers: Any) -> list[Steering]:
    found = [one for one in optimizers if isinstance(one, Steering)]
    if not found:
        raise InputError("the module has no Steering: return Steering(self) from configure_optimizers")
    return found


def _metric(metrics: Mapping[str, Any], name: str) -> float:
    if name not in metrics:
        raise InputError(f"no metric is called {shown(name)}{did_you_mean(name, metrics)}")
    return float(metrics[name])
