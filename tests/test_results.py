"""What stands in `results/` and in the README follows from the stored records, by rules that were fixed before."""

import json
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import load_file

from grokscope.model import Twin
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies.answers import ANSWERS, answer_sentence
from grokscope.studies.claims import CLAIMS, judged, rules_digest
from grokscope.studies.evidence import Evidence, evidence_of
from grokscope.studies.figures import FIGURES, figure_csv
from grokscope.studies.synchronization.models import MODELS
from grokscope.studies.results import claim_rows, provenance_of
from grokscope.studies.results_page import page_of
from grokscope.studies.sources import records_at, scope_of
from grokscope.studies.tables import TABLES
from grokscope.tasks import named_task, split
from grokscope.view.render import csv_of, latex_of, markdown_of
from scripts import DOCS, module_at

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
LIMIT = 20 * 10**6


@pytest.fixture(scope="module")
def records() -> list[RunRecord]:
    return records_at(RESULTS)


@pytest.fixture(scope="module")
def evidence(records: list[RunRecord]) -> Evidence:
    return evidence_of(records, **scope_of(records))


@pytest.fixture(scope="module")
def made() -> ModuleType:
    return module_at(DOCS / "make_results.py")


def stored(name: str) -> bytes:
    return (RESULTS / name).read_bytes()


@pytest.mark.parametrize("name", MODELS)
def test_every_operation_has_a_grokked_model(name: str) -> None:
    about = json.loads(stored(f"checkpoints/{name}.json"))
    spec = RunSpec.from_dict(about["spec"])
    task = named_task(spec.task)
    assert spec.task == name
    model = Twin(spec.architecture, task.symbols)
    model.load_state_dict(load_file(RESULTS / "checkpoints" / f"{name}.safetensors"))
    held_out = split(task, spec.train_fraction, spec.seeds.split).validation
    with torch.no_grad():
        found = model(torch.tensor(task.tokens)[held_out]).argmax(dim=-1)
    assert (found.numpy() == task.answers[held_out]).mean() > 0.99


def test_the_rules_are_those_that_were_fixed_before_the_first_results() -> None:
    # A rule that is changed later changes this digest: it belongs into CHANGELOG.md, with what it moves.
    assert json.loads(stored("provenance.json"))["rules"] == rules_digest()


def test_every_claim_is_there_with_its_rule_and_verdict() -> None:
    rows = json.loads(stored("claims.json"))
    assert [(row["name"], row["rule"]) for row in rows] == [(claim.name, claim.rule) for claim in CLAIMS]
    judged_elsewhere = [row for row in rows if row["verdict"] == "not testable as written"]
    assert judged_elsewhere
    assert all(row["beside_verdict"] is None for row in judged_elsewhere), "no number of runs makes it testable"


def test_every_number_of_the_page_and_the_readme_follows_from_the_records(
    records: list[RunRecord], evidence: Evidence, made: ModuleType
) -> None:
    tables = {name: build(evidence) for name, build in TABLES.items()}
    answers = {name: build(evidence) for name, build in ANSWERS.items()}
    for folder, some in (("tables", tables), ("answers", answers)):
        for name, table in some.items():
            for ending, render in (("csv", csv_of), ("md", markdown_of), ("tex", latex_of)):
                assert render(table) == stored(f"{folder}/{name}.{ending}"), name
    figures = {name: draw(evidence) for name, draw in FIGURES.items()}
    for name, figure in figures.items():
        assert figure_csv(figure) == stored(f"figures/{name}.csv"), name
        assert all((RESULTS / "figures" / f"{name}.{ending}").stat().st_size for ending in ("svg", "png", "pdf"))
    claims, provenance = claim_rows(judged(evidence)), provenance_of(records, scope_of(records))
    assert claims == json.loads(stored("claims.json"))
    assert provenance == json.loads(stored("provenance.json"))
    sentences = {name: answer_sentence(table) for name, table in answers.items()}
    assert page_of(claims, sentences, tables | answers, figures, provenance).encode() == stored("RESULTS.md")
    readme = (ROOT / "README.md").read_text()
    assert made.with_block(readme, made.readme_block(claims, provenance, sentences[made.MECHANISM])) == readme
    assert made.repetition_page().encode() == stored("repetition.md")


def test_the_results_are_small_enough_to_live_here() -> None:
    assert sum(path.stat().st_size for path in RESULTS.rglob("*") if path.is_file()) < LIMIT
