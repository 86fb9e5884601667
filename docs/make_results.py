"""Writes `results/` again from its records, and what README and pages say of it: run it when records were added."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from grokscope.law import count_foreign_forks
from grokscope.runs.packing import unpack_records
from grokscope.runs.records import RunRecord
from grokscope.studies import Claim, Evidence, Finding, Study, Verdict, find_study, judge
from grokscope.studies.bakeoff.configurations import CONFIGURATIONS
from grokscope.studies.bakeoff.notes import describe_logs, describe_winner
from grokscope.studies.bakeoff.quantities import outcome, tasks_run
from grokscope.studies.page import RUNS_JUDGED, SHARED_RUNS, claims_summary
from grokscope.studies.results import write_results
from grokscope.studies.sources import PACKED, read_evidence, read_records
from grokscope.view.table import Table

ROOT = Path(__file__).parents[1]
RESULTS, README, DOCS = ROOT / "results", ROOT / "README.md", ROOT / "docs"
PAPER = "synchronization"
# What `make demo` printed at its end, in a fresh clone on two cores.
DEMO, QUICK_START = RESULTS / "demo.txt", DOCS / "quick-start.md"
PAPER_PAGE, BAKEOFF_PAGE = DOCS / "studies" / "synchronization.md", DOCS / "studies" / "bakeoff.md"
REPETITION = RESULTS / PAPER / "repetition.md"
# The claims that the page of the study opens with, by name.
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
SAID = {  # verdicts within a sentence
    "reproduced": "are reproduced",
    "partly": "in part",
    "not reproduced": "are not",
    "paper inconsistent": "contradict another place of the paper",
    "not testable as written": "cannot be tested as written",
}
Row = Mapping[str, Any]
FIGURES = {
    "fig-exloss": "Leads over the addition configurations",
    "fig-wd": "Forks over weight decay",
    "fig-accelerator": "Triggers",
}


def findings_block(study: Study, evidence: Evidence, claims: Sequence[Row], provenance: Row) -> str:
    """Three findings in sentences, for the README."""
    lines = [
        f"From {provenance['runs']:,} runs on {provenance['runs_made_with'][0]['device']}; "
        f"`grokscope reproduce {study.name}` trains the same experiments, with fewer seeds unless `--n-seeds` asks for more:",
        "",
        f"- {_lead_finding(study, evidence)}",
        f"- {_group_finding(study, evidence)}",
        f"- {_fork_finding(study, evidence)}",
        "",
        f"Of the paper's {len(claims)} claims, {_verdicts(claims)}. [The study](docs/studies/{study.name}.md) has "
        f"every claim, table and figure; [rerunning]({REPETITION.relative_to(ROOT)}) says how many verdicts change "
        "when the same runs are trained again.",
        "",
    ]
    return "\n".join(lines)


def _claim(study: Study, name: str) -> Claim:
    return next(claim for claim in study.claims if claim.name == name)


def _lead_finding(study: Study, evidence: Evidence) -> str:
    claim = _claim(study, "lead-signs")
    assert claim.all_seeds is not None
    reported, found = claim.reported.partition(",")[0], evidence.measure(claim.all_seeds)
    before, after, tied = (f"{found.number(part):.0f}" for part in ("positive", "negative", "ties"))
    return (
        f"**FSD comes first about as often as not.** In {found.n} runs of modular addition it crosses its threshold "
        f"before grokking in {before}, after it in {after}, and at the same evaluation in {tied} (one every "
        f"{claim.all_seeds.cadence} steps, as in the paper, which reports that it comes first in {reported})."
    )


def _group_finding(study: Study, evidence: Evidence) -> str:
    groks, never = _claim(study, "s5-leads").all_seeds, evidence.measure(_claim(study, "s5-never-groks").quantity)
    assert groks is not None
    signs = evidence.measure(groks)
    grokked = sum(signs.number(part) for part in ("positive", "negative", "ties"))
    return (
        f"**On the group S5 it comes first, and it also comes without grokking.** FSD_gen crosses before grokking in "
        f"{signs.number('positive'):.0f} of the {grokked:.0f} runs that grok, and it crosses in "
        f"{never.number('value') * never.n:.0f} of the {never.n} that had not grokked when training ended."
    )


def _fork_finding(study: Study, evidence: Evidence) -> str:
    table = study.build(study.items["tab-wd"], evidence, Table)
    cells = {decay: table.cell(decay, "Δt, all seeds") for decay in ("1", "2", "3")}
    times = ", ".join(f"{cell.ours:,.0f} (λ = {decay})" for decay, cell in cells.items())
    exponents = evidence.measure(_claim(study, "law-censored").quantity)
    return (
        f"**Weight decay sets the pace.** Forks of {cells['1'].n} runs of add_mod97, all at one step, grok after a "
        f"median of {times} steps. In Δt ∝ λ^−α, the paper has α = 1, and we find {exponents.text}."
    )


def _verdicts(claims: Sequence[Row]) -> str:
    counted = Counter(row["verdict"] for row in claims)
    return ", ".join(f"{counted[verdict]} {words}" for verdict, words in SAID.items())


def paper_block(claims: Sequence[Row], provenance: Row, mechanism: str) -> str:
    """Verdicts, the headline claims, one supplementary analysis, and three figures, for the page of the study."""
    by_name = {row["name"]: row for row in claims}
    rows = [by_name[name] for name in HEADLINES]
    lines = [
        f"{provenance['runs']:,} runs on {provenance['runs_made_with'][0]['device']}, {len(claims)} claims, each "
        "judged by a machine-readable rule:",
        "",
        claims_summary(claims),
        "",
        f"{_undefined(claims)} of the claims that are not reproduced hang on one event: in the run that the paper "
        "shows, Phase 2, which begins when the Fourier rank has reached its final value, did not begin before "
        "grokking, so that its length, norms and accuracy are undefined. Read them as one finding.",
        "",
        "| claim | paper | ours | n | all seeds | verdict |",
        "|---|---|---|---|---|---|",
        *(f"| {' | '.join(_cells(row))} |" for row in rows),
        "",
        RUNS_JUDGED,
        "",
        f"Seeds of each configuration, by experiment: {_seeds(provenance)}. {SHARED_RUNS}",
        "",
        f"Supplementary analyses go beyond the paper, for example on the norm. {mechanism}",
        "",
        *(f"![{title}](../../results/{PAPER}/figures/{name}.svg)" for name, title in FIGURES.items()),
        "",
    ]
    return "\n".join(lines)


def _undefined(claims: Sequence[Row]) -> int:
    """Claims about a phase that the run does not have."""
    return sum(row["value"] == "undefined" and row["verdict"] == "not reproduced" for row in claims)


def _seeds(provenance: Row) -> str:
    found = provenance["experiments"]
    return ", ".join(f"{name.replace('_', ' ')} {counts['seeds']}" for name, counts in found.items())


def _cells(row: Row) -> list[str]:
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
    paper, bakeoff = find_study(PAPER), find_study("bakeoff")
    evidence = read_evidence(paper, RESULTS / PAPER)
    claims, provenance = (
        json.loads((RESULTS / PAPER / f"{name}.json").read_text()) for name in ("claims", "provenance")
    )
    return {
        README: ("results", findings_block(paper, evidence, claims, provenance)),
        PAPER_PAGE: ("results", paper_block(claims, provenance, mechanism_sentence(paper, evidence))),
        BAKEOFF_PAGE: ("bakeoff", bakeoff_block(read_evidence(bakeoff, RESULTS / "bakeoff"))),
        QUICK_START: ("demo", demo_block()),
    }


def main() -> None:
    """Write everything that follows from the records."""
    for study in map(find_study, ("bakeoff", PAPER)):
        folder = RESULTS / study.name
        write_results(study, read_evidence(study, folder), folder, lambda name: print(f"wrote {name}"))
    REPETITION.write_text(repetition_page(find_study(PAPER)))
    for page, (name, block) in blocks().items():
        page.write_text(placed(page.read_text(), name, block))


def mechanism_sentence(study: Study, evidence: Evidence) -> str:
    """What the supplementary analysis of the norm says."""
    item = study.items[MECHANISM]
    assert item.sentence is not None
    return item.sentence(item.build(evidence))


if __name__ == "__main__":
    main()
