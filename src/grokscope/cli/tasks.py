"""`grokscope tasks`: what can be learnt."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from grokscope.cli.columns import align
from grokscope.cli.options import Flag, JsonFlag
from grokscope.errors import InputError
from grokscope.specs import RunSpec

if TYPE_CHECKING:
    from grokscope.tasks import Task

__all__ = ["task_facts", "tasks"]

EXAMPLES = {"Z": "Z60", "D": "D12", "S": "S5", "A": "A5", "Q": "Q8", "Aff": "Aff7", "SL2_": "SL2_3", "PSL2_": "PSL2_7"}


def tasks(
    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]", help_behavior_hint="")] = None,
    group: Flag = False,
    as_json: JsonFlag = False,
) -> None:
    """List the tasks, or show one task or group.

    For a task: its pairs, its answers and the bases in which they can be read. With --group: order, conjugacy classes,
    characters and the modes in which real activations are read; the exit status is 1 if one of the checks fails.

    Args:
        name: A task such as add_mod97, poly_a2+ab+b2_mod97, S5, Z3xS4 or table:my_group.json; all if not given.
        group: Show the group instead of the task.

    Examples:
        grokscope tasks
        grokscope tasks mult_mod97
        grokscope tasks S5 --group
    """
    if name is None:
        if group:
            raise InputError("--group needs the name of a group, such as S5")
        _list_tasks(as_json)
    elif group:
        from grokscope.cli.groups import show_group

        show_group(name, as_json)
    else:
        _show_task(name, as_json)


def _show_task(name: str, as_json: bool) -> None:
    from grokscope.tasks import named_task

    task = named_task(name)
    facts = task_facts(task)
    if as_json:
        print(json.dumps(facts))
        return
    low, high = facts["pairs_per_answer"]
    print(
        f"{task.name}: {task.title}\n"
        f"  tokens   [a, b, {task.separator}] → answer; {task.vocabulary} tokens, {task.classes} classes\n"
        f"  pairs    {len(task.inputs):,}; each answer has {low if low == high else f'{low} to {high}'} of them\n"
        f"  split    train {facts['train_pairs']:,} pairs ({100 * RunSpec.train_fraction:.0f} %), chosen by the seed"
    )
    for basis in facts["bases"]:
        print(f"  basis    {basis['name']}: {basis['modes']} modes over {basis['answers']} answers")
    if task.group is not None:
        print(f"  group    {task.group.name}: see `grokscope tasks {task.name} --group`")


def task_facts(task: "Task") -> dict[str, Any]:
    """Properties of a task in plain values."""
    import numpy as np

    from grokscope.tasks import split

    counts = np.bincount(task.answers, minlength=task.classes)
    bases = [task.basis(name) for name in task.bases]
    return {
        "name": task.name,
        "title": task.title,
        "pairs": len(task.inputs),
        "vocabulary": task.vocabulary,
        "classes": task.classes,
        "train_pairs": split(task, RunSpec.train_fraction, seed=0).train.size,
        "pairs_per_answer": [int(counts.min()), int(counts.max())],
        "bases": [{"name": b.name, "modes": len(b.modes), "answers": len(b.answers)} for b in bases],
        "group": task.group.name if task.group else None,
    }


def _list_tasks(as_json: bool) -> None:
    from grokscope.tasks import FAMILIES, OPERATIONS

    rows = [
        *((f"{name}_mod97", operation.title.format(n=97)) for name, operation in OPERATIONS.items()),
        ("poly_a2+ab+b2_mod97", "any polynomial in a and b"),
        *((EXAMPLES[letters], family.title) for letters, family in FAMILIES.items()),
        ("Z3xS4", "direct products, joined by x"),
        ("table:FILE", "your own group: .json, .csv or .npy"),
    ]
    if as_json:
        print(json.dumps([{"example": example, "title": title} for example, title in rows]))
        return
    table = align(["name", "what is learnt"], rows, left=frozenset({"name", "what is learnt"}))
    print(f"Tasks (97, 60, 12, … are examples)\n\n{table}")
    print("\nOne of them: grokscope tasks S5. Its group: grokscope tasks S5 --group.")
