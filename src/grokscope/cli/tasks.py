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

    For a task: its rows, its answers, how they are split and the bases in which they can be read. With --group: order,
    conjugacy classes, characters and the modes in which real activations are read; the exit status is 1 if one of the
    checks fails.

    Args:
        name: A task such as add_mod97, poly_a2+ab+b2_mod97, S5, parity_n40_k3, table:my_group.json or mine.npz; all if
            not given.
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
    print(
        f"{task.name}: {task.title}\n  {_described_inputs(task)}\n  rows     {task.rows:,}{_described_answers(facts)}\n"
        f"  split    train {facts['train_rows']:,} rows{_described_share(task)}, chosen by the seed"
    )
    for group in facts["row_groups"]:
        print(f"  group    {group['name']}: {group['rows']:,} rows, {RULES[group['rule']]}")
    for basis in facts["bases"]:
        print(f"  basis    {basis['name']}: {basis['modes']} modes over {basis['answers']} {basis['condition']}s")
    if not facts["bases"]:
        print("  basis    none: FSD and rank are not defined")
    if task.group is not None:
        print(f"  group    {task.group.name}: see `grokscope tasks {task.name} --group`")


RULES = {
    "drawn": "from which the split draws",
    "train": "always trained on",
    "validation": "never trained on",
    "held_out": "never trained on, reported apart",
}


def _described_inputs(task: "Task") -> str:
    """What a model reads and answers."""
    gives = f"{task.classes} real {'value' if task.classes == 1 else 'values'}" if task.is_real else "answer"
    classes = "" if task.is_real else f", {task.classes} classes"
    if task.tokens is None:
        return f"vectors  {task.features} numbers → {gives}{classes}"
    positions = f"[a, b, {task.separator}]" if task.pairs else f"{task.length} positions"
    return f"tokens   {positions} → {gives}; {task.vocabulary} tokens{classes}"


def _described_answers(facts: dict[str, Any]) -> str:
    """How rows spread over answers, or when a real one is right."""
    if facts["success"] is not None:
        return f"; an answer is right within {facts['success']:g} of their variance, a squared error of " + (
            f"{facts['success_error']:.3g}"
        )
    low, high = facts["rows_per_answer"]
    return f"; each answer has {low if low == high else f'{low} to {high}'} of them"


def _described_share(task: "Task") -> str:
    """The default share, where it decides: a task may name its own, or draw none."""
    decides = any(group.rule == "drawn" and group.share is None for group in task.row_groups)
    of = "" if len(task.row_groups) == 1 else " of those drawn from"
    return f" ({100 * RunSpec.train_fraction:.0f} %{of})" if decides else ""


def task_facts(task: "Task") -> dict[str, Any]:
    """Properties of a task in plain values."""
    import numpy as np

    from grokscope.tasks import split

    counts = None if task.is_real else np.bincount(task.answers, minlength=task.classes)
    bases = [task.basis(name) for name in task.bases]
    groups = [] if len(task.row_groups) == 1 else task.row_groups
    return {
        "name": task.name,
        "title": task.title,
        "rows": task.rows,
        "length": task.length,
        "features": task.features,
        "vocabulary": task.vocabulary,
        "classes": task.classes,
        "is_real": task.is_real,
        "success": task.success if task.is_real else None,
        "success_error": task.success_error if task.is_real else None,
        "train_rows": split(task, RunSpec.train_fraction, seed=0).train.size,
        "rows_per_answer": None if counts is None else [int(counts.min()), int(counts.max())],
        "row_groups": [{"name": g.name, "rule": g.rule, "rows": len(g.rows), "share": g.share} for g in groups],
        "bases": [
            {"name": b.name, "modes": len(b.modes), "answers": len(b.answers), "condition": b.condition} for b in bases
        ],
        "group": task.group.name if task.group else None,
    }


def _list_tasks(as_json: bool) -> None:
    from grokscope.tasks import FAMILIES, KINDS, OPERATIONS

    rows = [
        *((f"{name}_mod97", operation.title.format(n=97)) for name, operation in OPERATIONS.items()),
        ("poly_a2+ab+b2_mod97", "any polynomial in a and b"),
        *((kind.example, kind.title) for kind in KINDS),
        *((EXAMPLES[letters], family.title) for letters, family in FAMILIES.items()),
        ("Z3xS4", "direct products, joined by x"),
        ("table:FILE", "your own group: .json, .csv or .npy"),
        ("FILE.npz", "your own rows; FILE.parquet too"),
        ("FILE.py:FUNCTION", "your own rows, from a function that is run"),
    ]
    if as_json:
        print(json.dumps([{"example": example, "title": title} for example, title in rows]))
        return
    table = align(["name", "what is learnt"], rows, left=frozenset({"name", "what is learnt"}))
    print(f"Tasks (97, 60, 12, … are examples)\n\n{table}")
    print("\nOne of them: grokscope tasks S5. Its group: grokscope tasks S5 --group.")
