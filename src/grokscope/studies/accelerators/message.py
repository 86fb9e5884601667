"""What the study says first, with the numbers of its claims; which wording is used is decided by the same numbers."""

from grokscope.studies.message import Sentence
from grokscope.studies.rule import above, all_of, at_least, below

__all__ = ["MESSAGE"]

FACTOR = (
    "In (nearly) its authors' setting Grokfast groks {grokfast-factor|ratio:.1f} times sooner than Adam without weight "
    "decay (n = {grokfast-factor|n}; the paper has 43.84, from one run of each)"
)
FAIR = (
    "AdamW at the better of λ = 1 and λ = 3, which the paper does not compare with (stable generalisation, ratio "
    "{grokfast-beats-decay|ratio:.2f})."
)
MLP = (
    "Of MLPs without weight decay {orthogonal-mlp|orthogonal:.0%} generalise within 500 epochs with ⊥AdamW and "
    "{orthogonal-mlp|plain:.0%} with AdamW (n = {orthogonal-mlp|n})"
)
MESSAGE = (
    Sentence(
        "What acts",
        ("grokfast-factor", "grokfast-beats-decay"),
        (
            (above(1, "grokfast-beats-decay|ratio"), f"{FACTOR}, and is sooner than {FAIR}"),
            (None, f"{FACTOR}, but is not sooner than {FAIR}"),
        ),
        is_headline=True,
    ),
    Sentence(
        "What acts",
        ("grokfast-beyond-its-decay",),
        (
            (
                None,
                "With the same decay, Grokfast's filter alone makes Adam grok {grokfast-beyond-its-decay|ratio:.1f} "
                "times sooner (n = {grokfast-beyond-its-decay|n}).",
            ),
        ),
    ),
    Sentence(
        "What acts",
        ("orthogonal-mlp", "orthogonal-beats-decay"),
        (
            (
                above(1, "orthogonal-beats-decay|ratio"),
                f"{MLP}; it is sooner than AdamW at a well-chosen decay (ratio {{orthogonal-beats-decay|ratio:.2f}}).",
            ),
            (
                None,
                f"{MLP}; it is not sooner than AdamW at a well-chosen decay (ratio "
                "{orthogonal-beats-decay|ratio:.2f}).",
            ),
        ),
        is_headline=True,
    ),
    Sentence(
        "What acts",
        ("stablemax-groks",),
        (
            (
                all_of(at_least(0.5, "stablemax-groks|stablemax"), below(0.5, "stablemax-groks|softmax")),
                "In float32 and without decay {stablemax-groks|stablemax:.0%} of MLPs grok with StableMax within "
                "80,000 steps, and {stablemax-groks|softmax:.0%} with softmax within 20,000 (n = {stablemax-groks|n}).",
            ),
            (
                None,
                "StableMax does not make the difference in float32 that its paper reports: "
                "{stablemax-groks|stablemax:.0%} of MLPs without decay grok with it within 80,000 steps, and "
                "{stablemax-groks|softmax:.0%} with softmax within 20,000 (n = {stablemax-groks|n}).",
            ),
        ),
    ),
    Sentence(
        "What acts",
        ("muon-factor", "muon-beats-decay"),
        (
            (
                None,
                "Over three tasks and two softmaxes Muon groks in {muon-factor|own:.0f} epochs in the mean and AdamW "
                "in {muon-factor|baseline:.0f} (n = {muon-factor|n}; the paper has 103 and 153); against the better of "
                "λ = 1 and λ = 3 it is stable {muon-beats-decay|ratio:.2f} times as soon.",
            ),
        ),
        is_headline=True,
    ),
)
