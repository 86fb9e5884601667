"""Makes `results/` anew from its records, and the README's block about it: run after records were added."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from grokscope.studies.results_page import JUDGED_ON, SHARED, claims_summary

from grokscope.runs.records import RunRecord, begun_elsewhere, unpacked
from grokscope.studies.answers import ANSWERS, answer_sentence
from grokscope.studies.bakeoff.notes import what_logs_show
from grokscope.studies.bakeoff.tables import bakeoff_results, verdict
from grokscope.studies.claims import CLAIMS, judged
from grokscope.studies.claims.claim import Finding, Verdict
from grokscope.studies.evidence import evidence_of
from grokscope.studies.results import provenance_of, write_results
from grokscope.studies.sources import PACKED, records_at, scope_of

ROOT = Path(__file__).parents[1]
RESULTS, README = ROOT / "results", ROOT / "README.md"
# What `make demo` printed at its end, in a fresh clone on two cores.
DEMO = RESULTS / "demo.txt"
OWN_MODEL = ROOT / "docs" / "own-model.md"
BAKEOFF_RECORDS = RESULTS / "bakeoff" / "bakeoff.records.gz"
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
MECHANISM = "ans-thresholds-mechanism"
REPETITION = RESULTS / "repetition.md"
FIGURES = {
    "fig-exloss": "Leads over the addition configurations",
    "fig-wd": "Forks over weight decay",
    "fig-accelerator": "Triggers",
}


def readme_block(claims: list[dict[str, Any]], provenance: dict[str, Any], mechanism: str) -> str:
    """Verdicts, the headline claims, one answer beyond the paper, and three figures."""
    by_name = {row["name"]: row for row in claims}
    rows = [by_name[name] for name in HEADLINES]
    lines = [
        f"{provenance['runs']:,} runs on {provenance['runs_made_with'][0]['device']}, {len(claims)} claims, each "
        "judged by a rule that was fixed before the first result:",
        "",
        claims_summary(claims),
        "",
        "| claim | paper | ours | n | beside: all seeds | verdict |",
        "|---|---|---|---|---|---|",
        *(f"| {' | '.join(_cells(row))} |" for row in rows),
        "",
        f"{JUDGED_ON} Events are seen every 100 steps.",
        "",
        f"Seeds of each configuration, study by study: {_seeds(provenance)}. {SHARED}",
        "",
        "What the paper could not know is [answered too](results/RESULTS.md#what-the-paper-could-not-know), among it "
        f"whether the norm is a threshold or a consequence. {mechanism}",
        "",
        *(f"![{title}](results/figures/{name}.svg)" for name, title in FIGURES.items()),
        "",
        "Every claim, table and figure: [results/RESULTS.md](results/RESULTS.md). How much of it another repetition of "
        "the same runs would change: [results/repetition.md](results/repetition.md).",
        "",
    ]
    return "\n".join(lines)


def _seeds(provenance: dict[str, Any]) -> str:
    return ", ".join(f"{study.replace('_', ' ')} {found['seeds']}" for study, found in provenance["studies"].items())


def _cells(row: dict[str, Any]) -> list[str]:
    ours = (row["value"], str(row["n"]), row["beside"])
    cells = (row["statement"], row["printed"], *ours, row["verdict"])
    return [cell.replace("|", "\\|") for cell in cells]


def repetition_page() -> str:
    """The claims whose verdict is another where runs that were made twice are judged by their first making."""
    files = [unpacked(file) for file in sorted(RESULTS.glob(PACKED))]
    made = Counter(record.spec.content_hash for records in files for record in records)
    again = sum(count > 1 for count in made.values())
    places = {record.outcome.provenance["device"] for records in files for record in records}
    newest = records_at(RESULTS)
    first = {record.spec.content_hash: record for records in reversed(files) for record in records}
    before, after = (judged(evidence_of(some, **scope_of(newest))) for some in (first.values(), newest))
    moved = [claim for claim in CLAIMS if _has_moved(before[claim.name].verdict, after[claim.name].verdict)]
    rows = (_moved(claim.name, before[claim.name], after[claim.name]) for claim in moved)
    lines = [
        "# What a repetition changes",
        "",
        f"{again} of the {len(newest):,} runs were made again, on {' and '.join(sorted(places))}: the same specs and "
        "seeds, in stacks of another size, which round differently. Training is chaotic, so these are other runs. The "
        f"results show the newer ones; by the older ones, {len(moved)} of {len(CLAIMS)} claims have another verdict. "
        "What rests on one run, or on nine, is as certain as this table says; what stands beside it rests on more.",
        "",
        _branched(newest),
        "",
        "| claim | first | verdict | again | verdict |",
        "|---|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]
    return "\n".join(lines)


def _branched(records: list[RunRecord]) -> str:
    """How many forks are not of the making of their parent that is shown."""
    elsewhere, forks = begun_elsewhere(records)
    return (
        f"{elsewhere} of the {forks} forks branched off another making of their parent: their first look is "
        "not that of the parent that is shown. Waits, norms and leads of a fork are read from the fork alone."
    )


def _has_moved(before: Verdict, after: Verdict) -> bool:
    """Whether two verdicts differ, and not because a run or a measure was missing."""
    return before is not after and Verdict.TOO_FEW not in (before, after)


def _moved(name: str, before: Finding, after: Finding) -> list[str]:
    cells = [name, before.value, before.verdict, after.value, after.verdict]
    return [cell.replace("|", "\\|") for cell in cells]


def with_block(text: str, block: str) -> str:
    """A README with the block about the results, and the demo's last screen, in their places."""
    return _placed(_placed(text, "results", block), "demo", f"```text\n{DEMO.read_text()}```\n")


def _placed(text: str, name: str, block: str) -> str:
    """A page with a block between its two marks."""
    marks = rf"(<!-- {name}: written by docs/make_results.py -->\n).*?(<!-- end of {name} -->)"
    return re.sub(marks, lambda found: f"{found[1]}{block}{found[2]}", text, flags=re.DOTALL)


def bakeoff_block(records: list[RunRecord]) -> str:
    """Who won each task, and the figure."""
    results = bakeoff_results(records)
    seeds = min(arm.grokked.items for task in results for arm in task.arms)
    device = records[0].outcome["provenance"]["device"]
    lines = [
        f"{len(records):,} runs on {device}, {seeds} seeds of every arm on every task:",
        "",
        *(f"- {verdict(task)}" for task in results),
        "",
        "What the logs show beside the medians:",
        "",
        *(f"- {sentence}" for sentence in what_logs_show(records)),
        "",
        "![Median steps to grok by arm](../results/bakeoff/fig-bakeoff.svg)",
        "",
    ]
    return "\n".join(lines)


def with_bakeoff(text: str, block: str) -> str:
    """A page with the block about the bake-off in its place."""
    return _placed(text, "bakeoff", block)


def main() -> None:
    """Write everything that follows from the records."""
    records = records_at(RESULTS)
    scope = scope_of(records)
    provenance = provenance_of(records, scope)
    evidence = evidence_of(records, **scope)
    claims = write_results(evidence, RESULTS, provenance, lambda name: print(f"made {name}"))
    REPETITION.write_text(repetition_page())
    OWN_MODEL.write_text(with_bakeoff(OWN_MODEL.read_text(), bakeoff_block(unpacked(BAKEOFF_RECORDS))))
    mechanism = answer_sentence(ANSWERS[MECHANISM](evidence))
    block = readme_block(claims, json.loads(json.dumps(provenance)), mechanism)
    README.write_text(with_block(README.read_text(), block))


if __name__ == "__main__":
    main()
