"""Which runs a command line describes: specs from files, seeds, and every combination of the values given."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from grokscope.cli.options import reject
from grokscope.errors import InputError, for_shell, shown
from grokscope.files import named, read_given, write_atomically
from grokscope.specs import RunSpec

__all__ = ["combinations", "parse_seeds", "read_specs", "read_text", "write_specs"]

MOST_SEEDS = 100_000


def parse_seeds(text: str) -> list[int]:
    """The seeds that `0`, `0,1,42`, `0:16` or `0:4,42` stand for.

    >>> parse_seeds("0:4,42")
    [0, 1, 2, 3, 42]
    """
    found: list[int] = []
    for part in text.split(","):
        low, colon, high = part.strip().partition(":")
        numbers = [low, high] if colon else [low]
        if not all(number.isascii() and number.isdigit() and len(number) < 19 for number in numbers):
            raise InputError(f"seeds must be whole numbers from 0 on, such as 0, 0,1,42 or 0:16, got {shown(text)}")
        if colon and not 0 < int(high) - int(low) <= MOST_SEEDS:
            raise InputError(f"a range of seeds must be increasing and of at most 100,000, got {shown(part)}")
        found += range(int(low), int(high)) if colon else [int(low)]
    return list(dict.fromkeys(found))


def read_text(path: Path, what: str) -> str:
    """The content of a file that a command was given; one that cannot be read is rejected."""
    content = read_given(path, f"{what} {named(path)}")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{what} {named(path)} cannot be read: {error}") from None


def read_specs(path: Path) -> list[RunSpec]:
    """The spec in a .json file, or those in a .jsonl file, one a line."""
    text = read_text(path, "the spec")
    if path.suffix != ".jsonl":
        return [RunSpec.from_json(text)]
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            found += [RunSpec.from_json(line)] if line.strip() else []
        except InputError as error:
            raise InputError(f"line {number} of {named(path)}: {error}") from None
    return found


def write_specs(specs: Sequence[RunSpec], path: Path) -> None:
    """Write specs as `read_specs` reads them, a single one in lines that are easy to edit."""
    lines = [spec.to_json() for spec in specs]
    reject(
        {
            f"a spec is written as .json, or several as .jsonl, got {named(path)}": path.suffix
            not in (".json", ".jsonl"),
            f"{named(path)} would hold one run, and these are {len(specs):,}; write them to a .jsonl file": path.suffix
            == ".json"
            and len(specs) > 1,
            f"{named(path)} exists already; nothing was overwritten": path.exists(),
        }
    )
    if path.suffix == ".json":
        lines = [json.dumps(specs[0].to_dict(), indent=1)]
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())
    print(f"wrote {path}: edit it, and train it with: grokscope train --spec {for_shell(path)} --out DIR")


def combinations(
    base: RunSpec, values: Mapping[str, Sequence[Any]], seeds: Sequence[int] | None = None
) -> Iterator[RunSpec]:
    """The base with every combination of these values of its fields; seeds vary fastest, if any are given."""
    for chosen in product(*values.values()):
        spec = base.with_values(dict(zip(values, chosen, strict=True)))
        yield from [spec] if seeds is None else map(spec.with_seed, seeds)
