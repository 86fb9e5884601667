"""What a task asks of the model and the loss that learn it."""

from grokscope.errors import InputError
from grokscope.specs import RunSpec
from grokscope.tasks.task import Task

__all__ = ["reject_unsuited"]


def reject_unsuited(spec: RunSpec, task: Task) -> None:
    """Reject a model that cannot read the task's rows, and a loss that its answers do not have.

    >>> from grokscope.tasks import named_task
    >>> reject_unsuited(RunSpec("add_mod7"), named_task("add_mod7"))
    """
    needed = {
        "vectors": ("kind", spec.architecture.kind, "mlp", task.vectors is not None),
        "real answers": ("loss", spec.training.loss, "mse", task.is_real),
    }
    wrong = {what: case[:3] for what, case in needed.items() if case[3] and case[1] != case[2]}
    if wrong:
        rule = " and ".join(
            f"{setting} must be {wanted} (--{setting} {wanted})" for setting, _, wanted in wrong.values()
        )
        got = " and ".join(given for _, given, _ in wrong.values())
        raise InputError(f"{task.name} has {' and '.join(wrong)}: {rule}, got {got}")
