"""What is judged, by rules that were written before any run: the recipe, and each published accelerator."""

from grokscope.studies import Claim, Rule
from grokscope.studies.rule import above, all_of, at_least, at_most
from grokscope.studies.steering.arms import PUBLISHED
from grokscope.studies.steering.quantities import accelerator, reliability, speed_up, stays

__all__ = ["CLAIMS"]

WANTED, RELIABLE = 2.0, 0.98  # times sooner; share of runs
LOST = 0.02  # of the runs that AdamW gets there, a published accelerator may lose at most this share

RECIPE = (
    Claim(
        "recipe-is-reliable",
        "The recipe generalises stably in at least 98 % of all runs on unseen tasks on which any arm gets half there.",
        "the question of this study",
        "≥ 98 %",
        reliability(),
        Rule.of_many(at_least(RELIABLE)),
        "tab-verdicts",
    ),
    Claim(
        "recipe-beats-one-decay",
        "Its median is at least 2 times below that of AdamW at one λ for all tasks, chosen on the tuning tasks.",
        "the question of this study",
        "≥ 2 times",
        speed_up("one λ"),
        Rule.of_many(at_least(WANTED, "value, low")),
        "tab-verdicts",
    ),
    Claim(
        "recipe-beats-hindsight",
        "Its median is at least 2 times below that of AdamW at the best λ of each task in hindsight.",
        "the question of this study",
        "≥ 2 times",
        speed_up("hindsight"),
        Rule.of_many(at_least(WANTED, "value, low")),
        "tab-verdicts",
    ),
    Claim(
        "recipe-stays",
        "At most 2 % of its grokked runs are below half of the validation pairs at any later evaluation.",
        "the question of this study",
        "≤ 2 %",
        stays(),
        Rule.of_many(at_most(0.02)),
        "tab-verdicts",
    ),
)
# Both arms are tuned alike; an accelerator that is sooner and loses runs is no accelerator of what one can rely on.
ACCELERATORS = tuple(
    Claim(
        f"{family.replace(' ', '-').lower()}-accelerates",
        f"{family} generalises stably sooner than AdamW, both tuned alike, and loses no runs ({source}).",
        source,
        "sooner",
        accelerator(family),
        Rule.of_many(all_of(above(1.0, "value, low"), at_most(LOST, "lost"))),
        "tab-verdicts",
    )
    for family, source in PUBLISHED.items()
)
CLAIMS = (*RECIPE, *ACCELERATORS)
