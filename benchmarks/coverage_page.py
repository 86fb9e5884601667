"""The table of docs/statistics.md, from what benchmarks/coverage.py has simulated."""

import re
from pathlib import Path
from typing import Any

from benchmarks.page import made_by, record, table

PAGE = Path(__file__).parents[1] / "docs" / "statistics.md"
BLOCK = re.compile(r"(<!-- coverage: written by benchmarks/coverage.py -->\n).*?(<!-- end of coverage -->)", re.DOTALL)
PARTS = {
    "printed": "Intervals that are printed:",
    "conservative": "Printed too, and conservative: they cover at least 95 %, and with few clusters more:",
    "limit": "Where a printed interval does not hold its 95 %:",
    "unused": "What grokscope does not use for its own numbers, and why:",
}


def cells(row: dict[str, Any]) -> list[str]:
    """A line of a table: where an end is often open, how often."""
    shown = []
    for one in row["clusters"].values():
        open_ends = f" ({one['open']:.0%} open)" if one["open"] >= 0.01 else ""
        shown.append(f"{100 * one['covered']:.1f}{open_ends}")
    return [row["interval"], row["data"], row["method"], *shown, f"{row['data_sets']:,}"]


def coverage_table() -> str:
    """All rows of the record, and where it comes from."""
    found = record("coverage")
    rows: list[dict[str, Any]] = found["measured"]
    counts = [*rows[0]["clusters"]]
    heads = ["interval", "simulated", "method", *(f"{count} clusters" for count in counts), "data sets"]
    lines = [""]
    for kind, title in PARTS.items():
        lines += [title, "", *table(heads, [cells(row) for row in rows if row["kind"] == kind]), ""]
    return "\n".join([*lines, f"Coverage in per cent. {made_by(found)}", ""])


def with_table(text: str) -> str:
    """The page with its table."""
    return BLOCK.sub(lambda match: match[1] + coverage_table() + match[2], text)
