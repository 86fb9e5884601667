"""Studies: a paper's runs, quantities, claims, tables and figures, each as data of one folder."""

from typing import TYPE_CHECKING

from grokscope.lazy import exports
from grokscope.studies.names import reject_unknown_study

if TYPE_CHECKING:  # a study's name can be checked without loading torch
    from grokscope.studies.claim import Claim, Contradiction, Finding, judge, rules_digest
    from grokscope.studies.estimand import Estimand, Stratum
    from grokscope.studies.evidence import Evidence, cell
    from grokscope.studies.quantity import Bound, Measured, Part, Quantity, Records
    from grokscope.studies.rehearsal import made_up
    from grokscope.studies.rule import Rule, Verdict
    from grokscope.studies.selection import Selection, configuration
    from grokscope.studies.study import Item, Study, find_study, gather, study_names
else:
    __getattr__, __dir__ = exports(
        __name__,
        {
            "claim": ["Claim", "Contradiction", "Finding", "judge", "rules_digest"],
            "estimand": ["Estimand", "Stratum"],
            "evidence": ["Evidence", "cell"],
            "quantity": ["Bound", "Measured", "Part", "Quantity", "Records"],
            "rehearsal": ["made_up"],
            "rule": ["Rule", "Verdict"],
            "selection": ["Selection", "configuration"],
            "study": ["Item", "Study", "find_study", "gather", "study_names"],
        },
    )

__all__ = [
    "Bound",
    "Claim",
    "Contradiction",
    "Estimand",
    "Evidence",
    "Finding",
    "Item",
    "Measured",
    "Part",
    "Quantity",
    "Records",
    "Rule",
    "Selection",
    "Stratum",
    "Study",
    "Verdict",
    "cell",
    "configuration",
    "find_study",
    "gather",
    "judge",
    "made_up",
    "reject_unknown_study",
    "rules_digest",
    "study_names",
]
