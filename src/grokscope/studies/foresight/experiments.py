"""Which runs the collection consists of, in the order in which they are to be trained.

Development cells come first, and the probes of the bisection with them. Test cells are trained once the forecasters'
parameters are committed together with the seal (`results/foresight/seal.json`).
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from grokscope.specs import RunSpec
from grokscope.studies.foresight.bisection import next_fraction
from grokscope.studies.foresight.cells import CELLS, CollectionCell, Split
from grokscope.studies.run_set import Precision, Runs

__all__ = ["BOUNDARIES", "EXPERIMENTS", "KINDS", "kind_runs", "planned_runs", "probe_runs", "quick_runs"]

Probes = Mapping[str, Mapping[float, float]]
SEEDS, PROBES = 28, 8
KINDS = ("boundary", "quick", "negative", "slow")
"""In the order in which they are trained: what measures a forecaster most comes first."""
BOUNDARIES = Path(__file__).with_name("boundaries.json")
"""What the probes have shown: cell → train fraction → share of its seeds that grokked."""


def known_probes() -> dict[str, dict[float, float]]:
    """The shares of seeds that grokked, as they are stored.

    >>> all(name in CELLS for name in known_probes())
    True
    """
    found = json.loads(BOUNDARIES.read_text(encoding="utf-8"))
    return {name: {float(fraction): share for fraction, share in probes.items()} for name, probes in found.items()}


def _runs_of_cell(cell: CollectionCell, probes: Mapping[float, float], n_seeds: int | None) -> Runs:
    """All seeds of a cell; of a boundary cell those of every probe so far, of the next one, and of its own fraction."""
    seeds = SEEDS if n_seeds is None else n_seeds
    if cell.bracket is None:
        return {f"{cell.name}_s{seed}": cell.run(seed) for seed in range(seeds)}
    fraction, is_own = next_fraction(probes, cell.bracket)
    counts = dict.fromkeys((*probes, fraction), min(PROBES, seeds)) | ({fraction: seeds} if is_own else {})
    return {
        f"{cell.name}-f{one:g}_s{seed}": cell.run(seed, one) for one, count in counts.items() for seed in range(count)
    }


def kind_runs(split: Split, kind: str, probes: Probes, precision: Precision, n_seeds: int | None = None) -> Runs:
    """All runs of one kind that are known once these probes are.

    >>> len(kind_runs("development", "slow", {}, "tf32")) == 3 * SEEDS
    True
    """
    found = dict[str, RunSpec]()
    for cell in CELLS.values():
        if (cell.split, cell.kind) == (split, kind):
            found |= _runs_of_cell(cell, probes.get(cell.name, {}), n_seeds)
    return {name: replace(spec, precision=precision) for name, spec in found.items()}


def probe_runs(split: Split, probes: Probes, precision: Precision) -> Runs:
    """The runs of every probe of the boundary so far and of the next ones.

    >>> len(probe_runs("development", {}, "tf32")) % PROBES
    0
    """
    return kind_runs(split, "boundary", probes, precision, PROBES)


def _experiment(split: Split, kind: str) -> Callable[[int | None, Precision], Runs]:
    return lambda n_seeds, precision: kind_runs(split, kind, known_probes(), precision, n_seeds)


EXPERIMENTS: Mapping[str, Callable[[int | None, Precision], Runs]] = {
    f"{split}-{kind}": _experiment(split, kind)
    for split in ("development", "test")
    for kind in KINDS
    if any((cell.split, cell.kind) == (split, kind) for cell in CELLS.values())
}


def planned_runs(split: Split, precision: Precision = "tf32") -> Runs:
    """All runs of a split that are known by now.

    >>> len(planned_runs("development")) > len(planned_runs("test")) > 100
    True
    """
    names = [name for name in EXPERIMENTS if name.startswith(split)]
    return {name: spec for experiment in names for name, spec in EXPERIMENTS[experiment](None, precision).items()}


def quick_runs(precision: Precision = "float32") -> dict[str, Runs]:
    """Two small runs, to see what the output is.

    >>> [len(runs) for runs in quick_runs().values()]
    [2]
    """
    base = CELLS["add_mod97-w4-f0.4"].spec
    small = replace(base, task="add_mod23", training=replace(base.training, steps=300), precision=precision)
    return {"development-quick": {f"add_mod23_s{seed}": small.with_seed(seed) for seed in range(2)}}
