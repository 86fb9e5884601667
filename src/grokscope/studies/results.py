"""A folder of results: all that is made of a study's records, and follows from them byte for byte."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from grokscope.files import write_atomically, write_json
from grokscope.runs.records import RunRecord
from grokscope.studies.claim import Finding, claim_rows, judge, rules_digest
from grokscope.studies.evidence import Evidence
from grokscope.studies.message import write_message
from grokscope.studies.page import coverage, results_page
from grokscope.studies.study import Study, own_code
from grokscope.view.charts.figure import Figure
from grokscope.view.charts.files import write_figure
from grokscope.view.render import write_table
from grokscope.view.table import Table, cut_short

__all__ = ["describe_provenance", "write_results"]


def write_results(
    study: Study, evidence: Evidence, folder: Path, done: Callable[[str], None] = lambda name: None, **facts: Any
) -> list[dict[str, Any]]:
    """Write tables, figures, claims, provenance and the page; the claims as rows. `done` is called with each name.

    Example::

        write_results(study, evidence, Path("results"))
    """
    tables: dict[str, Table] = {}
    figures: dict[str, Figure] = {}
    sentences: dict[str, str] = {}
    by_design = "stop_after_grokking" in study.plan_options
    doubt = () if by_design else cut_short(evidence.stopped_early())
    for part, items in (("tables", study.tables), ("supplements", study.supplements)):
        for item in items:
            table = study.build(item, evidence, Table)
            tables[item.name] = replace(table, notes=(*table.notes, *doubt))
            write_table(tables[item.name], folder / part)
            if item.sentence is not None:
                with own_code(study.name, f"the sentence of {item.name}"):
                    sentences[item.name] = item.sentence(tables[item.name])
            done(item.name)
    for item in study.figures:
        figures[item.name] = study.build(item, evidence, Figure)
        write_figure(figures[item.name], folder / "figures")
        done(item.name)
    findings: dict[str, Finding] = {}
    for claim in study.claims:
        with own_code(study.name, f"claim {claim.name}"):
            findings[claim.name] = judge(claim, evidence)
    claims = claim_rows(study.claims, findings)
    write_json(folder / "claims.json", claims)
    message = write_message(study.message, study.claims, findings, evidence)
    write_json(folder / "message.json", message)
    done("claims")
    provenance = describe_provenance(study, evidence, **facts)
    write_json(folder / "provenance.json", provenance)
    page = results_page(study, claims, message, sentences, tables, figures, provenance)
    write_atomically(folder / "RESULTS.md", page.encode())
    return claims


def describe_provenance(study: Study, evidence: Evidence, **facts: Any) -> dict[str, Any]:
    """What the records were made with, which of the study's runs there are, and the digest of its rules.

    >>> from grokscope.studies import find_study
    >>> study = find_study("bakeoff")
    >>> describe_provenance(study, study.evidence([]))["runs"]
    0
    """
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
