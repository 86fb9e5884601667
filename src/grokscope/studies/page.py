"""The page that opens a folder of results: verdicts, supplementary analyses, claims, tables, figures, provenance."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from grokscope.studies.evidence import Evidence
from grokscope.studies.rule import Verdict
from grokscope.studies.selection import configuration
from grokscope.studies.study import Study
from grokscope.view.charts.figure import Figure
from grokscope.view.numbers import format_range
from grokscope.view.render import markdown_of, markdown_text
from grokscope.view.table import Table

__all__ = ["RUNS_JUDGED", "SHARED_RUNS", "claims_summary", "coverage", "coverage_table", "results_page"]

Row = Mapping[str, Any]
RUNS_JUDGED = (
    "Each verdict uses the n runs that its rule names. Usually these are the paper's runs, and the column 'all seeds' "
    "repeats the test on every seed we trained. Where the claim is about many seeds, or the paper did not test it, the "
    "verdict uses all our runs."
)
SHARED_RUNS = (
    "A range means that the configurations of an experiment have different numbers of seeds; a configuration that is "
    "shared with another experiment (fixed λ, a fork's parent, the default) has that experiment's seeds."
)


def coverage(study: Study, evidence: Evidence) -> dict[str, dict[str, Any]]:
    """Of each experiment: reported runs, how many of them are there, all its runs, and the seeds of a configuration."""
    planned = study.runs(quick=evidence.is_quick)
    return {
        experiment: {
            "here": len(names.keys() & evidence.records[experiment].keys()),
            "of": len(names),
            "runs": len(evidence.records[experiment]),
            "seeds": _seeds([*names], [*evidence.records[experiment]]),
        }
        for experiment, names in planned.items()
    }


def _seeds(planned: Sequence[str], found: Sequence[str]) -> str:
    """The fewest and the most seeds that a configuration has; one without any has 0."""
    counts = Counter(map(configuration, found))
    return format_range(counts[configuration(name)] for name in planned)


def coverage_table(experiments: Mapping[str, Mapping[str, Any]]) -> str:
    """What `coverage` gives, as Markdown."""
    lines = ["| experiment | the paper's runs | all our runs | seeds per configuration |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {found['here']} of {found['of']} | {found['runs']} | {found['seeds']} |"
        for name, found in experiments.items()
    ]
    return "\n".join(lines)


def results_page(
    study: Study,
    claims: Sequence[Row],
    sentences: Mapping[str, str],
    tables: Mapping[str, Table],
    figures: Mapping[str, Figure],
    provenance: Mapping[str, Any],
) -> str:
    """The page as Markdown; the figures' pictures are in `figures/`. A part without content has no heading."""
    parts = [
        f"# {study.title}",
        study.source,
        f"{_runs_used(provenance)} Every number below is computed from `*.records.gz` by `grokscope reproduce "
        f"{study.name}`; each table is in `tables` or `supplements` as CSV, Markdown and LaTeX, each figure in "
        "`figures` with its data.",
    ]
    if claims:
        parts += ["## Verdicts", claims_summary(claims)]
    parts += [
        "## Runs",
        "Experiments share runs, so the columns add up to more than the number of runs. Some configurations have few "
        f"seeds (last column). {SHARED_RUNS}",
        coverage_table(provenance["experiments"]),
    ]
    if sentences:
        lines = [f"- {markdown_text(text)} ([table](supplements/{name}.md))" for name, text in sentences.items()]
        parts += ["## Supplementary analyses", "\n".join(lines)]
    if claims:
        parts += [
            "## Claims",
            "A verdict follows from a machine-readable rule (`claims.json` has each rule in full, `provenance.json` "
            f"the digest of all of them). {RUNS_JUDGED} Where a claim and a table or figure show the same quantity, it "
            "is computed once.",
            _claims_table(claims, study),
        ]
    if figures:
        parts += ["## Figures", *(_figure(name, figure) for name, figure in figures.items())]
    if tables:
        parts += ["## Tables", *(markdown_of(table).decode().rstrip() for table in tables.values())]
    return "\n\n".join(part for part in parts if part) + "\n"


def _figure(name: str, figure: Figure) -> str:
    notes = "\n".join(f"- {markdown_text(note)}" for note in figure.notes)
    return f"### {markdown_text(figure.title)}\n\n![{name}](figures/{name}.svg)\n\n{notes}".rstrip()


def claims_summary(claims: Sequence[Row]) -> str:
    """How many claims have which verdict."""
    counted = Counter(row["verdict"] for row in claims)
    cells = [(str(verdict), str(counted[verdict])) for verdict in Verdict if counted[verdict]]
    heads, numbers = (" | ".join(part) for part in zip(*cells, strict=True))
    return f"| {heads} |\n|{'---|' * len(cells)}\n| {numbers} |"


def _runs_used(provenance: Mapping[str, Any]) -> str:
    made = provenance["runs_made_with"]
    devices = ", ".join(dict.fromkeys(one.get("device", "an unknown device") for one in made))
    commits = ", ".join(f"`{commit}`" for commit in dict.fromkeys(one.get("commit", "unknown") for one in made))
    return (
        f"{provenance['runs']:,} runs, {provenance['run_steps']:,} optimiser steps, {provenance['precision']}, on "
        f"{devices}, at commits {commits}."
    )


def _claims_table(claims: Sequence[Row], study: Study) -> str:
    folders = {"tables": study.tables, "supplements": study.supplements, "figures": study.figures}
    files = {
        item.name: f"{folder}/{item.name}.{'svg' if folder == 'figures' else 'md'}"
        for folder, items in folders.items()
        for item in items
    }
    lines = ["| claim | paper | ours | n | verdict | why | all seeds |", "|---|---|---|---|---|---|---|"]
    for row in claims:
        text, file = markdown_text(row["statement"]), files.get(row["shown_in"])
        statement = f"{f'[{text}]({file})' if file else text} ({markdown_text(row['where'])})"
        cells = [row["reported"], row["value"], str(row["n"]), row["verdict"], row["why"], _all_seeds(row)]
        lines.append(f"| {statement} | {' | '.join(map(markdown_text, cells))} |")
    return "\n".join(lines)


def _all_seeds(row: Row) -> str:
    """The value over all seeds, and what the rule says of it."""
    verdict = row["all_seeds_verdict"]
    return f"{row['all_seeds']}: {verdict}" if verdict else str(row["all_seeds"])
