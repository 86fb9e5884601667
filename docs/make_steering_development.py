"""Writes the table of docs/studies/steering.md from what `examples/steering_development.py` has found."""

import json
import re
from math import inf
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RECORD, PAGE = ROOT / "results" / "steering_development" / "cpu.json", ROOT / "docs" / "studies" / "steering.md"
BLOCK = re.compile(
    r"(<!-- development: written by docs/make_steering_development.py -->\n).*?(<!-- end of development -->)", re.DOTALL
)
COLUMNS = (
    "task", "recipe", "stable", "median steps", "generalised at all", "first step of that, at the latest", "preferred",
)  # fmt: skip
GENERALISES = 0.95  # validation accuracy
Record = dict[str, Any]


def first_step(run: Record, every: int) -> float:
    """The first evaluation with a validation accuracy of 0.95; infinite if there is none."""
    return next((every * i for i, value in enumerate(run["validation_accuracy"]) if value >= GENERALISES), inf)


def row_of(record: Record, title: str, recipe: str) -> list[str]:
    """What the runs of one recipe on one task needed."""
    task = record["tasks"][title]
    found, late = task["summary"][recipe], f"> {task['budget']:,}"
    steps = [first_step(run, record["every"]) for run in task["runs"][recipe]]
    worst, is_first = max(steps), recipe == next(iter(task["summary"]))
    return [
        title if is_first else "",
        recipe,
        f"{found['stable']}/{found['runs']}",
        late if found["median"] is None else f"{found['median']:,.0f}",
        f"{sum(step < inf for step in steps)}/{len(steps)}",
        late if worst == inf else f"{worst:,.0f}",
        "" if is_first else "yes" if task["preferred"] else "no",
    ]


def table_of(record: Record) -> str:
    """The table, and where it comes from."""
    rows = [row_of(record, title, recipe) for title, task in record["tasks"].items() for recipe in task["summary"]]
    made = record["provenance"]
    lines = [f"| {' | '.join(cells)} |" for cells in (COLUMNS, ["---"] * len(COLUMNS), *rows)]
    return "\n".join(["", *lines, "", f"{made['device']}, torch {made['torch']}, commit `{made['commit']}`.", ""])


def with_block(text: str) -> str:
    """The page with its table.

    >>> with_block("no place for it")
    'no place for it'
    """
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    return BLOCK.sub(lambda match: match[1] + table_of(record) + "\n" + match[2], text)


if __name__ == "__main__":
    PAGE.write_text(with_block(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
