"""Writes `results/` again from its records, and what README and pages say of it: run it when records were added."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from grokscope.law import count_foreign_forks
from grokscope.runs.packing import unpack_records
from grokscope.runs.records import RunRecord
from grokscope.studies import Evidence, Finding, Study, Verdict, find_study, judge
from grokscope.studies.bakeoff.configurations import CONFIGURATIONS
from grokscope.studies.bakeoff.notes import describe_logs, describe_winner
from grokscope.studies.bakeoff.quantities import outcome, tasks_run
from grokscope.studies.page import RUNS_JUDGED, SHARED_RUNS, claims_summary
from grokscope.studies.results import describe_provenance, write_results
from grokscope.studies.sources import PACKED, read_evidence, read_records

ROOT = Path(__file__).parents[1]
RESULTS, README = ROOT / "results", ROOT / "README.md"
PAPER = "synchronization"
# What `make demo` printed at its end, in a fresh clone on two cores.
DEMO = RESULTS / "demo.txt"
OWN_MODEL = ROOT / "docs" / "own-model.md"
REPETITION = RESULTS / PAPER / "repetition.md"
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
MECHANISM = "sup-thresholds-mechanism"
FIGURES = {
    "fig-exloss": "Leads over the addition configurations",
    "fig-wd": "Forks over weight decay",
    "fig-accelerator": "Triggers",
}


def readme_block(claims: list[dict[str, Any]], provenance: dict[str, Any], mechanism: str) -> str:
    """Verdicts, the headline claims, one supplementary analysis, and three figures."""
    by_name = {row["name"]: row for row in claims}
    rows = [by_name[name] for name in HEADLINES]
    lines = [
        f"{provenance['runs']:,} runs on {provenance['runs_made_with'][0]['device']}, {len(claims)} claims, each "
        "judged by a machine-readable rule:",
        "",
        claims_summary(claims),
        "",
        "λ is weight decay; Δt the steps from a fork (a copy continued with another λ) to grokking; C and α the fit "
        "Δt = C λ^−α; FSD the share of neurons with the same dominant frequency, corrected for chance, and FSD_gen the "
        "same over irreps; a run synchronises when FSD first reaches 0.80 (FSD_gen: 0.50).",
        "",
        "| claim | paper | ours | n | all seeds | verdict |",
        "|---|---|---|---|---|---|",
        *(f"| {' | '.join(_cells(row))} |" for row in rows),
        "",
        RUNS_JUDGED,
        "",
        f"Seeds of each configuration, by experiment: {_seeds(provenance)}. {SHARED_RUNS}",
        "",
        "[Supplementary analyses](results/synchronization/RESULTS.md#supplementary-analyses) go beyond the paper, for "
        f"example on the norm. {mechanism}",
        "",
        *(f"![{title}](results/{PAPER}/figures/{name}.svg)" for name, title in FIGURES.items()),
        "",
        f"Every claim, table and figure: [results/{PAPER}/RESULTS.md](results/{PAPER}/RESULTS.md). How much of it a "
        f"rerun of the same runs would change: [repetition.md](results/{PAPER}/repetition.md).",
        "",
    ]
    return "\n".join(lines)


def _seeds(provenance: dict[str, Any]) -> str:
    found = provenance["experiments"]
    return ", ".join(f"{name.replace('_', ' ')} {counts['seeds']}" for name, counts in found.items())


def _cells(row: dict[str, Any]) -> list[str]:
    ours = (row["value"], str(row["n"]), row["all_seeds"])
    return [cell.replace("|", "\\|") for cell in (row["statement"], row["reported"], *ours, row["verdict"])]


def repetition_page(study: Study) -> str:
    """The claims whose verdict is another where runs that were trained twice are judged by their first version."""
    files = [unpack_records(file) for file in sorted((RESULTS / study.name).glob(PACKED))]
    trained = Counter(record.spec.content_hash for records in files for record in records)
    again = sum(count > 1 for count in trained.values())
    places = {record.outcome.provenance["device"] for records in files for record in records}
    newest = read_records(RESULTS / study.name)
    first = {record.spec.content_hash: record for records in reversed(files) for record in records}
    before, after = (_judge_all(study, some) for some in (first.values(), newest))
    moved = [claim.name for claim in study.claims if _has_moved(before[claim.name].verdict, after[claim.name].verdict)]
    rows = (_moved(name, before[name], after[name]) for name in moved)
    lines = [
        "# What a rerun changes",
        "",
        f"{again} of the {len(newest):,} runs were trained twice, on {' and '.join(sorted(places))}: the same specs "
        "and seeds, in stacks of another size, which round differently. Rounding differences grow during training, so "
        "two trainings of one spec differ like two seeds. "
        f"The results show the newer ones; by the older ones, {len(moved)} of {len(study.claims)} claims have another "
        "verdict. Verdicts that rest on one or nine runs are this uncertain; verdicts over all seeds are more certain.",
        "",
        _branched(newest),
        "",
        "| claim | first training | verdict | second training | verdict |",
        "|---|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]
    return "\n".join(lines)


def _judge_all(study: Study, records: Iterable[RunRecord]) -> dict[str, Finding]:
    evidence = study.evidence(records)
    return {claim.name: judge(claim, evidence) for claim in study.claims}


def _branched(records: list[RunRecord]) -> str:
    """How many forks do not continue the version of their parent that is shown."""
    elsewhere, forks = count_foreign_forks(records)
    return (
        f"{elsewhere} of the {forks} forks started from the first training of their parent, whereas the tables show "
        "the second. Times to grok, norms and leads of a fork are read from the fork alone."
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


def bakeoff_block(evidence: Evidence) -> str:
    """Who won each task, and the figure."""
    records = list(evidence.experiment("bakeoff").values())
    tasks = tasks_run(evidence)
    counts = [evidence.measure(outcome(task, name)).number("runs") for task in tasks for name in CONFIGURATIONS]
    lines = [
        f"{len(records):,} runs on {records[0].outcome.provenance['device']}, {min(counts):.0f} seeds of every "
        "configuration on every task:",
        "",
        *(f"- {describe_winner(evidence, task)}" for task in tasks),
        "",
        "What the logs show besides the medians:",
        "",
        *(f"- {sentence}" for sentence in describe_logs(evidence)),
        "",
        "![Median steps to grok by configuration](../results/bakeoff/figures/fig-bakeoff.svg)",
        "",
    ]
    return "\n".join(lines)


def with_bakeoff(text: str, block: str) -> str:
    """A page with the block about the bake-off in its place."""
    return _placed(text, "bakeoff", block)


def main() -> None:
    """Write everything that follows from the records."""
    paper, bakeoff = find_study(PAPER), find_study("bakeoff")
    evidence = {study.name: read_evidence(study, RESULTS / study.name) for study in (paper, bakeoff)}
    claims = []
    for study in (bakeoff, paper):
        claims = write_results(study, evidence[study.name], RESULTS / study.name, lambda name: print(f"wrote {name}"))
    REPETITION.write_text(repetition_page(paper))
    OWN_MODEL.write_text(with_bakeoff(OWN_MODEL.read_text(), bakeoff_block(evidence["bakeoff"])))
    provenance = json.loads(json.dumps(describe_provenance(paper, evidence[PAPER])))
    block = readme_block(claims, provenance, mechanism_sentence(paper, evidence[PAPER]))
    README.write_text(with_block(README.read_text(), block))


def mechanism_sentence(study: Study, evidence: Evidence) -> str:
    """What the supplementary analysis of the norm says."""
    item = study.items[MECHANISM]
    assert item.sentence is not None
    return item.sentence(item.build(evidence))


if __name__ == "__main__":
    main()
