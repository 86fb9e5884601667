"""Studies: a paper's runs, quantities, claims, tables and figures, each as data of one folder."""

from grokscope.studies import rule
from grokscope.studies.claim import Claim, Finding, judge, rules_digest
from grokscope.studies.evidence import Evidence, cell
from grokscope.studies.quantity import Bound, Measured, Part, Quantity, Records
from grokscope.studies.rule import Rule, Verdict
from grokscope.studies.selection import Selection, configuration
from grokscope.studies.study import Item, Study, find_study, gather, study_names

__all__ = [
    "Bound",
    "Claim",
    "Evidence",
    "Finding",
    "Item",
    "Measured",
    "Part",
    "Quantity",
    "Records",
    "Rule",
    "Selection",
    "Study",
    "Verdict",
    "cell",
    "configuration",
    "find_study",
    "gather",
    "judge",
    "rule",
    "rules_digest",
    "study_names",
]
