"""Answers to what the paper could not know, as tables made of records, with a sentence for each."""

from collections.abc import Callable

from grokscope.studies.answers.alarms import ans_false_alarms, false_alarms_sentence
from grokscope.studies.answers.changes import (
    ans_sensitivity,
    ans_thresholds_mechanism,
    sensitivity_sentence,
    thresholds_mechanism_sentence,
)
from grokscope.studies.answers.groups import ans_s5_false, s5_false_sentence
from grokscope.studies.answers.law import ans_law, law_sentence
from grokscope.studies.answers.leads import (
    ans_lead_share,
    ans_multiplication,
    lead_share_sentence,
    multiplication_sentence,
)
from grokscope.studies.evidence import Evidence
from grokscope.view.table import Table

__all__ = ["ANSWERS", "answer_sentence", "answer_sentences"]

ANSWERS: dict[str, Callable[[Evidence], Table]] = {
    "ans-lead-share": ans_lead_share,
    "ans-false-alarms": ans_false_alarms,
    "ans-law": ans_law,
    "ans-multiplication": ans_multiplication,
    "ans-s5-false": ans_s5_false,
    "ans-sensitivity": ans_sensitivity,
    "ans-thresholds-mechanism": ans_thresholds_mechanism,
}
SENTENCES: dict[str, Callable[[Table], str]] = {
    "ans-lead-share": lead_share_sentence,
    "ans-false-alarms": false_alarms_sentence,
    "ans-law": law_sentence,
    "ans-multiplication": multiplication_sentence,
    "ans-s5-false": s5_false_sentence,
    "ans-sensitivity": sensitivity_sentence,
    "ans-thresholds-mechanism": thresholds_mechanism_sentence,
}


def answer_sentence(table: Table) -> str:
    """What an answer's table says, in one sentence whose numbers are cells of the table."""
    return SENTENCES[table.name](table)


def answer_sentences(evidence: Evidence) -> dict[str, str]:
    """One sentence for each answer, by its table's name."""
    return {name: answer_sentence(answer(evidence)) for name, answer in ANSWERS.items()}
