"""The page that opens a folder of results: what it says in sentences, then verdicts, analyses, figures and tables."""

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

__all__ = [
    "HOW_JUDGED",
    "SHARED_RUNS",
    "claims_summary",
    "coverage",
    "coverage_table",
    "describe_verdict",
    "message_line",
    "message_lines",
    "results_page",
]

Row = Mapping[str, Any]
ORIGINS = {"paper": "claims of the paper", "new": "asked here"}
HOW_JUDGED = (
    "A verdict answers one question: if all our runs are the world, how often would the paper's design (its tasks, its "
    "number of seeds, its cadence) have shown what it reports? That design is drawn 10,000 times from all our runs. A "
    "claim is *reproduced* if at least 20 % of these designs show it, *refuted* if fewer than 1 % do, and *unlikely* "
    "in between; *not testable* if no run decides it or none is stored yet. A verdict is *firm* if at least 95 % of "
    "bootstraps over our runs give the same one and each configuration has at least 32 runs, else *open*; with fewer "
    "than 16 it is *provisional*, refutes nothing, and reproduces nothing while the interval of the share reaches "
    "below 1 %. Of what a run has or has not, bootstraps add half a run that "
    "has it and half a run that has not (Jeffreys' prior): none or all of a few runs is not certain. Of a claim about "
    "many seeds, or one that is asked here for the first time, a design has as many runs as there are, and half of "
    "the designs must show it. Intervals are 95 %: Clopper–Pearson for shares of single runs, else percentiles of "
    "bootstraps over our runs."
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
            "here": len(names.keys() & evidence.records.get(experiment, {}).keys()),
            "of": len(names),
            "runs": len(evidence.records.get(experiment, {})),
            "seeds": _seeds([*names], [*evidence.records.get(experiment, {})]),
        }
        for experiment, names in planned.items()
    }


def _seeds(planned: Sequence[str], found: Sequence[str]) -> str:
    """The fewest and the most seeds that a configuration has; one without any has 0."""
    counts = Counter(map(configuration, found))
    return format_range(counts[configuration(name)] for name in planned)


def coverage_table(experiments: Mapping[str, Mapping[str, Any]], planned: str = "planned runs") -> str:
    """What `coverage` gives, as Markdown; what a study plans is a paper's runs where it repeats these."""
    lines = [f"| experiment | {planned} | all our runs | seeds per configuration |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {found['here']} of {found['of']} | {found['runs']} | {found['seeds']} |"
        for name, found in experiments.items()
    ]
    return "\n".join(lines)


def results_page(
    study: Study,
    claims: Sequence[Row],
    message: Sequence[Row],
    sentences: Mapping[str, str],
    tables: Mapping[str, Table],
    figures: Mapping[str, Figure],
    provenance: Mapping[str, Any],
) -> str:
    """The page as Markdown; the figures' pictures are in `figures/`. A part without content has no heading."""
    parts = [f"# {study.title}", study.source, *message_lines(message)]
    if claims:
        parts += [
            "## Verdicts",
            claims_summary(claims),
            f"{HOW_JUDGED} `claims.json` has each rule in full, `provenance.json` the digest of all of them, of the "
            "code that reads the runs and of the code that judges.",
            _claims_table(claims, study),
        ]
    if study.limits:
        parts += ["## Limits", "\n".join(f"- {markdown_text(one)}" for one in study.limits)]
    if study.contradictions:
        parts += ["## Where the paper contradicts itself", _contradictions(study)]
    if sentences:
        lines = [f"- {markdown_text(text)} ([table](supplements/{name}.md))" for name, text in sentences.items()]
        parts += ["## Supplementary analyses", "\n".join(lines)]
    parts += [
        "## Runs",
        f"{_runs_used(provenance)} Every number on this page is computed from the stored records by `grokscope "
        f"reproduce {study.name}`; each table is in `tables` or `supplements` as CSV, Markdown and LaTeX, each figure "
        "in `figures` with its data.",
        "Experiments share runs, so the columns add up to more than the number of runs. Some configurations have few "
        f"seeds (last column). {SHARED_RUNS}",
        coverage_table(provenance["experiments"], "the paper's runs" if study.papers else "planned runs"),
    ]
    if figures:
        parts += ["## Figures", *(_figure(name, figure) for name, figure in figures.items())]
    if tables:
        parts += ["## Tables", *(markdown_of(table).decode().rstrip() for table in tables.values())]
    return "\n\n".join(part for part in parts if part) + "\n"


