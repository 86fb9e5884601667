"""The catalogue of measures: a line each, or one with its formula, source, cost, null, columns and a worked example."""

import json
import textwrap
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from grokscope.cli.columns import print_columns
from grokscope.cli.measure_table import format_value
from grokscope.measures.catalogue import MEASURES, measure, measure_named
from grokscope.measures.question import Question

__all__ = ["print_catalogue"]

WORDS = ("title", "formula", "source", "cost", "null", "undefined")


def print_catalogue(names: Sequence[str], as_json: bool) -> None:
    """Explain the measures of these names, or list all if there are none."""
    chosen = {name: measure_named(name) for name in names} or MEASURES
    if as_json:
        facts = {
            name: {word: getattr(one, word) for word in WORDS} | {"columns": dict(one.columns)}
            for name, one in chosen.items()
        }
        print(json.dumps(facts))
    elif not names:
        rows = [(name, one.title, one.source) for name, one in chosen.items()]
        print_columns(("measure", "what it is", "source"), rows, whole=frozenset({"measure"}))
    else:
        for name in chosen:
            _explain(name)


def _explain(name: str) -> None:
    one = measure_named(name)
    lines = [f": {one.title}\n", textwrap.indent(one.formula, "    ") + "\n"]
    lines += [f"{word:>9}  {getattr(one, word)}" for word in WORDS[2:]]
    lines += ["\ncolumns", *(f"  {column}: {meaning}" for column, meaning in one.columns.items())]
    lines += [f"\nexample\n  grokscope measure runs/first add_mod97_s0 --measures {name}\n", _worked_example(name)]
    Console(highlight=False).print(f"[bold]{name}[/bold]" + escape("\n".join(lines)), soft_wrap=True)


def _worked_example(name: str) -> str:
    """Two untrained networks on addition mod 7, measured here and now."""
    from grokscope.activations import subject_of
    from grokscope.specs import Architecture, RunSpec
    from grokscope.training import Cohort

    spec = RunSpec(task="add_mod7", architecture=Architecture(width=16, mlp_width=32))
    specs = [spec.with_seed(seed) for seed in (0, 1)]
    subject = subject_of(specs, Cohort(specs).initial(), ["seed 0", "seed 1"])
    rows = measure(Question(subject, spec=spec), [name])
    lines = ["on two untrained networks that add modulo 7 (seeds 0 and 1)"]
    columns = [column for column in rows[0] if column != "undefined"]
    lines += [f"  {column}: {', '.join(format_value(row[column]) for row in rows)}" for column in columns]
    return "\n".join(lines)
