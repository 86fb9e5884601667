"""Writes the tables of docs/how-to/steer.md from what `examples/steered_models.py` has found, by each default."""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FOLDER, PAGE = ROOT / "results" / "steered_models", ROOT / "docs" / "how-to" / "steer.md"
BLOCK = re.compile(
    r"(<!-- steered models: written by docs/make_steered_models.py -->\n).*?(<!-- end of steered models -->)", re.DOTALL
)
COLUMNS = (
    "model and task", "loop", "stable", "median steps", "worst seed", "let go", "ms a step", "times sooner, by pairs",
)  # fmt: skip
CAPTIONS = {
    "cpu": "Today's default: strong from the first step with Muon, gentle until the training set is learnt without",
    "strong": "The first default: strong from the first step, with Muon and without",
    "gentle": "The second default: gentle until the training set is learnt, with Muon and without",
}
LOOPS = {"before": "its own: AdamW, λ = 1", "after": "`Steering(model)`"}
Record = dict[str, Any]


def rows_of(model: Record) -> list[list[str]]:
    """One row for each loop."""
    found = model["comparison"]
    rows = []
    for name, words in LOOPS.items():
        own, is_first = found[name], name == "before"
        late = f"> {found['budget']:,}"
        ratio = found["ratio"]
        rows.append(
            [
                model["title"] if is_first else "",
                words,
                f"{own['reached']}/{own['runs']}",
                late if own["median"] is None else f"{own['median']:,.0f}",
                late if own["worst"] is None else f"{own['worst']:,}",
                "" if is_first else f"{own['released']}/{own['runs']}",
                f"{1000 * own['seconds_per_step']:.1f}",
                "" if is_first else f"{ratio['value']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]",
            ]
        )
    return rows


def table_of(name: str, record: Record) -> str:
    """The table of one record, whose default it is, and where it comes from."""
    rows = [row for model in record["models"].values() for row in rows_of(model)]
    made = record["provenance"]
    lines = [f"| {' | '.join(cells)} |" for cells in (COLUMNS, ["---"] * len(COLUMNS), *rows)]
    origin = (
        f"{made['device']}, torch {made['torch']}, transformers {made['transformers']}, commit `{made['commit']}`. "
        "On a CPU a step's time is that of the process."
    )
    seeds = sorted({run["seed"] for model in record["models"].values() for run in model["runs"]})
    caption = f"**{CAPTIONS[name]}** (seeds {seeds[0]} to {seeds[-1]})."
    return "\n".join([caption, "", *lines, "", origin, ""])


def block() -> str:
    """All tables."""
    paths = [path for name in CAPTIONS if (path := FOLDER / f"{name}.json").exists()]
    return "\n".join(["", *(table_of(path.stem, json.loads(path.read_text())) for path in paths), ""])


def with_block(text: str) -> str:
    """The page with its tables.

    >>> with_block("no place for them")
    'no place for them'
    """
    return BLOCK.sub(lambda match: match[1] + block() + match[2], text)


if __name__ == "__main__":
    PAGE.write_text(with_block(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
