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
from grokscope.specs import Architecture, RunSpec

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
    """Small networks on addition mod 7, measured here and now."""
    compares_checkpoints = "trajectory" in measure_named(name).needs
    title, question = _one_in_training() if compares_checkpoints else _two_untrained()
    rows = measure(question, [name])
    lines = [title]
    columns = [column for column in rows[0] if column != "undefined"]
    lines += [f"  {column}: {', '.join(format_value(row[column]) for row in rows)}" for column in columns]
    return "\n".join(lines)


def _two_untrained() -> tuple[str, Question]:
    from grokscope.activations import subject_of
    from grokscope.training import Cohort

    spec = _small_run()
    specs = [spec.with_seed(seed) for seed in (0, 1)]
    subject = subject_of(specs, Cohort(specs).initial(), ["seed 0", "seed 1"])
    return "on two untrained networks that add modulo 7 (seeds 0 and 1)", Question(subject, spec=spec)


def _one_in_training() -> tuple[str, Question]:
    import torch

    from grokscope.activations import Trajectory, subject_of
    from grokscope.training import Cohort, advance, initial_state

    spec, steps, measured = _small_run(), range(0, 130, 10), (110, 120)
    cohort = Cohort([spec])
    state = initial_state(cohort)
    weights = {0: state.weights.clone()}
    for step in steps[1:]:
        advance(state, cohort, 10, compiled=False)
        weights[step] = state.weights.clone()
    named = {step: {name: one[0] for name, one in cohort.layout.views(row).items()} for step, row in weights.items()}
    trajectory = Trajectory(tuple(steps), named.__getitem__, measured)
    subject = subject_of([spec] * 2, torch.cat([weights[step] for step in measured]))
    title = "on a network that adds modulo 7, after 110 and 120 steps (checkpoints every 10)"
    return title, Question(subject, spec=spec, trajectory=trajectory)


def _small_run() -> RunSpec:
    return RunSpec(task="add_mod7", architecture=Architecture(width=16, mlp_width=32))
