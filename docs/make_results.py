"""Writes `results/` again from its records, and what README and pages say of it: run it when records were added."""

import csv
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from grokscope.law import count_foreign_forks
from grokscope.runs.packing import unpack_records
from grokscope.runs.records import RunRecord
from grokscope.studies import Evidence, Finding, Study, Verdict, find_study, judge, study_names
from grokscope.studies.bakeoff.configurations import CONFIGURATIONS
from grokscope.studies.bakeoff.notes import describe_logs, describe_winner
from grokscope.studies.bakeoff.quantities import outcome, tasks_run
from grokscope.studies.forks_check import check_forks
from grokscope.studies.page import HOW_JUDGED, SHARED_RUNS, claims_summary, message_line, message_lines
from grokscope.studies.results import write_results
from grokscope.studies.sources import PACKED, read_evidence, read_records
from grokscope.studies.synchronization.sentences import enumerate_parts
from grokscope.studies.verdicts import VERDICTS, describe_stored

ROOT = Path(__file__).parents[1]
RESULTS, README, DOCS = ROOT / "results", ROOT / "README.md", ROOT / "docs"
PAPER = "synchronization"
# What `make demo` printed at its end, in a fresh clone on two cores.
DEMO, QUICK_START = RESULTS / "demo.txt", DOCS / "quick-start.md"
PAPER_PAGE, BAKEOFF_PAGE = DOCS / "studies" / "synchronization.md", DOCS / "studies" / "bakeoff.md"
REPETITION = RESULTS / PAPER / "repetition.md"
MEMBERSHIPS = RESULTS / "memberships.csv"  # every stored run with its place in a study
Row = Mapping[str, Any]
FIGURES = {
    "fig-exloss": "Leads over the addition configurations",
    "fig-wd": "Forks over weight decay",
    "fig-accelerator": "Triggers",
}


def findings_block(message: Sequence[Row], claims: Sequence[Row], provenance: Row) -> str:
    """Six sentences of the study's message with their numbers, how sure they are, and three figures, for the README."""
    page = (RESULTS / PAPER / "RESULTS.md").relative_to(ROOT).as_posix()
    lines = [
        f"{provenance['runs']:,} runs on {provenance['runs_made_with'][0]['device']} say of the paper's signal, FSD, "
        "and of what it says about grokking (λ is weight decay; numbers are with 95 % intervals):",
        "",
        *(message_line(row, page) for row in message if row["headline"]),
        "",
        f"{_verdicts(claims)} [All results]({page}) have every sentence, claim, table and figure, "
        f"[the study](docs/studies/{PAPER}.md) how to read them, and [rerunning]({REPETITION.relative_to(ROOT)}) what "
        "changes when the same runs are trained again.",
        "",
        *(f"![{title}](results/{PAPER}/figures/{name}.svg)" for name, title in FIGURES.items()),
        "",
    ]
    return "\n".join(lines)


def _verdicts(claims: Sequence[Row]) -> str:
    """How many of the paper's claims have which verdict, and how many verdicts are firm."""
    paper = [row for row in claims if row["origin"] == "paper"]
    counted = Counter(row["verdict"] for row in paper)
    firm = sum(row["firm"] for row in paper)
    counts = enumerate_parts([f"{counted[str(verdict)]} are {verdict}" for verdict in Verdict])
    return f"Of {len(paper)} claims of the paper, {counts}; {firm} of these verdicts are firm."


def paper_block(message: Sequence[Row], claims: Sequence[Row], provenance: Row) -> str:
    """The message, the verdicts and three figures, for the page of the study."""
    lines = [
        f"{provenance['runs']:,} runs on {provenance['runs_made_with'][0]['device']}.",
        "",
        *_without_links(message),
        "### Verdicts",
        "",
        claims_summary(claims),
        "",
        HOW_JUDGED,
        "",
        f"Seeds of each configuration, by experiment: {_seeds(provenance)}. {SHARED_RUNS}",
        "",
        *(f"![{title}](../../results/{PAPER}/figures/{name}.svg)" for name, title in FIGURES.items()),
        "",
    ]
    return "\n".join(lines)


def _without_links(message: Sequence[Row]) -> list[str]:
    """The message one heading lower; its claims are on another page."""
    parts = message_lines([{**row, "claims": []} for row in message])
    return [line for part in parts for line in (f"#{part}" if part.startswith("#") else part, "")]


def _seeds(provenance: Row) -> str:
    found = provenance["experiments"]
    return ", ".join(f"{name.replace('_', ' ')} {counts['seeds']}" for name, counts in found.items())


