"""The paper's tables and claims, made of records."""

from grokscope.report.claims import CLAIMS, Claim, Finding, Verdict, judged, rules_digest
from grokscope.report.evidence import Evidence, evidence_of
from grokscope.report.render import write_table
from grokscope.report.tables import TABLES, Table

__all__ = [
    "CLAIMS",
    "TABLES",
    "Claim",
    "Evidence",
    "Finding",
    "Table",
    "Verdict",
    "evidence_of",
    "judged",
    "rules_digest",
    "write_table",
]
