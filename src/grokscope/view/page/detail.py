"""Runs shown in detail, computed from their weights: participation in each mode, ablation, the neurons' formulas."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from math import isnan, nan
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grokscope.errors import InputError, shown
from grokscope.files import DamagedError
from grokscope.measures import ablation, formulas, fourier_kan, fsd, refitted
from grokscope.measures.question import Question
from grokscope.model import components_of
from grokscope.runs.records import known_task
from grokscope.runs.runs import Run
from grokscope.runs.settings import is_selected
from grokscope.view.page.sources import ShownRun

__all__ = ["MOST_RUNS", "ablation_rows", "detail_of", "detail_or_reason", "featured"]

MOST_RUNS, MOST_STEPS, TOP_MODES, TOP_WAVES = 8, 24, 3, 3
NAMED = 4  # runs that a sentence names
STEPS_AT_ONCE = 4  # checkpoints in one stack: some hundred MB
SHARES = 255  # a share of power in a byte


def featured(runs: Sequence[ShownRun], wanted: Iterable[str]) -> list[int]:
    """Places of the runs with these names, or beginnings of names or hashes, as a store finds them."""
    found: list[int] = []
    for word in wanted:
        name, *conditions = word.split(":")
        exact = [place for place, run in enumerate(runs) if name in (run.name, *run.name.rpartition("-")[::2])]
        begins = [place for place, run in enumerate(runs) if run.name.startswith(name)]
        matches = [place for place in exact or begins if is_selected(runs[place].record.spec, conditions)]
        roots = [place for place in matches if runs[place].record.spec.fork is None]  # a run and its forks share a word
        matches = roots if exact and len(roots) == 1 else matches
        if len(matches) != 1:
            which = ", ".join(_described(runs[place]) for place in matches[:NAMED])
            which += f" and {len(matches) - NAMED} more" if len(matches) > NAMED else ""
            counted = f"names {len(matches)} runs, expected one{': ' if which else ''}{which}"
            raise InputError(f"--detail {ascii(word)[:80]} {counted}")
        if runs[matches[0]].stored is None or not runs[matches[0]].stored.steps:  # type: ignore[union-attr]
            raise InputError(f"--detail needs stored weights, and {runs[matches[0]].name} has none")
        found += [] if matches[0] in found else matches
    if len(found) > MOST_RUNS:
        raise InputError(f"--detail takes at most {MOST_RUNS} runs, got {len(found)}")
    return found


def _described(run: ShownRun) -> str:
    """A run by its name, and by what tells it from others of its seed."""
    spec = run.record.spec
    fork = f", forked at {spec.fork.step:,}" if spec.fork else ""
    return f"{ascii(run.name)[1:-1]} ({spec.training.decay_label}{fork})"


def detail_of(run: Run) -> dict[str, Any]:
    """A run's modes at up to 24 of its checkpoints, spread evenly from the first to the last."""
    places = np.unique(np.linspace(0, len(run.steps) - 1, min(MOST_STEPS, len(run.steps))).round().astype(int))
    steps = [run.steps[place] for place in places]
    parts = [_read(run, steps[i : i + STEPS_AT_ONCE]) for i in range(0, len(steps), STEPS_AT_ONCE)]
    joined = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    last = Question(run.subject([steps[-1]]), spec=run.spec)
    modes = last.basis.modes.modes
    return {
        "steps": list(steps),
        "basis": last.basis.name,
        "site": last.site,
        "labels": [mode.label for mode in modes],
        "dimensions": [mode.irrep_dimension for mode in modes],
        "neurons": int(joined["modes"].shape[1]),
        "top": int(joined["modes"].shape[2]),
        "participation": [[round(x, 4) for x in row] for row in joined["participation"].nan_to_num().tolist()],
        "modes": _bytes(joined["modes"], "<u2"),
        "shares": _bytes((joined["shares"].nan_to_num() * SHARES).round(), "u1"),
        "formulas": _formulas(last),
        "ablation": _ablated(last),
    }


def _read(run: Run, steps: Sequence[int]) -> dict[str, Tensor]:
    """Participation, and each neuron's strongest modes with their shares of its power, at some checkpoints."""
    waves = Question(run.subject(steps), spec=run.spec).spectrum()
    shares = (waves.power / waves.power.sum(dim=-2, keepdim=True)).nan_to_num()
    order = waves.density.argsort(dim=-2, descending=True, stable=True)[..., :TOP_MODES, :]
    return {
        "participation": fsd(waves.density).participation,
        "modes": order.mT,
        "shares": shares.gather(-2, order).mT,
    }


def _bytes(values: Tensor, kind: str) -> str:
    return b64encode(values.cpu().numpy().astype(kind).tobytes()).decode()


def _formulas(question: Question) -> list[dict[str, Any]]:
    """Every neuron's sparse series at the last checkpoint, the largest amplitude first; none if modes are irreps."""
    if not question.basis.modes.is_fourier:
        return []
    means = question.means().means
    fit = refitted(means, fourier_kan(means, question.basis))
    found = []
    for neuron, (formula, r_squared) in enumerate(zip(formulas(fit, 0), fit.r_squared[0].tolist(), strict=True)):
        strongest = formula.strongest(TOP_WAVES)
        row = {
            "neuron": neuron,
            "amplitude": formula.waves[0].amplitude if formula.waves else 0.0,
            "r_squared": r_squared,
            "share": r_squared * strongest.variance / formula.variance if formula.waves else nan,
            "left_out": len(formula.waves) - len(strongest.waves),
            "strongest": strongest.text(),
            "text": formula.text(),
        }
        found.append(row)
    return sorted(found, key=lambda row: -row["amplitude"])


def _ablated(question: Question) -> list[dict[str, Any]]:
    """Accuracy lost where the output of a branch or a head is zero, and where that of a branch is its mean."""
    parts = components_of(question.stack.architecture)
    branches = [part for part in parts if part.head is None]
    found = [*ablation(question.stack, parts), *ablation(question.stack, branches, "mean")]
    return [
        {
            "component": row.component.short_name,
            "method": row.method,
            "drop": float(row.accuracy_drop[0]),
            "validation_drop": float(row.validation_accuracy_drop[0]),
        }
        for row in found
    ]


def ablation_rows(measured: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """The same from what was measured at the last checkpoint while training, where it was."""
    found = []
    for column, values in measured.items():
        if column.startswith("drop_") and "@" not in column and values and not isnan(values[-1]):
            component, _, method = column.removeprefix("drop_").rpartition("_")
            validation = measured.get(f"validation_{column}", [float("nan")])[-1]
            drop = {"drop": values[-1], "validation_drop": None if isnan(validation) else validation}
            found.append({"component": component, "method": method, **drop})
    return found


def detail_or_reason(run: Run) -> dict[str, Any] | str:
    """The detail, or why there is none: a damaged checkpoint does not prevent the page."""
    if known_task(run.spec.task) is None:
        return f"the task {shown(run.spec.task)} is not at hand, or it is a function, which a page does not run"
    try:
        return detail_of(run)
    except (DamagedError, InputError) as error:
        return str(error)
