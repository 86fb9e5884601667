"""The paper's tables, figures and claims, and answers to what it could not know, made of records."""

from grokscope.studies.answers import ANSWERS, answer_sentence, answer_sentences
from grokscope.studies.claims import CLAIMS, Claim, Finding, Verdict, judged, rules_digest
from grokscope.studies.evidence import Evidence, evidence_of
from grokscope.studies.figures import FIGURES, Figure, house_style, write_figure
from grokscope.studies.sources import evidence_at, records_at
from grokscope.studies.tables import TABLES, Table
from grokscope.view.render import write_table

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
