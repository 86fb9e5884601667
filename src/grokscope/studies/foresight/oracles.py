"""`python -m grokscope.studies.foresight.oracles FOLDER`: forecasts of runs of which the truth is known.

On ridge regression the step of grokking is known before the first step, from the rows and the initial weights alone
(`law.ridge`): the whole error of a forecast is the forecaster's, with no noise between seeds in it. Its logs are the
closed form at each evaluation. Shuffled labels can never be learnt: the probability of grokking has to go to 0, and
must not for the same runs with their true labels. Those are small runs that `--train` trains on a CPU within minutes.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from grokscope.errors import require
from grokscope.files import write_atomically
from grokscope.forecast import Forecaster, Prefix, load_forecaster, run_prefix
from grokscope.forecast.benchmark import fit_baseline
from grokscope.forecast.cases import Case
from grokscope.jobs import run_all
from grokscope.law import ridge_timing, squared_errors
from grokscope.runs import Store, open_runs
from grokscope.runs.packing import read_head, save_records, unpack_records
from grokscope.runs.provenance import provenance
from grokscope.specs import Architecture, Cadence, Initialization, RunSpec, Training
from grokscope.tasks import named_task, split

__all__ = ["RidgeRun", "label_runs", "main", "oracles_page", "ridge_errors", "ridge_runs", "shuffled_probabilities"]

PENALTIES = (0.01, 0.02, 0.03, 0.04, 0.06, 0.08)
SEEDS = 10
RATE, EPSILON = 0.05, 1e6  # γ, and an ε far above every gradient: AdamW is gradient descent
STEPS, EVERY = 8000, 20
SHARES = (0.25, 0.5, 0.75)  # of the true step, at which the forecast is made
REFITTED = ("configuration", "clock", "first-passage", "validation-loss", "hazard-5")
HORIZON = 2000
RECORDS, PAGE = "oracles/labels.records.gz", "oracles.md"
AT = (200, 500, 1000, 1500, 2000, 3000, 4000, 5000, 6000)  # steps of the small runs


@dataclass(frozen=True)
class RidgeRun:
    """One run of ridge regression, as its closed form has it."""

    case: Case
    """What a forecaster may see of it; its cell is its penalty."""
    truth: float
    """The step at which it groks, with its fraction."""


def ridge_runs(penalties: Sequence[float] = PENALTIES, seeds: int = SEEDS) -> list[RidgeRun]:
    """Runs with other rows, teachers and initial weights for each seed; no run is trained.

    >>> one, *_ = ridge_runs((0.08,), 1)
    >>> one.case.grokked - one.truth < EVERY, one.case.run.memorized < one.case.grokked
    (True, True)
    """
    return [_ridge_run(penalty, seed) for penalty in penalties for seed in range(1, seeds + 1)]


def ridge_spec(penalty: float, seed: int) -> RunSpec:
    """The run with a penalty ζ whose closed form `ridge_runs` gives.

    >>> ridge_spec(0.08, 3).task
    'ridge_d60_n40_success0.6_seed3'
    """
    training = Training(
        steps=STEPS,
        learning_rate=RATE * EPSILON / 2,
        epsilon=EPSILON,
        beta1=0.0,
        weight_decay=2 * penalty / EPSILON,
        batch_size=None,
        loss="mse",
    )
    return RunSpec(
        f"ridge_d60_n40_success0.6_seed{seed}",
        architecture=Architecture(kind="mlp", layers=0, biases=False),
        initialization=Initialization(scheme="normal", scale=10.0),
        training=training,
        measurements=Cadence(every=EVERY),
        checkpoints=Cadence(every=None),
    ).with_seed(seed)


def _ridge_run(penalty: float, seed: int) -> RidgeRun:
    spec = ridge_spec(penalty, seed)
    timing, task = ridge_timing(spec), named_task(spec.task)
    require(timing.grokked is not None, "a run of the oracle must grok within its budget", spec.task)
    assert timing.grokked is not None
    assert task.vectors is not None
    parts, steps = split(task, spec.train_fraction, spec.seeds.split), np.arange(0, STEPS + 1, EVERY)
    train, validation = (
        squared_errors(timing.descent, task.vectors[rows], task.answers[rows])(steps)
        for rows in (parts.train, parts.validation)
    )
    log: dict[str, Sequence[float | int]] = {
        "step": steps.tolist(),
        "train_loss": train.tolist(),
        "validation_loss": validation.tolist(),
        "train_relative_error": (train / task.success_error).tolist(),
        "validation_relative_error": (validation / task.success_error).tolist(),
        "norm": np.linalg.norm(timing.descent.along(steps), axis=(1, 2)).tolist(),
    }
    case = Case(run_prefix(spec, log), f"{penalty:g}", "ridge", "linear", STEPS)
    return RidgeRun(case, timing.grokked)


@dataclass(frozen=True)
class RidgeError:
    """How far a forecaster is from the truth."""

    name: str
    """Which, and what it was fitted to."""
    errors: Mapping[float, float]
    """Share of the true step at which the forecast is made → mean of |forecast − T|/T, each at most 1."""
    inside: float
    """Share of the true steps inside the 80 % interval, over all those forecasts."""


def ridge_errors(runs: Sequence[RidgeRun]) -> list[RidgeError]:
    """The shipped forecaster, which was fitted to other tasks, and forecasters fitted to runs of other penalties."""
    found = [_error("shipped, fitted to other tasks", runs, lambda left_out: load_forecaster(5))]
    for name in REFITTED:

        def fitted(left_out: str, name: str = name) -> Forecaster:
            return fit_baseline(name, [run.case for run in runs if run.case.cell != left_out], every=EVERY * 10)

        found.append(_error(f"{name}, fitted to other penalties", runs, fitted))
    return found


def _error(name: str, runs: Sequence[RidgeRun], forecaster: Callable[[str], Forecaster]) -> RidgeError:
    errors: dict[float, list[float]] = {share: [] for share in SHARES}
    inside: list[bool] = []
    for cell in dict.fromkeys(run.case.cell for run in runs):
        predicting, own = forecaster(cell), [run for run in runs if run.case.cell == cell]
        for share in SHARES:
            prefixes = [run.case.run.until(int(share * run.truth)) for run in own]
            for run, one in zip(own, predicting.predict(prefixes, HORIZON), strict=True):
                errors[share].append(min(abs(one.step + one.median - run.truth) / run.truth, 1.0))
                left = run.truth - one.step
                inside.append(one.quantiles[0.1] <= left <= one.quantiles[0.9])
    means = {share: float(np.mean(values)) for share, values in errors.items()}
    return RidgeError(name, means, float(np.mean(inside)))


def label_runs(seeds: int = 4) -> list[RunSpec]:
    """Small runs that memorise their labels: true ones, which grok, and the same shuffled.

    >>> [run.shuffled_labels for run in label_runs(1)]
    [False, True]
    """
    training = Training(steps=max(AT), learning_rate=3e-3, weight_decay=2.0, batch_size=None)
    usual = RunSpec(
        "add_mod23",
        train_fraction=0.5,
        architecture=Architecture(layers=1, width=32, heads=2, mlp_width=128),
        training=training,
        measurements=Cadence(every=100),
        checkpoints=Cadence(every=None),
    )
    return [
        replace(usual, shuffled_labels=shuffled).with_seed(seed) for seed in range(seeds) for shuffled in (False, True)
    ]


def shuffled_probabilities(runs: Iterable[tuple[bool, Prefix]]) -> dict[bool, list[tuple[int, float, float]]]:
    """Whether labels are shuffled → (step, mean, greatest) of the shipped forecaster's probability at each step.

    Each is of grokking within the next 2,000 steps; runs that have grokked by then count as 1.

    >>> shuffled_probabilities([])
    {False: [], True: []}
    """
    known = [*runs]
    found: dict[bool, list[tuple[int, float, float]]] = {False: [], True: []}
    for shuffled, rows in found.items():
        own = [run for is_shuffled, run in known if is_shuffled == shuffled]
        for step in AT if own else ():
            ahead = load_forecaster(5).predict([run.until(step) for run in own], HORIZON)
            probabilities = [one.probability for one in ahead]
            rows.append((step, float(np.mean(probabilities)), max(probabilities)))
    return found


def oracles_page(folder: Path) -> str:
    """The page about both, from the closed form and from stored runs."""
    runs, records = ridge_runs(), unpack_records(folder / RECORDS)
    head = read_head(folder / RECORDS)
    prefixes = [(record.spec.shuffled_labels, run_prefix(record.spec, record.evaluations)) for record in records]
    found = shuffled_probabilities(prefixes)
    count = sum(shuffled for shuffled, _ in prefixes)
    outside = load_forecaster(5).predict([runs[0].case.run.until(200)], HORIZON)[0].outside
    rows = [
        _row([one.name, *(f"{one.errors[share]:.2f}" for share in SHARES), f"{100 * one.inside:.0f} %"])
        for one in ridge_errors(runs)
    ]
    labels = [
        _row([f"{step:,}", f"{mean:.2f}", f"{most:.2f}", f"{true:.2f}"])
        for (step, mean, most), (_, true, _) in zip(found[True], found[False], strict=True)
    ]
    lines = [
        "# Forecasts where the truth is known",
        "",
        "## Ridge regression",
        "",
        f"{len(runs)} runs: {len(PENALTIES)} penalties, {SEEDS} seeds each. The step of grokking T is known in closed "
        "form, and so is every evaluation; nothing was trained. Mean of |forecast − T|/T, at most 1, of forecasts made "
        "at a share of T, and the share of all T inside the 80 % interval.",
        "",
        _row(["forecaster", *(f"at {share:.0%} of T" for share in SHARES), "inside 80 %"]),
        _row(["---"] * (len(SHARES) + 2)),
        *rows,
        "",
        f"Of these runs the shipped forecaster says: {'; '.join(outside)}.",
        "",
        "## Shuffled labels",
        "",
        f"Probability of grokking within the next {HORIZON:,} steps, by the shipped forecaster of tier 5, of {count} "
        f"small runs with shuffled labels and of the {len(prefixes) - count} same runs with true ones. "
        f"Trained on {head['device']}, commit {head['commit']}.",
        "",
        _row(["step", "shuffled, mean", "shuffled, greatest", "true labels, mean"]),
        _row(["---"] * 4),
        *labels,
    ]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _train(path: Path) -> None:
    """Train the small runs and pack them."""
    with TemporaryDirectory() as folder:
        run_all(label_runs(), Store(folder), compiled=False)
        records = [run.record for run in open_runs(folder)]
    made = provenance("cpu")
    save_records(path, records, {"commit": made["commit"], "device": made["device"]})


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, with `--train` after training the small runs again; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.studies.foresight.oracles", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="results/foresight")
    parser.add_argument("--train", action="store_true", help="train the small runs again")
    chosen = parser.parse_args(arguments)
    if chosen.train:
        _train(chosen.folder / RECORDS)
    write_atomically(chosen.folder / PAGE, oracles_page(chosen.folder).encode())
    print(f"wrote {chosen.folder / PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
