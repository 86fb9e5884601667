"""The paper's tables and claims, and answers to what it could not know, made of records."""

from grokscope.report.answers import ANSWERS, answer_sentence, answer_sentences
from grokscope.report.claims import CLAIMS, Claim, Finding, Verdict, judged, rules_digest
from grokscope.report.evidence import Evidence, evidence_of
from grokscope.report.render import write_table
from grokscope.report.tables import TABLES, Table

__all__ = [
    "ANSWERS",
    "CLAIMS",
    "TABLES",
    "Claim",
    "Evidence",
    "Finding",
    "Table",
    "Verdict",
    "answer_sentence",
    "answer_sentences",
    "evidence_of",
    "judged",
    "rules_digest",
    "write_table",
]
