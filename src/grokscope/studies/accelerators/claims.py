"""Claims of the three papers, and the fair comparisons that they leave out; rules written before any run."""

from grokscope.studies import Claim, Rule
from grokscope.studies.accelerators.comparisons import (
    epochs,
    half_on_a_log_scale,
    ratio,
    shares,
    shown_as,
    sooner_than_decay,
    step,
)
from grokscope.studies.accelerators.delay import delay
from grokscope.studies.accelerators.experiments import SHARED
from grokscope.studies.accelerators.reported import (
    ADAM_STEPS,
    ADAMW_EPOCHS,
    GROKFAST_FACTOR,
    GROKFAST_STEPS,
    MUON_EPOCHS,
    MUON_FACTOR,
    ORTHOGONAL_EPOCHS,
    WINDOW_FACTOR,
)
from grokscope.studies.accelerators.settings import MUON_TASKS
from grokscope.studies.rule import above, all_of, at_least, at_most, below, more_than, within
from grokscope.studies.steering.arms import ADAMW
from grokscope.studies.steering.comparisons import comparison

__all__ = ["CLAIMS"]

NEAR = 0.5  # of a reported number of steps or epochs
MOST = 0.5  # share of runs that counts as most of them
TOGETHER = 2.0  # times the steps to memorisation: a run that groks by then did not wait
LEE, PRIETO, TVEIT = ("Lee et al. 2024, ", "Prieto et al. 2025, ", "Tveit et al. 2025, ")
TABLE, README = "tab-accelerators", LEE + "table of the public code"
MLP, TRANSFORMER = "⊥Grad, MLP", "⊥Grad, transformer"
GROKFAST_DECAYS, MLP_DECAYS = ("AdamW, λ = 1", "AdamW, λ = 3"), ("AdamW, λ = 0.3", "AdamW, λ = 1")

