"""What is in `results/` and in the README follows from the stored records, by rules that are data."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import load_file

from grokscope.model import ReferenceModule, sizes_of
from grokscope.runs.logs import Columns
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies import Evidence, Study, find_study, judge, rules_digest, study_names
from grokscope.studies.claim import claim_rows
from grokscope.studies.message import write_message
from grokscope.studies.page import results_page
from grokscope.studies.results import describe_provenance
from grokscope.studies.sources import read_evidence
from grokscope.studies.synchronization.models import MODELS
from grokscope.studies.verdicts import VERDICTS, stored_verdicts
from grokscope.tasks import named_task, split
from grokscope.view.charts.figure import Figure
from grokscope.view.charts.files import figure_csv
from grokscope.view.collection_files import write_collection
from grokscope.view.render import csv_of, latex_of, markdown_of
from grokscope.view.table import Table
from scripts import DOCS, module_at

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAPER = find_study("synchronization")
LIMIT = 30 * 10**6
WITHOUT_RUNS = {"accelerators", "clock", "signals", "steering"}  # rules are there, runs are still to be made
RENDERINGS = {"csv": csv_of, "md": markdown_of, "tex": latex_of}


@pytest.fixture(
    scope="module",
    params=[name for name in study_names() if (RESULTS / name / "provenance.json").exists()],
)
def study(request: pytest.FixtureRequest) -> Study:
    return find_study(request.param)


@pytest.fixture(scope="module")
def evidence(study: Study) -> Evidence:
    return read_evidence(study, RESULTS / study.name)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return module_at(DOCS / "make_results.py")


def until(record: RunRecord, last: int) -> RunRecord:
    """A run as it would be known had it ended at a step."""

    def cut(columns: Columns) -> Columns:
        kept = [place for place, step in enumerate(columns["step"]) if step <= last]
        return {name: [values[place] for place in kept] for name, values in columns.items()}

    return replace(record, evaluations=cut(record.evaluations), checkpoints=cut(record.checkpoints))


def test_three_runs_of_the_quick_version_name_verdicts_and_reverse_no_firm_one(
    study: Study, evidence: Evidence
) -> None:
    """The stored runs that are the quick version's but for its budget, as long as it trains them."""
    if study.quick is None or study.name != PAPER.name:
        pytest.skip("of the paper's study alone")
    stored = {row["name"]: row for row in json.loads((RESULTS / study.name / "claims.json").read_text())}
    quick = {name: spec.training.steps for name, spec in study.quick("float32")["base"].items()}
    runs = {name: until(evidence.experiment("base")[name], steps) for name, steps in quick.items()}
    few = Evidence({name: runs if name == "base" else {} for name in study.experiments}, is_quick=True)
    judged = {claim.name: judge(claim, few) for claim in study.claims}
    named = {name: one for name, one in judged.items() if one.share is not None}
    assert len(named) >= 8
    assert all(one.is_provisional and not one.is_firm for one in named.values())
    for name, one in named.items():
        words = {str(one.verdict), stored[name]["verdict"]}
        assert not (stored[name]["firm"] and words == {"reproduced", "refuted"}), name


@pytest.mark.parametrize("name", MODELS)
def test_every_operation_has_a_grokked_model(name: str) -> None:
    folder = RESULTS / "synchronization" / "checkpoints"
    about = json.loads((folder / f"{name}.json").read_bytes())
    spec = RunSpec.from_dict(about["spec"])
    task = named_task(spec.task)
    assert spec.task == name
    model = ReferenceModule(spec.architecture, sizes_of(task))
    model.load_state_dict(load_file(folder / f"{name}.safetensors"))
    held_out = split(task, spec.train_fraction, spec.seeds.split).validation
    with torch.no_grad():
        found = model(torch.tensor(task.tokens)[held_out]).argmax(dim=-1)
    assert (found.numpy() == task.answers[held_out]).mean() > 0.99


