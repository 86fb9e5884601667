"""`grokscope list`: the runs of a folder, ten thousand of them within a second; so nothing here may load torch."""

import json
from collections import Counter
from typing import Any

from grokscope.cli.columns import align
from grokscope.cli.damage import describe_damage
from grokscope.cli.nearby import describe_absence
from grokscope.cli.options import Folder, JsonFlag
from grokscope.errors import shown
from grokscope.runs import open_runs

__all__ = ["list_runs"]


def list_runs(folder: Folder, as_json: JsonFlag = False) -> None:
    """List the runs of a folder with their outcomes.

    Columns: the run, its weight decay λ, its outcome, the steps at which it memorised and grokked, and where it was
    forked. A run that is damaged is listed as such, with the reason below the table.

    Examples:
        grokscope list runs/first
    """
    rows = open_runs(folder).table()
    if as_json:
        print(json.dumps(rows))
        return
    if not rows:
        print(describe_absence(folder))
        return
    columns = {"run": "run", "λ": "weight_decay", "outcome": "outcome", "memorised": "memorized", "grokked": "grokked"}
    if any(row["fork_step"] is not None for row in rows):
        columns["forked at"] = "fork_step"
    cells = [[_cell(row, name) for name in columns.values()] for row in rows]
    print(align(list(columns), cells, left=frozenset({"run", "outcome"})))
    counts = Counter(_cell(row, "outcome") for row in rows)
    outcomes = ", ".join(f"{count:,} {word}" for word, count in counts.most_common())
    print(f"\n{len(rows):,} {'run' if len(rows) == 1 else 'runs'}: {outcomes}")
    if damage := describe_damage({row["run"]: row["problem"] for row in rows if row["problem"] is not None}, folder):
        print(f"\n{damage}")


def _cell(row: dict[str, Any], column: str) -> str:
    value = "–" if row[column] is None else row[column]
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    words = str(value).replace("_", " ") if column == "outcome" else str(value)
    return words if words.isprintable() else shown(words)
