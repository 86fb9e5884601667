"""Packed curves of the collection: thinned by a stated rule, and packed by all cores, since a lent machine waits."""

import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from grokscope.files import write_atomically
from grokscope.jobs.local import cores
from grokscope.runs.outcome import READING
from grokscope.runs.packing import pack_head, pack_lines, record_line
from grokscope.runs.records import RunRecord
from grokscope.runs.store import Store
from grokscope.specs import RunSpec

__all__ = ["LARGEST_FILE", "RULE", "kept_places", "pack_curves", "thinned"]

SPACING = ((1_000, 0), (4_000, 100), (float("inf"), 200))  # up to a step, the multiples that are kept; 0 keeps all
DIGITS = 4  # significant, of what is measured beside losses and accuracies
WHOLE = ("step", "train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "weight_decay")
LEFT_OUT = ("fingerprint",)  # compares forks with their parents, and there are none
LARGEST_FILE = 15 * 10**6  # bytes
AT_ONCE = 32  # runs that a process packs
RULE = (
    "All evaluations up to step 1,000 are kept, then those at multiples of 100 up to step 4,000 and of 200 beyond, the "
    "last, and those on both sides of every crossing of the levels of memorisation and grokking. Losses and accuracies "
    "have seven digits, all else four."
)


def kept_places(columns: Mapping[str, Sequence[float | int]]) -> list[int]:
    """The places of the evaluations that are kept, in order.

    >>> steps = [*range(0, 5001, 50)]
    >>> none = [0.0] * len(steps)
    >>> columns = {"step": steps, "train_accuracy": none, "validation_accuracy": none}
    >>> [steps[i] for i in kept_places(columns)][18:23], len(kept_places(columns))
    ([900, 950, 1000, 1100, 1200], 56)
    """
    steps = columns["step"]
    kept = {i for i, step in enumerate(steps) if _is_regular(int(step))} | {0, len(steps) - 1}
    for name, level in (("train_accuracy", READING.memorized), ("validation_accuracy", READING.grokked)):
        sides = [value >= level for value in columns[name]]
        kept |= {place for i, (before, after) in enumerate(pairwise(sides)) if before != after for place in (i, i + 1)}
    return sorted(kept)


def _is_regular(step: int) -> bool:
    every = next(every for last, every in SPACING if step <= last)
    return every == 0 or step % every == 0


def thinned(record: RunRecord) -> RunRecord:
    """A record with the evaluations and the digits that are kept."""
    places = kept_places(record.evaluations)
    kept = {
        name: [values[i] if name in WHOLE else _rounded(values[i]) for i in places]
        for name, values in record.evaluations.items()
        if name not in LEFT_OUT
    }
    return replace(record, evaluations=kept)


def _rounded(value: float | int) -> float | int:
    return value if isinstance(value, int) else float(f"{value:.{DIGITS}g}")


def pack_curves(
    out: str, specs: Sequence[RunSpec], path: Path, about: Mapping[str, Any], processes: int | None = None
) -> dict[Path, int]:
    """Pack runs that have ended into files of at most 15 MB, FILE, FILE-2, …; each with the number of its runs.

    Example::

        pack_curves("runs", ended, Path("development.records.gz"), {"split": "development"})
    """
    parts = [specs[start : start + AT_ONCE] for start in range(0, len(specs), AT_ONCE)]
    files: list[list[tuple[int, bytes]]] = [[]]
    for part, packed in zip(parts, _packed(out, parts, processes or cores()), strict=True):
        if sum(len(one) for _, one in files[-1]) + len(packed) > LARGEST_FILE:
            files.append([])
        files[-1].append((len(part), packed))
    written: dict[Path, int] = {}
    for number, members in enumerate(files, start=1):
        name = path if number == 1 else path.with_name(path.name.replace(".records.gz", f"-{number}.records.gz"))
        written[name] = sum(count for count, _ in members)
        head = pack_lines([{**pack_head(about), "rule": RULE, "finished": written[name]}])
        write_atomically(name, head + b"".join(packed for _, packed in members))
    return written


def _packed(out: str, parts: Sequence[Sequence[RunSpec]], processes: int) -> Iterator[bytes]:
    """Each part packed, in order, by several processes where that is worth their start."""
    work = partial(_pack, out)
    if processes < 2 or len(parts) < 2:
        yield from map(work, parts)
        return
    with ProcessPoolExecutor(min(processes, len(parts)), multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(work, parts)


def _pack(out: str, specs: Sequence[RunSpec]) -> bytes:
    store = Store(out)
    return pack_lines(record_line(thinned(store.locate(spec).record())) for spec in specs)
