"""What is judged, by rules that were written before any run: the recipe, and each published accelerator."""

from grokscope.studies import Claim, Rule
from grokscope.studies.message import Sentence
from grokscope.studies.rule import above, all_of, any_of, at_least, at_most, below
from grokscope.studies.steering.arms import ADAMW, PUBLISHED
from grokscope.studies.steering.comparisons import BEST_DECAY, comparison, reliability, speed_up, stays
from grokscope.studies.steering.experiments import NEVER_LET_GO, RECIPE

__all__ = ["CLAIMS", "MESSAGE"]

WANTED, RELIABLE = 2.0, 0.98  # times sooner; share of runs
LOST = 0.02  # share of runs that a published accelerator may lose of AdamW's, and that may fall after grokking
GAINED = 0.05  # share of runs that letting go must save, where it is not sooner
HERE = "the question of this study"

RECIPE_CLAIMS = (
    Claim(
        "recipe-is-reliable",
        "The recipe generalises stably in at least 98 % of all runs on unseen tasks on which any arm gets half there.",
        HERE,
        "≥ 98 %",
        reliability(),
        Rule.of_many(at_least(RELIABLE)),
        "tab-verdicts",
        "new",
    ),
    Claim(
        "recipe-beats-one-decay",
        "Its median is at least 2 times below that of AdamW at one λ for all tasks, chosen on the tuning tasks.",
        HERE,
        "≥ 2 times",
        speed_up(ADAMW),
        Rule.of_many(at_least(WANTED, "value, low")),
        "tab-verdicts",
        "new",
    ),
    Claim(
        "recipe-beats-hindsight",
        "Its median is at least 2 times below that of AdamW at the best λ of each task in hindsight.",
        HERE,
        "≥ 2 times",
        speed_up(BEST_DECAY),
        Rule.of_many(at_least(WANTED, "value, low")),
        "tab-verdicts",
        "new",
    ),
    Claim(
        "recipe-stays",
        "At most 2 % of its grokked runs are below half of the validation pairs at any later evaluation.",
        HERE,
        "≤ 2 %",
        stays(),
        Rule.of_many(at_most(LOST)),
        "tab-verdicts",
        "new",
    ),
    Claim(
        "letting-go-pays",
        "Letting strong decay go pays: without it the recipe is later, or 5 points fewer of its runs are stable.",
        HERE,
        "sooner, or more reliable",
        comparison(NEVER_LET_GO, RECIPE, "final", "ablation"),
        Rule.of_many(any_of(below(1.0, "value, high"), at_least(GAINED, "lost"))),
        "tab-ablation",
        "new",
    ),
)
# Both arms are tuned alike; an accelerator that is sooner and loses runs is no accelerator of what one can rely on.
ACCELERATORS = tuple(
    Claim(
        f"{family.replace(' ', '-').lower()}-accelerates",
        f"{family} generalises stably sooner than AdamW, both tuned alike, and loses no runs ({source}).",
        source,
        "sooner",
        comparison(family, ADAMW, "final", "published"),
        Rule.of_many(all_of(above(1.0, "value, low"), at_most(LOST, "lost"))),
        "tab-verdicts",
    )
    for family, source in PUBLISHED.items()
)
CLAIMS = (*RECIPE_CLAIMS, *ACCELERATORS)

SPEED = (
    "{recipe-beats-one-decay|value:.1f} times as soon as AdamW at one λ for all tasks "
    "({recipe-beats-one-decay|tasks} tasks on which nothing was tuned), in {recipe-is-reliable|value:.1%} of "
    "{recipe-is-reliable|n} runs"
)
IN_HINDSIGHT = (
    "Against AdamW at the λ that is best for each task in hindsight the recipe is "
    "{recipe-beats-hindsight|value:.1f} times as soon ({recipe-beats-hindsight|tasks} tasks)."
)
STAYS = (
    "{recipe-stays|value:.1%} of {recipe-stays|n} grokked runs of the recipe are later below half of the "
    "validation pairs; {recipe-stays|at the end:.1%} are below 0.95 at the end of their budget."
)


def _accelerator(family: str) -> tuple[Sentence, Sentence]:
    """What is said of a published accelerator, by whether it meets its rule."""
    name = f"{family.replace(' ', '-').lower()}-accelerates"
    said = (
        f"{{{name}|value:.2f}} times as soon as AdamW, both tuned alike ({{{name}|tasks}} unseen tasks); of its runs "
        f"{{{name}|reliable:.1%}} are stable, {PUBLISHED[family]}."
    )
    meets = all_of(above(1.0, f"{name}|low"), at_most(LOST, f"{name}|lost"))
    fails = any_of(at_most(1.0, f"{name}|low"), above(LOST, f"{name}|lost"))
    return (
        Sentence("What acts", (name,), ((meets, f"{family} accelerates: it generalises stably {said}"),)),
        Sentence("What does not hold", (name,), ((fails, f"{family} is not shown to accelerate: {said}"),)),
    )


HOLDS = all_of(at_least(WANTED, "recipe-beats-one-decay|low"), at_least(RELIABLE, "recipe-is-reliable|value"))
FAILS = any_of(below(WANTED, "recipe-beats-one-decay|low"), below(RELIABLE, "recipe-is-reliable|value"))
BOTH = ("recipe-beats-one-decay", "recipe-is-reliable")
MESSAGE = (
    Sentence(
        "What holds",
        BOTH,
        ((HOLDS, f"**One recipe without tuning per task generalises stably** {SPEED}."),),
        is_headline=True,
    ),
    Sentence(
        "What does not hold",
        BOTH,
        ((FAILS, f"The aim (twice as soon, in 98 % of runs) is not reached: the recipe generalises stably {SPEED}."),),
        is_headline=True,
    ),
    Sentence(
        "What holds",
        ("recipe-beats-hindsight",),
        ((at_least(WANTED, "recipe-beats-hindsight|low"), IN_HINDSIGHT),),
    ),
    Sentence(
        "What does not hold",
        ("recipe-beats-hindsight",),
        ((below(WANTED, "recipe-beats-hindsight|low"), IN_HINDSIGHT),),
    ),
    Sentence("What holds", ("recipe-stays",), ((at_most(LOST, "recipe-stays|value"), STAYS),)),
    Sentence("What does not hold", ("recipe-stays",), ((above(LOST, "recipe-stays|value"), STAYS),)),
    Sentence(
        "What acts",
        ("letting-go-pays",),
        (
            (
                None,
                "Without letting go the recipe would be {letting-go-pays|value:.2f} times as soon, and "
                "{letting-go-pays|reliable:.1%} of {letting-go-pays|runs} runs stable.",
            ),
        ),
    ),
    *(sentence for family in PUBLISHED for sentence in _accelerator(family)),
)
