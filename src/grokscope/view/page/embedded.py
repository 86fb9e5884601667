"""The data embedded in the page, as two texts: facts in JSON, and columns of numbers."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

from grokscope.view.charts.style import HUES
from grokscope.view.page.detail import ablation_rows, detail_or_reason, featured
from grokscope.view.page.fans import fanned_names, fans_of
from grokscope.view.page.laws import forks_of
from grokscope.view.page.method import marks, method_of
from grokscope.view.page.nulls import null_bands
from grokscope.view.page.packing import BUDGET, deflated, packed_columns
from grokscope.view.page.rows import row_of, task_or_none
from grokscope.view.page.sources import Source

__all__ = ["embedded_data"]

COLUMNS = (
    "train_accuracy",
    "validation_accuracy",
    "fsd",
    "rank",
    "norm",
    "train_loss",
    "validation_loss",
    "fsd_mode",
    "answer_share",
    "weight_decay",
)
"""Columns of a log, in the order in which the page offers them; those of held-out groups and real answers follow."""
OTHERS = ("_accuracy", "_loss", "_relative_error")


def embedded_data(
    source: Source,
    detail: Sequence[str] = (),
    report: Callable[[str], None] = lambda name: None,
    budget: int = BUDGET,
) -> dict[str, str]:
    """The facts and the columns, each deflated and in base64; `report` gets the name of each run read in detail."""
    details = {}
    for place in featured(source.runs, detail):
        report(source.runs[place].name)
        details[str(place)] = detail_or_reason(source.runs[place].stored)  # type: ignore[arg-type]
    logged = dict.fromkeys(name for run in source.runs for name in run.record.evaluations)
    known = [name for name in COLUMNS if name in logged]
    known += [name for name in logged if name.endswith(OTHERS) and name not in known]
    packed = packed_columns([run.record.evaluations for run in source.runs], known, budget)
    facts = {
        "title": source.title,
        "rows": _rows(source),
        "columns": packed.names,
        "lengths": packed.lengths,
        "digits": packed.digits,
        "stride": packed.stride,
        "roles": HUES,
        "nulls": null_bands(source.runs, [*map(int, details)]),
        "forks": forks_of(source.runs),
        "irreps": _irreps(source),
        "ablation": {
            str(place): rows for place, run in enumerate(source.runs) if (rows := ablation_rows(run.record.checkpoints))
        },
        "details": details,
        "claims": list(source.claims),
        "message": list(source.message),
        "marks": marks(),
        "method": method_of(source),
    }
    return {"facts": deflated(json.dumps(_finite(facts), separators=(",", ":")).encode()), "columns": packed.text}


def _rows(source: Source) -> list[dict[str, Any]]:
    """A row for each run; copies of one run in folders of different names get different links."""
    seen: Counter[str] = Counter()
    wanted = fanned_names(source.runs)
    fans = fans_of(run for run in source.runs if run.name in wanted)
    rows = [row_of(run) | {"forecast": fans.get(run.name)} for run in source.runs]
    for row in sorted(rows, key=lambda row: not row["name"].endswith(row["id"])):  # its own folder first
        seen[row["id"]] += 1
        row["link"] = row["id"] if seen[row["id"]] == 1 else f"{row['id']}-{seen[row['id']]}"
    return rows


def _irreps(source: Source) -> dict[str, list[list[Any]]]:
    """Label and dimension of each mode of every task on the page whose modes are no frequencies, by task."""
    found = {}
    for name in sorted({run.record.spec.task for run in source.runs}):
        task = task_or_none(name)
        if task is not None and task.bases and not task.basis().modes.is_fourier:
            found[name] = [[mode.label, mode.irrep_dimension, mode.dimension] for mode in task.basis().modes.modes]
    return found


def _finite(value: Any) -> Any:
    """The same with null for what is no number: JSON has no NaN."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value