@pytest.mark.parametrize("name", sorted(WITHOUT_RUNS))
def test_a_study_without_runs_says_so_and_shows_no_result(name: str) -> None:
    study = find_study(name)
    # Once there are results, of whatever kind, they are held to their records like those of the other studies.
    assert not (RESULTS / name).exists(), f"{name} has results: take it out of WITHOUT_RUNS"
    assert name not in (RESULTS / "memberships.csv").read_text().replace(",", "\n").splitlines()
    page = " ".join((DOCS / "studies" / f"{name}.md").read_text().split())
    assert "no runs are stored yet" in page
    assert f"studies/{name}\n" in (DOCS / "index.md").read_text()
    assert study.claims, "its rules are written down before its runs"


def test_the_rules_are_those_of_the_stored_results(study: Study) -> None:
    # A rule that is changed later changes this digest: it belongs into CHANGELOG.md, with what it moves.
    stored = json.loads((RESULTS / study.name / "provenance.json").read_text())
    assert stored["rules"] == rules_digest(study.claims)


def test_every_record_is_placed_and_listed(study: Study, evidence: Evidence) -> None:
    assert evidence.unplaced == ()
    with (RESULTS / "memberships.csv").open(newline="") as file:
        listed = {tuple(row.values()) for row in csv.DictReader(file) if row["study"] == study.name}
    placed = {
        (record.spec.content_hash, study.name, experiment, name)
        for experiment, runs in evidence.records.items()
        for name, record in runs.items()
    }
    assert placed == listed
    planned = {precision: study.runs(36, precision) for precision in ("float32", "tf32")}
    for experiment, runs in evidence.records.items():
        for name, record in runs.items():
            assert planned[record.spec.precision][experiment][name] == record.spec, f"{experiment}/{name}"


def test_every_number_of_the_folder_and_its_page_follows_from_the_records(study: Study, evidence: Evidence) -> None:
    folder = RESULTS / study.name
    tables: dict[str, Table] = {}
    figures: dict[str, Figure] = {}
    sentences: dict[str, str] = {}
    for part, items in (("tables", study.tables), ("supplements", study.supplements)):
        for item in items:
            table = item.build(evidence)
            assert isinstance(table, Table)
            tables[item.name] = table
            for ending, render in RENDERINGS.items():
                assert render(table) == (folder / part / f"{item.name}.{ending}").read_bytes(), item.name
            if item.sentence is not None:
                sentences[item.name] = item.sentence(table)
    for item in study.figures:
        figure = item.build(evidence)
        assert isinstance(figure, Figure)
        figures[item.name] = figure
        assert figure_csv(figure) == (folder / "figures" / f"{item.name}.csv").read_bytes(), item.name
        assert all((folder / "figures" / f"{item.name}.{ending}").stat().st_size for ending in ("svg", "png", "pdf"))
    findings = {claim.name: judge(claim, evidence) for claim in study.claims}
    claims = claim_rows(study.claims, findings)
    assert claims == json.loads((folder / "claims.json").read_text())
    message = write_message(study.message, study.claims, findings, evidence)
    assert message == json.loads((folder / "message.json").read_text())
    provenance = describe_provenance(study, evidence)
    assert provenance == json.loads((folder / "provenance.json").read_text())
    page = results_page(study, claims, message, sentences, tables, figures, provenance)
    assert page.encode() == (folder / "RESULTS.md").read_bytes()


