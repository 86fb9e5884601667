"""The message: sentences whose numbers are those of claims, worded as the numbers allow."""

import re
from dataclasses import replace

from planted_claims import evidence, stable

from grokscope.studies import Evidence, judge
from grokscope.studies.message import TOPICS, Sentence, write_message
from grokscope.studies.page import message_lines
from grokscope.studies.rule import above
from grokscope.studies.synchronization import STUDY

CLAIMS = {claim.name: claim for claim in STUDY.claims}
STAYS = CLAIMS["grokked-stays-grokked"]
NAME = STAYS.name
SENTENCE = Sentence(
    "What is open",
    (NAME,),
    (
        (above(0.5, f"{NAME}|stays"), f"Most stay: {{{NAME}|stays:.0%}} of {{{NAME}|n}}."),
        (None, f"Few stay: {{{NAME}|stays:.0%}}."),
    ),
)


def said(sentence: Sentence, found: Evidence) -> list[str]:
    rows = write_message([sentence], [STAYS], {NAME: judge(STAYS, found)}, found)
    return [row["text"] for row in rows if row["claims"] == [NAME]]


def test_a_sentence_is_worded_as_its_number_allows() -> None:
    assert said(SENTENCE, stable(True)) == ["Most stay: 100 % [88 %, 100 %] of 30."]
    assert said(SENTENCE, stable(False)) == ["Few stay: 0 % [0 %, 12 %]."]


def test_a_part_says_how_many_units_it_rests_on() -> None:
    found = stable(True)
    failed = {
        name: replace(one, evaluations={**one.evaluations, "validation_accuracy": [0.1] * len(one.evaluations["step"])})
        for name, one in found.experiment("base").items()
        if name.endswith("_s0")
    }
    assert len(failed) == 5  # a prime each
    mixed = replace(found, records={**found.records, "base": {**found.experiment("base"), **failed}})
    sentence = Sentence("What is open", (NAME,), ((None, f"{{{NAME}|stays:n}} of {{{NAME}|n}}."),))
    assert said(sentence, mixed) == ["25 of 30."]


def test_without_runs_nothing_is_said_but_that_it_is_open() -> None:
    assert said(SENTENCE, Evidence({})) == [f"Not decided yet: {STAYS.statement}"]


def test_every_sentence_of_the_study_names_claims_and_parts_that_exist() -> None:
    for sentence in STUDY.message:
        for condition, text in sentence.cases:
            named = set(re.findall(r"\{([^}:]+)", text)) | (condition.named_parts if condition else set())
            for place in named:
                claim, _, part = place.partition("|")
                assert claim in sentence.claims
                known = CLAIMS[claim].estimand
                found = known.compute(known.sample(evidence(True).records).values)
                assert part in found, place
            assert {place.partition("|")[0] for place in named} == {*sentence.claims}
            assert text.endswith(".")
            for number in re.findall(r"\{[^}]+\|[^}:]+\}", text):
                assert number.endswith("|n}"), f"a number of {sentence.claims} has no format"


def test_six_sentences_are_headlines_and_every_topic_is_known() -> None:
    assert sum(sentence.is_headline for sentence in STUDY.message) == 6
    assert {sentence.topic for sentence in STUDY.message} <= {*TOPICS}
    assert not [
        name for sentence in STUDY.message for _, text in sentence.cases for name in CLAIMS if f" {name}" in text
    ]


def test_topics_come_in_order_and_sentences_link_to_their_claims() -> None:
    found = evidence(True)
    rows = write_message(STUDY.message, STUDY.claims, {name: judge(c, found) for name, c in CLAIMS.items()}, found)
    assert [row["topic"] for row in rows] == sorted((row["topic"] for row in rows), key=TOPICS.index)
    page = "\n".join(message_lines(rows, "RESULTS.md"))
    assert {name for row in rows for name in row["claims"]} == set(re.findall(r"RESULTS\.md#claim-([\w-]+)", page))