def message_lines(message: Sequence[Row], page: str = "") -> list[str]:
    """Headings and sentences, each linked to the claims whose numbers it states, on this page or another.

    >>> message_lines([{"topic": "What holds", "text": "It groks.", "claims": ["groks"], "headline": True}])
    ['## What holds', '- It groks. (<a href="#claim-groks">numbers</a>)']
    """
    lines = []
    for topic in dict.fromkeys(str(row["topic"]) for row in message):
        rows = [row for row in message if row["topic"] == topic]
        lines += [f"## {topic}", "\n".join(message_line(row, page) for row in rows)]
    return lines


def message_line(row: Row, page: str = "") -> str:
    """One sentence with its links.

    >>> message_line({"text": "It groks.", "claims": ["groks"]}, "RESULTS.md")
    '- It groks. ([numbers](RESULTS.md#claim-groks))'
    """
    words = ("numbers" if place == 0 else "and these" for place in range(len(row["claims"])))
    links = ", ".join(_claim_link(word, name, page) for word, name in zip(words, row["claims"], strict=True))
    return f"- {_escaped(row['text'])}{f' ({links})' if links else ''}"


def _claim_link(word: str, name: str, page: str = "") -> str:
    """A link to a claim; within its page in HTML, as its anchor is: Sphinx finds no anchor in HTML for Markdown's."""
    return f"[{word}]({page}#claim-{name})" if page else f'<a href="#claim-{name}">{word}</a>'


def _escaped(text: str) -> str:
    """A sentence in Markdown, in which only ** is markup."""
    return markdown_text(text).replace("\\*\\*", "**")


def _contradictions(study: Study) -> str:
    """What no run can decide; each reading that runs can decide is judged as a claim of its own."""
    lines = []
    for one in study.contradictions:
        links = ", ".join(_claim_link(str(place), name) for place, name in enumerate(one.claims, 1))
        judged = f" Each reading is judged for itself: {links}." if one.claims else ""
        lines.append(f"- {markdown_text(one.statement)} ({markdown_text(one.where)}){judged}")
    return "\n".join(lines)


def _figure(name: str, figure: Figure) -> str:
    notes = "\n".join(f"- {markdown_text(note)}" for note in figure.notes)
    return f"### {markdown_text(figure.title)}\n\n![{name}](figures/{name}.svg)\n\n{notes}".rstrip()


def claims_summary(claims: Sequence[Row]) -> str:
    """How many claims have which verdict, those of the paper and those asked here apart, and how many are firm."""
    heads = " | ".join(map(str, Verdict))
    lines = [f"| | {heads} |", f"|---|{'---|' * len(Verdict)}"]
    for origin, title in ORIGINS.items():
        rows = [row for row in claims if row["origin"] == origin]
        if rows:
            cells = (_count(rows, str(verdict)) for verdict in Verdict)
            lines.append(f"| {title} ({len(rows)}) | {' | '.join(cells)} |")
    return "\n".join(lines)


def _count(rows: Sequence[Row], verdict: str) -> str:
    found = [row for row in rows if row["verdict"] == verdict]
    firm = sum(bool(row["firm"]) for row in found)
    return f"{len(found)}, {firm} firm" if firm else str(len(found))


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
    lines = [
        "| claim | paper | all our runs | n | share of designs | verdict | the paper's own seeds |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in claims:
        text, file = markdown_text(row["statement"]), files.get(row["shown_in"])
        anchor = f'<a id="claim-{row["name"]}"></a>'
        statement = f"{anchor}{f'[{text}]({file})' if file else text} ({markdown_text(row['where'])})"
        cells = [row["reported"], row["value"], str(row["n"]), _share(row), describe_verdict(row), _own(row)]
        lines.append(f"| {statement} | {' | '.join(map(markdown_text, cells))} |")
    return "\n".join(lines)


def _share(row: Row) -> str:
    """The share of designs that show it; where there is none, why."""
    if row["share"] is None:
        return str(row["why"])
    value, low, high = (f"{100 * end:.3g}" for end in row["share"])
    return f"{value} % [{low}, {high}]"


def describe_verdict(row: Row) -> str:
    """The verdict, and how sure it is.

    >>> describe_verdict({"verdict": "refuted", "firm": False, "provisional": True, "share": [0, 0, 1]})
    'refuted, provisional'
    """
    if row["share"] is None:
        return str(row["verdict"])
    return f"{row['verdict']}, {'firm' if row['firm'] else 'provisional' if row['provisional'] else 'open'}"


def _own(row: Row) -> str:
    """The value over the paper's own seeds, and whether these show the claim."""
    if row["own_shown"] is None:
        return ""
    return f"{row['own']}: {'shown' if row['own_shown'] else 'not shown'}"
