"""The paper's tables, figures and claims, made of records."""

from grokscope.report.evidence import Evidence, evidence_of

__all__ = ["Evidence", "evidence_of"]
