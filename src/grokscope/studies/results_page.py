"""The page that opens a folder of results: verdicts, answers, claims, tables, figures, and where they come from."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from grokscope.studies.claims import Verdict
from grokscope.studies.coverage import coverage_table
from grokscope.studies.figures import Figure
from grokscope.studies.tables import Table
from grokscope.view.render import markdown_of, markdown_text

__all__ = ["JUDGED_ON", "SHARED", "claims_summary", "page_of"]

Row = Mapping[str, Any]
JUDGED_ON = (
    "A verdict is over the n runs that its rule names: the paper's own, with all our seeds beside it; or, where the "
    "claim is of many draws or the paper did not ask, all that we have."
)
SHARED = (
    "Where two numbers stand, a study's configurations have different numbers of seeds: one that belongs to another "
    "study too (fixed λ, a fork's parent, the default) has that study's."
)


def page_of(
    claims: Sequence[Row],
    sentences: Mapping[str, str],
    tables: Mapping[str, Table],
    figures: Mapping[str, Figure],
    provenance: Mapping[str, Any],
) -> str:
    """The page as Markdown; the figures' pictures stand in `figures/`."""
    parts = [
        "# Results",
        f"{_made_of(provenance)} Every number below is computed from `*.records.gz` by `grokscope reproduce`; each "
        "table stands in `tables` or `answers` as CSV, Markdown and LaTeX, each figure in `figures` with its data.",
        "## Verdicts",
        claims_summary(claims),
        "## Runs",
        "Studies share runs, so these add up to more than there are. An arm is one configuration: where it has few "
        f"seeds, the numbers beside a claim or in a row of all seeds rest on few. {SHARED}",
        coverage_table(provenance["studies"]),
        "## What the paper could not know",
        "\n".join(f"- {markdown_text(text)} ([table](answers/{name}.md))" for name, text in sentences.items()),
        "## Claims",
        "A verdict follows from a rule that was fixed before the first result (`claims.json` has each rule in full). "
        f"{JUDGED_ON} Claims see grokking and FSD every 100 "
        "steps, the tables as often as the paper's: every 500, but for Tables 10 and 11. So a step, a lead or a fit "
        "may differ between the two; each table says how often it looks.",
        _claims_table(claims),
        "## Figures",
        *(_shown(name, figure) for name, figure in figures.items()),
        "## Tables",
        *(markdown_of(table).decode().rstrip() for table in tables.values()),
    ]
    return "\n\n".join(parts) + "\n"


def _shown(name: str, figure: Figure) -> str:
    notes = "\n".join(f"- {markdown_text(note)}" for note in figure.notes)
    return f"### {markdown_text(figure.title)}\n\n![{name}](figures/{name}.svg)\n\n{notes}".rstrip()


def claims_summary(claims: Sequence[Row]) -> str:
    """How many claims have which verdict."""
    counted = Counter(row["verdict"] for row in claims)
    cells = [(str(verdict), str(counted[verdict])) for verdict in Verdict if counted[verdict]]
    heads, numbers = (" | ".join(part) for part in zip(*cells, strict=True))
    return f"| {heads} |\n|{'---|' * len(cells)}\n| {numbers} |"


def _made_of(provenance: Mapping[str, Any]) -> str:
    made = provenance["runs_made_with"]
    devices = ", ".join(dict.fromkeys(one["device"] for one in made))
    commits = ", ".join(f"`{commit}`" for commit in dict.fromkeys(one["commit"] for one in made))
    return (
        f"{provenance['runs']:,} runs, {provenance['run_steps']:,} optimiser steps, {provenance['precision']}, on "
        f"{devices}, from {commits}."
    )


def _claims_table(claims: Sequence[Row]) -> str:
    lines = ["| claim | paper | ours | n | verdict | why | beside: all seeds |", "|---|---|---|---|---|---|---|"]
    for row in claims:
        folder = "figures" if row["table"].startswith("fig") else "tables"
        ending = "svg" if folder == "figures" else "md"
        said = f"[{markdown_text(row['statement'])}]({folder}/{row['table']}.{ending}) ({markdown_text(row['where'])})"
        cells = [row["printed"], row["value"], str(row["n"]), row["verdict"], row["why"], _beside(row)]
        lines.append(f"| {said} | {' | '.join(map(markdown_text, cells))} |")
    return "\n".join(lines)


def _beside(row: Row) -> str:
    """The value over all seeds, and what the rule says of it."""
    verdict = row["beside_verdict"]
    return f"{row['beside']}: {verdict}" if verdict else str(row["beside"])
