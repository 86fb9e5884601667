"""A folder of results: all that is made of records, and follows from them byte for byte."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path
from typing import Any

from grokscope.files import make_folder, write_atomically
from grokscope.runs.records import RunRecord
from grokscope.studies.answers import ANSWERS, answer_sentence
from grokscope.studies.claims import CLAIMS, Finding, judged, rules_digest
from grokscope.studies.coverage import coverage_of
from grokscope.studies.evidence import Evidence
from grokscope.studies.figures import FIGURES, write_figure
from grokscope.studies.results_page import page_of
from grokscope.studies.sources import Scope
from grokscope.studies.tables import TABLES, Table
from grokscope.view.render import write_table
from grokscope.view.table import cut_short

__all__ = ["claim_rows", "provenance_of", "write_json", "write_results"]


def write_results(
    evidence: Evidence,
    folder: Path,
    provenance: Mapping[str, Any],
    done: Callable[[str], None] = lambda name: None,
) -> list[dict[str, Any]]:
    """Write tables, answers, figures, claims, provenance and the page; the claims as rows. `done` hears each name."""
    tables, answers, figures = {}, {}, {}
    doubt = cut_short(evidence.stopped_early())
    for name, build in TABLES.items():
        tables[name] = _with_notes(build(evidence), doubt)
        write_table(tables[name], folder / "tables")
        done(name)
    for name, build in ANSWERS.items():
        answers[name] = _with_notes(build(evidence), doubt)
        write_table(answers[name], folder / "answers")
        done(name)
    for name, draw in FIGURES.items():
        figure = draw(evidence)
        write_figure(figure, folder / "figures")
        figures[name] = figure
        done(name)
    claims = claim_rows(judged(evidence))
    write_json(folder / "claims.json", claims)
    done("claims")
    write_json(folder / "provenance.json", provenance)
    sentences = {name: answer_sentence(table) for name, table in answers.items()}
    page = page_of(claims, sentences, tables | answers, figures, provenance)
    write_atomically(folder / "RESULTS.md", page.encode())
    return claims


def _with_notes(table: Table, notes: tuple[str, ...]) -> Table:
    return replace(table, notes=(*table.notes, *notes))


def claim_rows(findings: Mapping[str, Finding]) -> list[dict[str, Any]]:
    """Each claim with what was found, as plain values."""
    rows = []
    for claim in CLAIMS:
        found = findings[claim.name]
        said = {key: getattr(claim, key) for key in ("name", "statement", "where", "printed", "rule", "table")}
        told = {key: value for key, value in asdict(found).items() if key not in ("estimate", "verdict")}
        beside_verdict = None if found.beside_verdict is None else str(found.beside_verdict)
        interval = None if found.estimate is None else [_plain(found.estimate.low), _plain(found.estimate.high)]
        rows.append(
            {**said, **told, "beside_verdict": beside_verdict, "interval": interval, "verdict": str(found.verdict)}
        )
    return rows


def provenance_of(records: Sequence[RunRecord], scope: Scope, **told: Any) -> dict[str, Any]:
    """What the records were made with, and the digest of the rules they are judged by."""
    made = Counter(json.dumps(record.outcome.provenance, sort_keys=True) for record in records)
    spent = sum(record.spec.training.steps - (record.spec.fork.step if record.spec.fork else 0) for record in records)
    return {
        **told,
        "precision": scope["precision"],
        "quick": scope["quick"],
        "runs": len(records),
        "run_steps": spent,
        "studies": coverage_of(records, scope),
        "rules": rules_digest(),
        "runs_made_with": [{**json.loads(text), "runs": count} for text, count in sorted(made.items())],
    }


def write_json(path: Path, value: Any) -> None:
    """JSON that people can read."""
    make_folder(path.parent)
    write_atomically(path, (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())


def _plain(number: float) -> float | None:
    return float(f"{number:.10g}") if isfinite(number) else None
