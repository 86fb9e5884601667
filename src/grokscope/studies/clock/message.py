"""What the study says, in plain sentences; each number is a claim's."""

from grokscope.studies.message import Sentence
from grokscope.studies.rule import above, all_of, at_least, at_most

__all__ = ["MESSAGE"]

FINAL = "{final-norm-suffices|ratio:.1f}"
BLOCK = "{final-norm-needed|ratio:.1f}"
BOTH = "{norm-removes|ratio:.1f}"
PLAIN = "{norm-returns|ratio:.1f}"
OVER = "over runs held at 0.9 of it"
MESSAGE = (
    Sentence(
        "What acts",
        ("norm-removes", "norm-returns", "final-norm-suffices", "final-norm-needed"),
        (
            (
                all_of(at_most(2, "final-norm-suffices|ratio"), at_least(4, "final-norm-needed|ratio")),
                "The final LayerNorm decides whether the norm delays grokking: held at 1.15 of their norm, runs grok "
                f"{FINAL} times as late {OVER} with the final LayerNorm alone and {BLOCK} times with those of the "
                f"block alone; {PLAIN} times without any and {BOTH} with both.",
            ),
            (
                None,
                "The final LayerNorm alone does not decide whether the norm delays grokking: held at 1.15 of their "
                f"norm, runs grok {FINAL} times as late {OVER} with the final LayerNorm alone and {BLOCK} times with "
                f"those of the block alone; {PLAIN} times without any and {BOTH} with both.",
            ),
        ),
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
                "and {frozen-mlp|share:.0%} of the MLP's grok within 8,000 steps; without decay "
                "{nodecay-both|share:.0%} and {nodecay-mlp|share:.0%}.",
            ),
        ),
    ),
    *(
        Sentence(
            "What holds",
            (f"passage-over-clock-{model}",),
            (
                (
                    above(0, f"passage-over-clock-{model}|least gain"),
                    "The norm at memorisation tells when: out of its cell first passage of the norm is wrong by "
                    f"{{passage-over-clock-{model}|first passage:.0%}}, the same law without the norm by "
                    f"{{passage-over-clock-{model}|ηλt since memorisation:.0%}}, T = C/(ηλ) by "
                    f"{{passage-over-clock-{model}|ηλt:.0%}} and T = C/λ by "
                    f"{{passage-over-clock-{model}|λt:.0%}}: {words}.",
                ),
                (
                    None,
                    "The norm at memorisation does not tell when: out of its cell first passage of the norm is wrong "
                    f"by {{passage-over-clock-{model}|first passage:.0%}}, the same law without the norm by "
                    f"{{passage-over-clock-{model}|ηλt since memorisation:.0%}}: {words}.",
                ),
            ),
        )
        for model, words in (("mlp", "the MLP"), ("both", "attention with LayerNorms"))
    ),
)
