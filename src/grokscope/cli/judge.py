"""`grokscope judge`: events, outcome and forecast of a run that another program logged."""

import json
import textwrap
from pathlib import Path
from typing import Annotated, Literal

import tyro

from grokscope.cli.options import JsonFlag, reject
from grokscope.errors import InputError

__all__ = ["judge"]

Log = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="LOG")]
Value = Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")]


def judge(
    log: Log,
    columns: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=COLUMN ...", help_behavior_hint="")] = (),
    accuracy: Literal["auto", "share", "percent"] = "auto",
    weight_decay: Value = None,
    learning_rate: Value = None,
    train_fraction: Value = None,
    classes: Value = None,
    horizon: Annotated[int, tyro.conf.arg(metavar="INT")] = 10_000,
    as_json: JsonFlag = False,
) -> None:
    """Judge a run by the log that another program wrote.

    It prints when the run memorised and grokked, whether it stayed so, how it ended, and where it is heading. Nothing
    is trained. Columns are recognised by their names. Rows may be in any order; of a step that stands twice the last
    value counts; a missing value stays missing; accuracies above 1 are read as percent. A log of any length is
    streamed, and thinned beyond 400,000 values with exact first crossings. What was decided is printed.

    Args:
        log: A table (CSV, TSV; also of W&B, with one or more runs), JSON, JSON lines, or an event file of TensorBoard
            or the folder of it. A table may end in .gz.
        columns: What the log calls a column of ours, where its name does not tell, such as
            validation_accuracy=probe/hits.
        accuracy: The unit of accuracies; auto: percent if any is above 1.
        weight_decay: The run's λ, for the forecast, unless it is logged.
        learning_rate: The run's η, for the forecast, unless it is logged.
        train_fraction: The share of the rows that it is trained on, for the forecast.
        classes: The number of possible answers, for the forecast.
        horizon: Steps ahead for which the probability of grokking is printed.

    Examples:
        grokscope judge history.csv
        grokscope judge history.csv --columns validation_accuracy=probe
        grokscope judge history.csv --weight-decay 1 --learning-rate 0.001 --classes 97
    """
    known = {
        "weight_decay": weight_decay,
        "learning_rate": learning_rate,
        "train_fraction": train_fraction,
        "classes": classes,
    }
    reject({f"--horizon must be at least 1, got {horizon}": horizon < 1})
    reject(
        {
            f"--{name.replace('_', '-')} must be a finite number of at least 0, got {value}": not 0 <= value < 1e9
            for name, value in known.items()
            if value is not None
        }
    )
    from grokscope.runs.foreign_logs import read_foreign_logs
    from grokscope.view.judgment import judge_log

    found = [
        judge_log(one, {name: value for name, value in known.items() if value is not None}, horizon)
        for one in read_foreign_logs(log, _named(columns), accuracy)
    ]
    if as_json:
        print(json.dumps([one.to_dict() for one in found]))
        return
    from rich.console import Console

    width = Console().width
    print("\n\n".join("\n".join(textwrap.fill(line, width) for line in one.sentences) for one in found))


def _named(pairs: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, equals, column = pair.partition("=")
        if not equals or not name or not column:
            raise InputError(f"--columns takes NAME=COLUMN, such as validation_accuracy=probe, got {pair!r}")
        found[name] = column
    return found