def repetition_page(study: Study) -> str:
    """The claims whose verdict is another where runs that were trained twice are judged by their first version."""
    files = [unpack_records(file) for file in sorted((RESULTS / study.name).glob(PACKED))]
    trained = Counter(record.spec.content_hash for records in files for record in records)
    again = sum(count > 1 for count in trained.values())
    places = {record.outcome.provenance["device"] for records in files for record in records}
    newest = read_records(RESULTS / study.name)
    if not again:
        return _never_repeated(newest)
    first = {record.spec.content_hash: record for records in reversed(files) for record in records}
    before, after = (_judge_all(study, some) for some in (first.values(), newest))
    moved = [claim.name for claim in study.claims if _has_moved(before[claim.name].verdict, after[claim.name].verdict)]
    rows = (_moved(name, before[name], after[name]) for name in moved)
    firm = sum(before[name].is_firm or after[name].is_firm for name in moved)
    lines = [
        "# What a rerun changes",
        "",
        f"{again} of the {len(newest):,} runs were trained twice, on {' and '.join(sorted(places))}: the same specs "
        "and seeds, in stacks of another size, which round differently. Rounding differences grow during training, so "
        "two trainings of one spec differ like two seeds. "
        f"The results show the newer ones; by the older ones, {len(moved)} of {len(study.claims)} claims have another "
        f"verdict; of {firm} of these one of the two is firm, which is meant to say that a rerun does not change it.",
        "",
        _branched(newest),
        "",
        "| claim | first training | verdict | second training | verdict |",
        "|---|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]
    return "\n".join(lines)


def _never_repeated(records: Sequence[RunRecord]) -> str:
    """The page where no run is stored in two trainings: control forks train a part of their parent again."""
    found = check_forks(records)
    is_same = 0 < found.controls == found.equal == found.equal_weights
    lines = [
        "# What a rerun changes",
        "",
        f"None of the {len(records):,} runs is stored in two trainings. Control forks change nothing, and so train the "
        f"rest of their parent again: of {found.controls}, {found.equal} equal it in every stored evaluation, and "
        f"{found.equal_weights} end with its weights, by their SHA-256."
        + (" On one device, with one version, a rerun changes nothing." if is_same else ""),
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
    return before is not after and Verdict.NOT_TESTABLE not in (before, after)


def _moved(name: str, before: Finding, after: Finding) -> list[str]:
    cells = [name, before.effect_text, str(before.verdict), after.effect_text, str(after.verdict)]
    return [cell.replace("|", "\\|") for cell in cells]


def demo_block() -> str:
    """The demo's last screen."""
    return f"```text\n{DEMO.read_text()}```\n"


def placed(text: str, name: str, block: str) -> str:
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
        "![Median steps to grok by configuration](../../results/bakeoff/figures/fig-bakeoff.svg)",
        "",
    ]
    return "\n".join(lines)


def blocks() -> dict[Path, tuple[str, str]]:
    """Each page that has a block made of stored results: the block's name and its text."""
    bakeoff = find_study("bakeoff")
    message, claims, provenance = (
        json.loads((RESULTS / PAPER / f"{name}.json").read_text()) for name in ("message", "claims", "provenance")
    )
    return {
        README: ("results", findings_block(message, claims, provenance)),
        PAPER_PAGE: ("results", paper_block(message, claims, provenance)),
        BAKEOFF_PAGE: ("bakeoff", bakeoff_block(read_evidence(bakeoff, RESULTS / "bakeoff"))),
        QUICK_START: ("demo", demo_block()),
    }


def verdicts_file() -> str:
    """Each claim's verdict of each study with results, which `grokscope reproduce` counts and compares with."""
    stored = {folder: folder / "claims.json" for folder in sorted(RESULTS.iterdir())}
    found = {
        folder.name: describe_stored(json.loads(path.read_text())) for folder, path in stored.items() if path.exists()
    }
    return json.dumps(found, indent=1) + "\n"


def memberships_file(evidences: Mapping[str, Evidence]) -> str:
    """Every run of every study with results: its content hash, and what the study calls it."""
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow(("hash", "study", "experiment", "name"))
    for study, evidence in evidences.items():
        for experiment, runs in evidence.records.items():
            rows.writerows((record.spec.content_hash, study, experiment, name) for name, record in runs.items())
    return written.getvalue()


def with_results(added: Sequence[str] = ()) -> list[str]:
    """The studies that have results, and those whose records were put there and are not written up yet."""
    return [name for name in study_names() if name in added or (RESULTS / name / "provenance.json").exists()]


def main(added: Sequence[str] = ()) -> None:
    """Write everything that follows from the records; studies that have no results yet are named."""
    evidences = {name: read_evidence(find_study(name), RESULTS / name) for name in with_results(added)}
    for name, evidence in evidences.items():
        write_results(find_study(name), evidence, RESULTS / name, lambda item: print(f"wrote {item}"))
    MEMBERSHIPS.write_text(memberships_file(evidences))
    REPETITION.write_text(repetition_page(find_study(PAPER)))
    VERDICTS.write_text(verdicts_file())
    for page, (name, block) in blocks().items():
        page.write_text(placed(page.read_text(), name, block))


if __name__ == "__main__":
    main(sys.argv[1:])