@pytest.mark.slow
def test_a_collection_of_the_records_gives_every_number_as_the_records_do(
    study: Study, evidence: Evidence, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    records = {one.name: one for runs in evidence.records.values() for one in runs.values()}
    write_collection(list(records.values()), tmp_path, study.name, study.title, study.sparse_columns)
    again = replace(read_evidence(study, tmp_path), folder=evidence.folder)  # where other files of the study lie
    folder = RESULTS / study.name
    findings = {claim.name: judge(claim, again) for claim in study.claims}
    assert claim_rows(study.claims, findings) == json.loads((folder / "claims.json").read_text())
    for part, items in (("tables", study.tables), ("supplements", study.supplements)):
        for item in items:
            assert csv_of(item.build(again)) == (folder / part / f"{item.name}.csv").read_bytes(), item.name
    for item in study.figures:
        ours, stored = (
            [cell for row in csv.reader(content.decode().splitlines()) for cell in row]
            for content in (figure_csv(item.build(again)), (folder / "figures" / f"{item.name}.csv").read_bytes())
        )
        assert len(ours) == len(stored), item.name
        differ = [pair for pair in zip(ours, stored, strict=True) if pair[0] != pair[1]]
        # Just above a power of two float32 is coarser than seven digits, so a value in some ten thousand is one off in
        # its last, which means of values show. Claims and tables do not.
        assert len(differ) <= len(stored) / 1000, item.name
        assert [float(one) for one, _ in differ] == pytest.approx([float(other) for _, other in differ], rel=2e-7)


def test_every_numeric_cell_and_drawn_series_names_its_quantity(study: Study, evidence: Evidence) -> None:
    for item in (*study.tables, *study.supplements):
        table = item.build(evidence)
        assert isinstance(table, Table)
        for row in table.rows:
            for cell in row[1:]:
                if isinstance(cell.ours, float) or cell.interval is not None:
                    assert cell.quantity, (item.name, row[0].ours, cell)
    for item in study.figures:
        figure = item.build(evidence)
        assert isinstance(figure, Figure)
        for panel in figure.panels:
            for series in panel.series:
                if len(series) and series.source in ("run", "seeds", "fit"):
                    assert series.quantity, (item.name, series.label)


def test_what_the_readme_and_the_pages_say_follows_too(script: ModuleType) -> None:
    for page, (name, block) in script.blocks().items():
        text = page.read_text()
        assert block in text, page.name
        assert script.placed(text, name, block) == text


@pytest.mark.slow
def test_what_a_rerun_changes_follows_too(script: ModuleType) -> None:
    assert script.repetition_page(PAPER) == script.REPETITION.read_text()


def test_every_stored_run_is_listed_in_the_order_of_its_study(script: ModuleType) -> None:
    evidences = {name: read_evidence(find_study(name), RESULTS / name) for name in script.with_results()}
    assert script.MEMBERSHIPS.read_text() == script.memberships_file(evidences)


def test_the_verdicts_that_list_prints_are_those_of_the_stored_claims(script: ModuleType) -> None:
    assert VERDICTS.read_text() == script.verdicts_file()
    assert not WITHOUT_RUNS & stored_verdicts().keys()
    assert sum(stored_verdicts()[PAPER.name].values()) == len(PAPER.claims)


def test_the_readme_says_six_sentences_of_the_message_with_their_numbers(script: ModuleType) -> None:
    folder = RESULTS / PAPER.name
    message, claims, provenance = (
        json.loads((folder / f"{name}.json").read_text()) for name in ("message", "claims", "provenance")
    )
    block = script.findings_block(message, claims, provenance)
    said = [line for line in block.splitlines() if line.startswith("- ")]
    assert len(said) == 6
    assert all(re.search(r"\d.*RESULTS\.md#claim-", line) for line in said)
    assert block.count(".svg)") == 3
    anchors = set(re.findall(r"#claim-([\w-]+)", block))
    page = (folder / "RESULTS.md").read_text()
    assert all(f'<a id="claim-{name}"></a>' in page for name in anchors)


def test_other_records_give_another_message() -> None:
    evidence = read_evidence(PAPER, RESULTS / PAPER.name)
    base = evidence.experiment("base")
    fewer = replace(evidence, records={**evidence.records, "base": dict(list(base.items())[:100])})
    sentences = [one for one in PAPER.message if "lead-signs" in one.claims]
    leads = [claim for claim in PAPER.claims if claim.name in sentences[0].claims]
    texts = [
        write_message(sentences, leads, {claim.name: judge(claim, found) for claim in leads}, found)[0]["text"]
        for found in (evidence, fewer)
    ]
    assert texts[0] != texts[1]


def test_the_results_are_small_enough_to_live_here() -> None:
    assert sum(path.stat().st_size for path in RESULTS.rglob("*") if path.is_file()) < LIMIT
