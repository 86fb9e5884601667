"""What the study says first, in sentences whose numbers are those of its claims."""

from grokscope.studies.message import Sentence
from grokscope.studies.rule import above, all_of, at_least, at_most, below

__all__ = ["MESSAGE"]

LOSS = (
    "At equal false alarms {some-signal-beats-the-loss|value:,.0f} of the published signals lead in more runs than the "
    "validation loss does (n = {some-signal-beats-the-loss|n})"
)
EARLY = (
    "Which of two seeds groks sooner, half-way there: the best signal without labels of held-out rows is right in "
    "{early-information-suffices|value:+.2f} of the pairs, compared with the best of those that need them"
)
ONSET = (
    "The commutator defect begins to grow before the run generalises in {commutator-always-first|share:.0%} of "
    "{commutator-always-first|n} runs, by {commutator-always-first|mean lead:+,.0f} steps in the mean, and in "
    "{commutator-no-false-alarms|share:.0%} of {commutator-no-false-alarms|n} runs that cannot grok"
)
GAP = (
    "g₂₃ of the attention's updates falls 4.53 times before grokking in {gap-always-first|share:.0%} of "
    "{gap-always-first|n} runs, and in {gap-no-false-alarms|share:.0%} of {gap-no-false-alarms|n} that cannot grok"
)
ENTROPY = (
    "The spectral entropy of the residual stream falls below 0.61 before grokking in "
    "{residual-entropy-always-first|share:.0%} of {residual-entropy-always-first|n} runs of one layer, and in "
    "{residual-entropy-no-false-alarms|share:.0%} of {residual-entropy-no-false-alarms|n} that cannot grok"
)
FORMS = (
    "In Nanda et al.'s model restricted loss with the final keys falls {nanda-restricted-first|restricted lead:+,.0f} "
    "steps before validation loss does, and excluded loss rises {nanda-restricted-first|excluded lead:+,.0f} steps "
    "before it (medians, n = {nanda-restricted-first|n}; a minus is later)"
)


def _specific(claims: tuple[str, str], text: str) -> tuple[Sentence, Sentence]:
    """An event that leads and is given in few runs that cannot grok; or one that is not specific."""
    leads, false = f"{claims[0]}|share", f"{claims[1]}|share"
    return (
        Sentence("What holds", claims, ((all_of(at_least(0.5, leads), at_most(0.05, false)), f"{text}."),)),
        Sentence(
            "What is not specific",
            claims,
            ((all_of(at_least(0.5, leads), above(0.05, false)), f"{text}: it is no sign of grokking alone."),),
        ),
    )


MESSAGE = (
    Sentence(
        "What holds",
        ("some-signal-beats-the-loss",),
        ((above(0, "some-signal-beats-the-loss|value"), f"**{LOSS}.**"),),
        is_headline=True,
    ),
    Sentence(
        "What does not hold",
        ("some-signal-beats-the-loss",),
        ((below(1, "some-signal-beats-the-loss|value"), f"**{LOSS}: none comes first.**"),),
        is_headline=True,
    ),
    *_specific(("residual-entropy-always-first", "residual-entropy-no-false-alarms"), ENTROPY),
    *_specific(("commutator-always-first", "commutator-no-false-alarms"), ONSET),
    *_specific(("gap-always-first", "gap-no-false-alarms"), GAP),
    Sentence(
        "What holds", ("nanda-restricted-first",), ((above(0, "nanda-restricted-first|restricted lead"), f"{FORMS}."),)
    ),
    Sentence(
        "What does not hold",
        ("nanda-restricted-first",),
        ((at_most(0, "nanda-restricted-first|restricted lead"), f"{FORMS}."),),
    ),
    Sentence(
        "What holds",
        ("early-information-suffices",),
        ((at_least(-0.03, "early-information-suffices|value"), f"{EARLY}."),),
    ),
    Sentence(
        "What does not hold",
        ("early-information-suffices",),
        ((below(-0.03, "early-information-suffices|value"), f"{EARLY}."),),
    ),
)
