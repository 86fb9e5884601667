"""What the study says, in plain sentences; each number is a claim's."""

from grokscope.studies.clock.doses import DEPENDENCE, NO_DEPENDENCE
from grokscope.studies.clock.experiments import STOPPED
from grokscope.studies.message import Sentence
from grokscope.studies.rule import Condition, above, all_of, at_least, at_most

__all__ = ["MESSAGE"]

NORMS = {"none": "norm-returns", "block": "final-norm-needed", "final": "final-norm-suffices", "both": "norm-removes"}
RATIOS = {model: f"{{{claim}|ratio:.1f}}" for model, claim in NORMS.items()}
FOUND = (
    f"held at 1.15 of the norm at which it groks, attention takes {RATIOS['none']} times as long from the fork on as "
    f"held at 0.9 without any LayerNorm, {RATIOS['block']} times with those of its block alone, {RATIOS['final']} "
    f"times with the final one alone and {RATIOS['both']} times with both (n = {{norm-removes|n}} of each; a least "
    "value where most runs had not grokked)."
)


def _free(model: str) -> Condition:
    """Whether the norm hardly moves when this model groks."""
    return at_most(NO_DEPENDENCE, f"{NORMS[model]}|ratio")


def _bound(model: str) -> Condition:
    """Whether it delays grokking."""
    return at_least(DEPENDENCE, f"{NORMS[model]}|ratio")


# What each outcome of four models says, the first that fits; a model between the two bounds is neither.
SETTLED = (
    (all_of(_bound("none"), _bound("block"), _free("final"), _free("both")),
     "A final LayerNorm, and no other, takes away the delay that a raised norm causes: "),
    (all_of(_bound("none"), _free("block"), _free("final"), _free("both")),
     "Any LayerNorm takes away the delay that a raised norm causes, the final one and those of the block alike: "),
    (all_of(_bound("none"), _free("block"), _bound("final")),
     "It is the LayerNorms of the block that take away the delay that a raised norm causes, and not the final one: "),
    (all_of(_bound("none"), _bound("block"), _bound("final"), _free("both")),
     "Only all LayerNorms together take away the delay that a raised norm causes: "),
    (all_of(_bound("none"), _bound("final"), _bound("both")),
     "A final LayerNorm does not take away the delay that a raised norm causes: "),
    (_free("none"),
     "Even without LayerNorm a raised norm hardly delays grokking here, and there is nothing for one to take away: "),
    (None,
     "Whether a final LayerNorm takes away the delay that a raised norm causes is a matter of degree: "),
)  # fmt: skip
MESSAGE = (
    Sentence(
        "What acts",
        tuple(NORMS.values()),
        tuple((condition, f"{said}{FOUND}") for condition, said in SETTLED),
        is_headline=True,
    ),
    Sentence(
        "What acts",
        ("exponential-mlp",),
        (
            (
                at_least(0.97, "exponential-mlp|R²"),
                "In the MLP without LayerNorm the time to grok is exponential in the held norm: "
                "α = {exponential-mlp|α:.1f}, R² = {exponential-mlp|R²:.2f}.",
            ),
            (
                None,
                "In the MLP without LayerNorm the time to grok is not exponential in the held norm: "
                "α = {exponential-mlp|α:.1f}, R² = {exponential-mlp|R²:.2f}.",
            ),
        ),
        is_headline=True,
    ),
    Sentence(
        "What acts",
        ("logits-mediate",),
        (
            (
                at_least(0.7, "logits-mediate|recovery"),
                "There the norm acts through the scale of the logits: a temperature that gives it back takes back "
                "{logits-mediate|recovery:.2f} of the delay.",
            ),
            (
                None,
                "There the norm does not act through the scale of the logits alone: a temperature that gives it back "
                "takes back {logits-mediate|recovery:.2f} of the delay.",
            ),
        ),
        is_headline=True,
    ),
    Sentence(
        "What is not specific",
        ("random-direction",),
        (
            (
                None,
                "Raised to the same norm along a random direction, the MLP groks "
                "{random-direction|ratio:.2f} times as late as rescaled.",
            ),
        ),
    ),
    Sentence(
        "What acts",
        ("frozen-both", "nodecay-both", "frozen-mlp", "nodecay-mlp"),
        (
            (
                None,
                "With the norm frozen at memorisation {frozen-both|share:.0%} of the runs of attention with LayerNorms "
                f"and {{frozen-mlp|share:.0%}} of the MLP's grok within {STOPPED['mlp']:,} steps; without decay "
                "{nodecay-both|share:.0%} and {nodecay-mlp|share:.0%} (n = {frozen-mlp|n} of each).",
            ),
        ),
    ),
    *(
        Sentence(
            "What acts",
            (f"passage-over-clock-{model}",),
            (
                (
                    above(0, f"passage-over-clock-{model}|least gain"),
                    f"In {words} the norm at memorisation tells when: out of its cell first passage is wrong by "
                    f"{{passage-over-clock-{model}|first passage:.0%}}, the same law without the norm by "
                    f"{{passage-over-clock-{model}|ηλt since memorisation:.0%}}, T = C/(ηλ) by "
                    f"{{passage-over-clock-{model}|ηλt:.0%}} and T = C/λ by "
                    f"{{passage-over-clock-{model}|λt:.0%}}.",
                ),
                (
                    None,
                    f"In {words} the norm at memorisation does not tell when: out of its cell first passage is wrong "
                    f"by {{passage-over-clock-{model}|first passage:.0%}}, the same law without the norm by "
                    f"{{passage-over-clock-{model}|ηλt since memorisation:.0%}}.",
                ),
            ),
        )
        for model, words in (("mlp", "the MLP"), ("both", "attention with LayerNorms"))
    ),
)
