"""The paper's tables, figures and claims, and answers to what it could not know, made of records."""

from grokscope.report.answers import ANSWERS, answer_sentence, answer_sentences
from grokscope.report.claims import CLAIMS, Claim, Finding, Verdict, judged, rules_digest
from grokscope.report.evidence import Evidence, evidence_of
from grokscope.report.figures import FIGURES, Figure, house_style, write_figure
from grokscope.report.render import write_table
from grokscope.report.sources import evidence_at, records_at
from grokscope.report.tables import TABLES, Table

__all__ = [
    "ANSWERS",
    "CLAIMS",
    "FIGURES",
    "TABLES",
    "Claim",
    "Evidence",
    "Figure",
    "Finding",
    "Table",
    "Verdict",
    "answer_sentence",
    "answer_sentences",
    "evidence_at",
    "evidence_of",
    "house_style",
    "judged",
    "records_at",
    "rules_digest",
    "write_figure",
    "write_table",
]