GROKFAST = (
    Claim(
        "adam-steps",
        "Adam without decay reaches 95 % validation accuracy on multiplication mod 97 after 39,890 steps.",
        README,
        f"{ADAM_STEPS:,}",
        step("Grokfast", "Adam", "grok"),
        Rule(within(NEAR, of=ADAM_STEPS, part="steps")),
        TABLE,
    ),
    Claim(
        "grokfast-steps",
        "Grokfast reaches it after 910 steps.",
        README,
        f"{GROKFAST_STEPS:,}",
        step("Grokfast", "Grokfast", "grok"),
        Rule(within(NEAR, of=GROKFAST_STEPS, part="steps")),
        TABLE,
    ),
    Claim(
        "grokfast-factor",
        "Grokfast is 43.84 times sooner than Adam without decay.",
        README,
        f"{GROKFAST_FACTOR} times",
        ratio("Grokfast", "Grokfast", "Adam", "grok", drawn=1),
        Rule(at_least(GROKFAST_FACTOR / 2, "ratio")),
        TABLE,
    ),
    Claim(
        "grokfast-window-factor",
        "With the mean of the last 100 gradients it is 50.49 times sooner.",
        LEE + "abstract and table of the public code",
        f"{WINDOW_FACTOR} times",
        ratio("Grokfast", "Grokfast, window", "Adam", "grok", drawn=1),
        Rule(at_least(WINDOW_FACTOR / 2, "ratio")),
        TABLE,
    ),
    Claim(
        "grokfast-beyond-its-decay",
        "Grokfast is at least twice as soon as Adam with the same decay and without the filter.",
        "asked here",
        "—",
        ratio("Grokfast", "Grokfast", "Adam, decay alone", "grok"),
        Rule.of_many(at_least(2, "ratio")),
        TABLE,
        origin="new",
    ),
    Claim(
        "grokfast-beats-decay",
        "Grokfast generalises stably sooner than AdamW at the better of two strong decays.",
        "asked here",
        "—",
        sooner_than_decay(("Grokfast",), "Grokfast", GROKFAST_DECAYS),
        Rule.of_many(above(1, "ratio")),
        TABLE,
        origin="new",
    ),
)
ORTHOGONAL = (
    Claim(
        "orthogonal-mlp",
        "An MLP with ⊥AdamW and no decay generalises within 500 epochs; with AdamW and no decay it does not.",
        PRIETO + "Figure 6 (b)",
        f"within {ORTHOGONAL_EPOCHS} epochs",
        shares(MLP, {"orthogonal": "⊥AdamW", "plain": "AdamW"}, until=ORTHOGONAL_EPOCHS),
        Rule(all_of(at_least(MOST, "orthogonal"), below(MOST, "plain"))),
        TABLE,
    ),
    Claim(
        "orthogonal-without-delay",
        "With ⊥AdamW an MLP generalises without delay: within twice the steps that it takes to memorise.",
        PRIETO + "§1, Figure 1 (a)",
        "no delay",
        delay(MLP, "⊥AdamW"),
        Rule(at_most(TOGETHER, "times")),
        TABLE,
    ),
    Claim(
        "orthogonal-transformer",
        "A one-layer transformer with ⊥AdamW learns subtraction sooner than with AdamW at λ = 1.5.",
        PRIETO + "Figure 6 (a)",
        "sooner",
        ratio(TRANSFORMER, "⊥AdamW", "AdamW, λ = 1.5", "grok", drawn=1),
        Rule(above(1, "ratio")),
        TABLE,
    ),
    Claim(
        "stablemax-groks",
        "In float32 and without decay an MLP groks with StableMax, and not with softmax.",
        PRIETO + "§3.3, Figures 1 and 4",
        "groks",
        shares("StableMax", {"stablemax": "StableMax", "softmax": "cross-entropy"}),
        Rule(all_of(at_least(MOST, "stablemax"), below(MOST, "softmax"))),
        TABLE,
    ),
    Claim(
        "orthogonal-beats-decay",
        "⊥AdamW makes an MLP generalise stably sooner than AdamW at the better of two strong decays.",
        "asked here",
        "—",
        sooner_than_decay((MLP,), "⊥AdamW", MLP_DECAYS),
        Rule.of_many(above(1, "ratio")),
        TABLE,
        origin="new",
    ),
)
_SOFTMAXES = ("softmax", "StableMax")
_AS_OFTEN = more_than(1, "own groks", of="baseline groks", operator="≥")  # else budgets would speak for the accelerator
_EPOCHS = epochs(*(tuple(f"{optimizer}, {one}" for one in _SOFTMAXES) for optimizer in ("Muon", "AdamW")))
_MUON_SETTINGS = tuple(f"Muon, {task.replace('_', ' ')}" for task in MUON_TASKS)
MUON = (
    Claim(
        "muon-factor",
        "Muon's mean epoch of grokking is 1.49 times sooner than AdamW's, over tasks and softmaxes.",
        TVEIT + "abstract, Figure 5",
        f"{ADAMW_EPOCHS} to {MUON_EPOCHS} epochs",
        _EPOCHS,
        Rule.of_many(all_of(at_least(half_on_a_log_scale(MUON_FACTOR), "ratio"), _AS_OFTEN)),
        TABLE,
    ),
    Claim(
        "muon-epochs",
        "The mean epochs of grokking are 153.09 with AdamW and 102.89 with Muon.",
        TVEIT + "abstract, Figure 5",
        f"{ADAMW_EPOCHS} and {MUON_EPOCHS}",
        shown_as(_EPOCHS, "own", ".1f"),
        Rule.of_many(all_of(within(NEAR, of=ADAMW_EPOCHS, part="baseline"), within(NEAR, of=MUON_EPOCHS, part="own"))),
        TABLE,
    ),
    Claim(
        "muon-is-tighter",
        "Epochs of grokking spread less with Muon than with AdamW.",
        TVEIT + "Figure 4",
        "tighter",
        shown_as(_EPOCHS, "spread ratio", ".2f"),
        Rule.of_many(all_of(below(1, "spread ratio"), _AS_OFTEN)),
        TABLE,
    ),
    Claim(
        "muon-beats-decay",
        "With softmax Muon at λ = 1 generalises stably sooner than AdamW at the better of λ = 1 and λ = 3.",
        "asked here",
        "—",
        sooner_than_decay(_MUON_SETTINGS, "Muon, softmax", ("AdamW, softmax", "AdamW, λ = 3")),
        Rule.of_many(above(1, "ratio")),
        TABLE,
        origin="new",
    ),
)
# Tuned alike with AdamW on two tasks and run on eight others, by the steering study: the claim there is that the ratio
# is above 1; here it is that the published factor carries over.
OURS = (
    Claim(
        "grokfast-carries-over",
        "In our setting, both tuned alike, Grokfast reaches at least half of its published factor on a log scale.",
        "asked here",
        f"{GROKFAST_FACTOR} times in the authors' setting",
        comparison("Grokfast", ADAMW, SHARED),
        Rule.of_many(at_least(half_on_a_log_scale(GROKFAST_FACTOR))),
        "tab-carried-over",
        origin="new",
    ),
    Claim(
        "orthogonal-carries-over",
        "In our setting, both tuned alike, ⊥Grad generalises stably sooner than AdamW.",
        "asked here",
        "no factor",
        comparison("orthogonal gradient", ADAMW, SHARED),
        Rule.of_many(above(1, "value, low")),
        "tab-carried-over",
        origin="new",
    ),
    Claim(
        "muon-carries-over",
        "In our setting, both tuned alike, Muon reaches at least half of its published factor on a log scale.",
        "asked here",
        f"{MUON_FACTOR:.2f} times in the authors' setting",
        comparison("Muon", ADAMW, SHARED),
        Rule.of_many(at_least(half_on_a_log_scale(MUON_FACTOR))),
        "tab-carried-over",
        origin="new",
    ),
)
CLAIMS = (*GROKFAST, *ORTHOGONAL, *MUON, *OURS)
