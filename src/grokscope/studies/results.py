"""A folder of results: all that is made of a study's records, and follows from them byte for byte."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from grokscope.files import make_folder, write_atomically
from grokscope.runs.records import RunRecord
from grokscope.studies.claim import claim_rows, judge, rules_digest
from grokscope.studies.evidence import Evidence
from grokscope.studies.page import coverage, results_page
from grokscope.studies.study import Item, Study
from grokscope.view.charts.figure import Figure
from grokscope.view.charts.files import write_figure
from grokscope.view.render import write_table
from grokscope.view.table import Table, cut_short

__all__ = ["describe_provenance", "write_json", "write_results"]


def write_results(
    study: Study, evidence: Evidence, folder: Path, done: Callable[[str], None] = lambda name: None, **facts: Any
) -> list[dict[str, Any]]:
    """Write tables, figures, claims, provenance and the page; the claims as rows. `done` is called with each name."""
    tables: dict[str, Table] = {}
    figures: dict[str, Figure] = {}
    sentences: dict[str, str] = {}
    by_design = "stop_after_grokking" in study.plan_options
    doubt = () if by_design else cut_short(evidence.stopped_early())
    for part, items in (("tables", study.tables), ("supplements", study.supplements)):
        for item in items:
            tables[item.name] = _table(item, evidence, doubt)
            write_table(tables[item.name], folder / part)
            if item.sentence is not None:
                sentences[item.name] = item.sentence(tables[item.name])
            done(item.name)
    for item in study.figures:
        figure = item.build(evidence)
        assert isinstance(figure, Figure)
        figures[item.name] = figure
        write_figure(figure, folder / "figures")
        done(item.name)
    claims = claim_rows(study.claims, {claim.name: judge(claim, evidence) for claim in study.claims})
    write_json(folder / "claims.json", claims)
    done("claims")
    provenance = describe_provenance(study, evidence, **facts)
    write_json(folder / "provenance.json", provenance)
    page = results_page(study, claims, sentences, tables, figures, provenance)
    write_atomically(folder / "RESULTS.md", page.encode())
    return claims


def _table(item: Item, evidence: Evidence, notes: tuple[str, ...]) -> Table:
    table = item.build(evidence)
    assert isinstance(table, Table)
    return replace(table, notes=(*table.notes, *notes))


def describe_provenance(study: Study, evidence: Evidence, **facts: Any) -> dict[str, Any]:
    """What the records were made with, which of the study's runs there are, and the digest of its rules."""
    records = _records(evidence)
    versions = Counter(json.dumps(dict(record.outcome.provenance), sort_keys=True) for record in records)
    return {
        **facts,
        "study": study.name,
        "precision": ", ".join(sorted({record.spec.precision for record in records})),
        "quick": evidence.is_quick,
        "runs": len(records),
        "run_steps": sum(
            record.spec.training.steps - (record.spec.fork.step if record.spec.fork else 0) for record in records
        ),
        "experiments": coverage(study, evidence),
        "rules": rules_digest(study.claims),
        "made_for_no_experiment": list(evidence.unplaced),
        "runs_made_with": [{**json.loads(text), "runs": count} for text, count in sorted(versions.items())],
    }


def _records(evidence: Evidence) -> list[RunRecord]:
    """Every record once, however many experiments it belongs to."""
    found = {record.spec.content_hash: record for runs in evidence.records.values() for record in runs.values()}
    return list(found.values())


def write_json(path: Path, value: Mapping[str, Any] | list[dict[str, Any]]) -> None:
    """JSON that people can read."""
    make_folder(path.parent)
    write_atomically(path, (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())
