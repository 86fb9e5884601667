"""Makes `results/` anew from its records, and the README's block about it: run after records were added."""

import json
import re
from pathlib import Path
from typing import Any

from grokscope.report.evidence import evidence_of
from grokscope.report.results import provenance_of, write_results
from grokscope.report.results_page import claims_summary
from grokscope.report.sources import records_at, scope_of

ROOT = Path(__file__).parents[1]
RESULTS, README = ROOT / "results", ROOT / "README.md"
BLOCK = re.compile(r"(<!-- results: written by docs/make_results.py -->\n).*?(<!-- end of results -->)", re.DOTALL)
# What `make demo` printed at its end, in a fresh clone on two cores.
DEMO = RESULTS / "demo.txt"
DEMO_BLOCK = re.compile(r"(<!-- demo: written by docs/make_results.py -->\n).*?(<!-- end of demo -->)", re.DOTALL)
# The claims that the README opens with, by name.
HEADLINES = (
    "lead-signs",
    "lead-share-by-prime",
    "no-false-alarms",
    "fork-order",
    "law-constant-falls",
    "law-censored",
    "threshold-variation",
    "accelerator-saves",
    "early-triggers-faster",
    "s5-leads",
    "s5-never-groks",
    "attention-is-necessary",
)
FIGURES = {
    "fig-exloss": "Leads over the addition configurations",
    "fig-wd": "Forks over weight decay",
    "fig-accelerator": "Triggers",
}


def readme_block(claims: list[dict[str, Any]], provenance: dict[str, Any]) -> str:
    """Verdicts, the headline claims and three figures."""
    by_name = {row["name"]: row for row in claims}
    rows = [by_name[name] for name in HEADLINES]
    lines = [
        f"{provenance['runs']:,} runs on {provenance['runs_made_with'][0]['device']}, {len(claims)} claims, each "
        "judged by a rule that was fixed before the first result:",
        "",
        claims_summary(claims),
        "",
        "| claim | paper | ours, on the same runs | ours, on all seeds | verdict |",
        "|---|---|---|---|---|",
        *(f"| {' | '.join(_cells(row))} |" for row in rows),
        "",
        "A verdict is over the runs that the paper has, and events are seen every 100 steps. So many seeds has each "
        f"configuration of a study: {_seeds(provenance)}.",
        "",
        *(f"![{title}](results/figures/{name}.svg)" for name, title in FIGURES.items()),
        "",
        "Every claim, table and figure: [results/RESULTS.md](results/RESULTS.md).",
        "",
    ]
    return "\n".join(lines)


def _seeds(provenance: dict[str, Any]) -> str:
    return ", ".join(f"{study.replace('_', ' ')} {found['seeds']}" for study, found in provenance["studies"].items())


def _cells(row: dict[str, Any]) -> list[str]:
    beside = row["beside"].rpartition(":")[0] or row["beside"]
    return [
        cell.replace("|", "\\|") for cell in (row["statement"], row["printed"], row["value"], beside, row["verdict"])
    ]


def with_block(text: str, block: str) -> str:
    """A README with the block about the results, and the demo's last screen, in their places."""
    screen = f"```text\n{DEMO.read_text()}```\n"
    placed = BLOCK.sub(lambda found: f"{found[1]}{block}{found[2]}", text)
    return DEMO_BLOCK.sub(lambda found: f"{found[1]}{screen}{found[2]}", placed)


def main() -> None:
    """Write everything that follows from the records."""
    records = records_at(RESULTS)
    scope = scope_of(records)
    provenance = provenance_of(records, scope)
    claims = write_results(evidence_of(records, **scope), RESULTS, provenance, lambda name: print(f"made {name}"))
    README.write_text(with_block(README.read_text(), readme_block(claims, json.loads(json.dumps(provenance)))))


if __name__ == "__main__":
    main()
