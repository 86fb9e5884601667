"""The names of all measures, read from their sources: a misspelt one is rejected without loading torch."""

import ast
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from grokscope.errors import InputError, did_you_mean, shown

__all__ = ["measure_names", "reject_unknown_measures"]

TABLES = ("ENTRIES", "VARIANTS")  # dictionaries of measures, or of what entries are made of


def reject_unknown_measures(readings: Iterable[str]) -> None:
    """Reject a reading such as `fsd` or `fsd@sum` whose measure does not exist."""
    wanted = [reading.partition("@")[0] for reading in readings]
    known = measure_names() if wanted else []
    for name in wanted:
        if name not in known:
            raise InputError(f"there is no measure {shown(name)}{did_you_mean(name, known)}")


def measure_names() -> list[str]:
    """Every measure's name; `grokscope.measures` is located and not imported."""
    package = find_spec("grokscope")
    folders = [] if package is None else package.submodule_search_locations or []
    sources = [path for folder in folders for path in sorted(Path(folder, "measures").glob("*.py"))]
    return [name for path in sources for name in _keys(path.read_text(encoding="utf-8"))]


def _keys(source: str) -> Iterator[str]:
    """The texts that are keys of the dictionaries in TABLES."""
    if not any(f"\n{table}" in source for table in TABLES):
        return
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id in TABLES for target in targets):
                yield from _outer_keys(node.value)


def _outer_keys(value: ast.expr) -> Iterator[str]:
    """The keys of a dictionary, or of several that are joined by |; those of values in them are none."""
    if isinstance(value, ast.BinOp):
        yield from _outer_keys(value.left)
        yield from _outer_keys(value.right)
    if isinstance(value, ast.Dict):
        yield from (key.value for key in value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
