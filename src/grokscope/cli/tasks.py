"""`grokscope tasks`: what can be learnt."""

import json
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from grokscope.specs import RunSpec
from grokscope.tasks import FAMILIES, OPERATIONS, Task, named_task, split

__all__ = ["task_facts", "tasks"]

EXAMPLES = {"Z": "Z60", "D": "D12", "S": "S5", "A": "A5", "Q": "Q8", "Aff": "Aff7", "SL2_": "SL2_3", "PSL2_": "PSL2_7"}


def tasks(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")] = "",
    as_json: Annotated[bool, tyro.conf.arg(name="json"), tyro.conf.FlagCreatePairsOff] = False,
) -> None:
    """List the tasks, or show one: its pairs, answers and the bases in which they can be read.

    Example: grokscope tasks mult_mod97

    Args:
        name: A task such as add_mod97, poly_a2+ab+b2_mod97, S5, Z3xS4 or table:my_group.json.
        as_json: Print facts for programs instead of people.
    """
    if not name:
        _list_tasks(as_json)
        return
    task = named_task(name)
    facts = task_facts(task)
    if as_json:
        print(json.dumps(facts))
        return
    console = Console(highlight=False)
    console.print(f"[bold]{escape(task.name)}[/bold]  {escape(task.title)}", soft_wrap=True)
    console.print(f"  tokens   \\[a, b, {task.separator}] → answer; {task.vocabulary} tokens, {task.classes} classes")
    console.print(f"  pairs    {len(task.inputs):,}; each answer has {_range(facts['pairs_per_answer'])}")
    console.print(f"  split    {RunSpec.train_fraction:.0%} of them, drawn by a seed, are {facts['train_pairs']:,}")
    for basis in facts["bases"]:
        console.print(f"  basis    {basis['name']}: {basis['modes']} modes over {basis['answers']} answers")
    if task.group is not None:
        console.print(f"  group    {escape(f'{task.group.name}: see `grokscope groups {task.name}`')}", soft_wrap=True)


def task_facts(task: Task) -> dict[str, Any]:
    """What can be said of a task in plain values."""
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


def _range(bounds: list[int]) -> str:
    low, high = bounds
    return f"{low} of them" if low == high else f"{low} to {high} of them"


def _list_tasks(as_json: bool) -> None:
    rows = [(f"{name}_mod97", operation.title.format(n=97)) for name, operation in OPERATIONS.items()]
    rows.append(("poly_a2+ab+b2_mod97", "any polynomial in a and b"))
    rows += [(EXAMPLES[letters], family.title) for letters, family in FAMILIES.items()]
    rows += [("Z3xS4", "direct products, joined by x"), ("table:FILE", "your own group: .json, .csv or .npy")]
    if as_json:
        print(json.dumps([{"example": example, "title": title} for example, title in rows]))
        return
    table = Table(title="Tasks (any number may stand for 97, 60, 12, …)", title_justify="left", box=None)
    table.add_column("name", style="bold")
    table.add_column("what is learnt")
    for row in rows:
        table.add_row(*row)
    console = Console(highlight=False)
    console.print(table)
    console.print("\nOne of them: [bold]grokscope tasks S5[/bold]. Its group: [bold]grokscope groups S5[/bold].")
