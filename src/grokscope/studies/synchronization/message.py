"""What the study says first: sentences that need no knowledge of the paper, with the numbers of its claims."""

from grokscope.studies.message import Sentence
from grokscope.studies.rule import above, all_of, at_least, at_most, below, between, every

__all__ = ["MESSAGE"]

FSD = "FSD, which measures how far a layer's neurons agree on one Fourier frequency,"
LEADS = (
    f"{FSD} passes its threshold before a network groks modular addition in {{lead-signs|share first:.0%}} of "
    "{lead-signs|n} runs evaluated every 500 steps, as in the paper, which has nine of nine; evaluated every 100 "
    "steps, where fewer ties are left, in {lead-share-by-prime|share:.0%}."
)
LAW = (
    "The time from raising λ to grokking falls as λ^−α, with α = {law-exponent|α (p = 53):.2f} mod 53, "
    "{law-exponent|α (p = 97):.2f} mod 97 and {law-exponent|α (p = 131):.2f} mod 131; the paper has 1 "
    "({law-exponent|time (p = 97, λ = 1):n} seeds mod 97; mod 53 and 131, as in the paper, "
    "{law-exponent|time (p = 53, λ = 1):n} and {law-exponent|time (p = 131, λ = 1):n} data orders of one seed)."
)
AT_ONCE = ("add_mod97", "add_mod113", "add_mod131")
NORMS_DIFFER = all_of(
    every(below(0.9), *(f"threshold-every-prime|trend (p = {prime})" for prime in (53, 97, 131))),
    above(500, "threshold-first-passage|waits add_mod53"),
)
NO_THRESHOLD = (
    "**No fixed weight norm triggers grokking.** At λ = 5 it happens at "
    "{threshold-every-prime|trend (p = 53):.2f} of the norm at λ = 1 mod 53, "
    "{threshold-every-prime|trend (p = 97):.2f} mod 97 and {threshold-every-prime|trend (p = 131):.2f} mod 131 "
    "(n = {threshold-every-prime|n}). In the median, runs mod 53 have had the norm at which they grok for "
    "{threshold-first-passage|waits add_mod53:,.0f} steps before they do, and runs mod 71 for "
    "{threshold-first-passage|waits add_mod71:,.0f}"
)
LED = (
    "mod 53, 71, 97, 113 and 131 runs lose {leads-where-primes-do-nothing|lost add_mod53:.0f}, "
    "{leads-where-primes-do-nothing|lost add_mod71:.0f}, {leads-where-primes-do-nothing|lost add_mod97:.0f}, "
    "{leads-where-primes-do-nothing|lost add_mod113:.0f} and {leads-where-primes-do-nothing|lost add_mod131:.0f} "
    "points of accuracy without it, and FSD leads {leads-where-primes-do-nothing|led add_mod53:.0%}, "
    "{leads-where-primes-do-nothing|led add_mod71:.0%}, {leads-where-primes-do-nothing|led add_mod97:.0%}, "
    "{leads-where-primes-do-nothing|led add_mod113:.0%} and {leads-where-primes-do-nothing|led add_mod131:.0%} of them"
)
NORM_RUNS = "{threshold-first-passage|waits add_mod53:n} runs of each"
MESSAGE = (
    Sentence(
        "What holds",
        ("fork-order", "fork-10-fails"),
        (
            (
                at_least(0.3, "fork-order|share that falls"),
                "**More weight decay makes a network grok sooner, up to a limit.** Of branches of one run, "
                "evaluated every 500 steps, those with λ = 1, 2 and 3 grok one strictly after the other in "
                "{fork-order|share that falls:.0%} of {fork-order|n} runs; at λ = 10, "
                "{fork-10-fails|never (λ = 10):.0%} never grok.",
            ),
        ),
    ),
    Sentence(
        "What holds",
        ("ablation-order", "block-0-not-load-bearing"),
        (
            (
                at_least(0.5, "ablation-order|in order"),
                "Just after grokking the answer needs the attention of the second block most and the MLP of the first "
                "least, in {ablation-order|in order:.0%} of {ablation-order|n} runs mod 97; without that MLP, whose "
                "neurons FSD reads, the median run loses {block-0-not-load-bearing|median mlp0:.0f} points of "
                "accuracy.",
            ),
        ),
    ),
    Sentence(
        "What holds",
        ("table-5-norms", "memorised-by-1000"),
        (
            (
                all_of(
                    at_most(0.25, "table-5-norms|norms off by of all"),
                    at_most(1500, "memorised-by-1000|memorised of all"),
                ),
                "The set-up is the paper's as far as it can be told: the weight norms of the median run are within "
                "{table-5-norms|norms off by of all:.0%} of those reported at nine steps, and it has memorised its "
                "training pairs by step {memorised-by-1000|memorised of all:,.0f} (n = {table-5-norms|n}).",
            ),
        ),
    ),
    Sentence(
        "What does not hold",
        ("lead-signs", "lead-share-by-prime"),
        (
            (
                all_of(between(0.3, 0.7, "lead-signs|share first"), between(0.3, 0.7, "lead-share-by-prime|share")),
                f"**FSD is no reliable early sign.** {LEADS}",
            ),
            (None, LEADS),
        ),
        is_headline=True,
    ),
    Sentence(
        "What does not hold",
        ("crossing-says-when", "lead-beyond-chance"),
        (
            (
                all_of(below(0.5, "crossing-says-when|correlation"), below(0.1, "lead-beyond-chance|beyond chance")),
                "When FSD passes its threshold says little about when its run groks: within a prime the rank "
                "correlation is {crossing-says-when|correlation:.2f}, and FSD comes before its own run's grokking "
                "{lead-beyond-chance|beyond chance:+.1%} more often than before another run's (n = "
                "{crossing-says-when|n}).",
            ),
        ),
    ),
    Sentence(
        "What does not hold",
        ("rank-at-500", "rank-collapse"),
        (
            (
                all_of(above(8, "rank-at-500|rank at 500 of all"), below(0.5, "rank-collapse|falls to 1 of all")),
                "Neurons do not settle on single frequencies before grokking: at step 500 the median neuron needs "
                "{rank-at-500|rank at 500 of all:.0f} frequencies where the paper has 6, and this number falls to 1 "
                "before grokking in {rank-collapse|falls to 1 of all:.0%} of {rank-collapse|n} runs mod 97.",
            ),
        ),
    ),
    Sentence(
        "What does not hold",
        ("threshold-every-prime", "threshold-first-passage"),
        (
            (
                all_of(
                    NORMS_DIFFER, every(at_most(100), *(f"threshold-first-passage|waits {task}" for task in AT_ONCE))
                ),
                f"{NO_THRESHOLD}; runs mod 97, 113 and 131 reach it only then ({NORM_RUNS}).",
            ),
            (
                NORMS_DIFFER,
                f"{NO_THRESHOLD}; mod 97, 113 and 131 it is {{threshold-first-passage|waits add_mod97:,.0f}}, "
                "{threshold-first-passage|waits add_mod113:,.0f} and {threshold-first-passage|waits add_mod131:,.0f} "
                f"({NORM_RUNS}).",
            ),
        ),
        is_headline=True,
    ),
    Sentence(
        "What is not specific",
        ("s5-leads", "s5-never-groks"),
        (
            (
                above(0.5, "s5-never-groks|share"),
                "**On the group S5 the signal comes with and without grokking.** Read over irreps, it passes its "
                "threshold before grokking in {s5-leads|share first:.0%} of {s5-leads|share first:n} runs on 70 % of "
                "the pairs, and also in {s5-never-groks|share:.0%} of the {s5-never-groks|share:n} of "
                "{s5-never-groks|n} runs on 30 % that had not grokked when training ended.",
            ),
        ),
        is_headline=True,
    ),
    Sentence(
        "What is not specific",
        ("s5-leads-too-early",),
        (
            (
                above(0.5, "s5-leads-too-early|share"),
                "Where it leads on S5 it comes too early to be about generalising: in {s5-leads-too-early|share:.0%} "
                "of these {s5-leads-too-early|share:n} runs before even the training pairs are memorised.",
            ),
        ),
    ),
    Sentence(
        "What is not specific",
        ("leads-where-primes-do-nothing", "leads-where-nothing-is-done"),
        (
            (
                all_of(
                    at_most(-0.85, "leads-where-primes-do-nothing|over primes"),
                    above(-0.3, "leads-where-nothing-is-done|lost and led"),
                ),
                f"FSD leads most at the primes whose answers need the layer that it reads least: {LED}. Of runs of one "
                "prime that cannot be said: the rank correlation is {leads-where-nothing-is-done|lost and led:.2f}.",
            ),
            (
                at_most(-0.85, "leads-where-primes-do-nothing|over primes"),
                "FSD leads most at the primes, and in the runs of one prime, whose answers need the layer that it "
                f"reads least: {LED}; of runs of one prime the rank correlation is "
                "{leads-where-nothing-is-done|lost and led:.2f}.",
            ),
        ),
    ),
    Sentence(
        "What is not specific",
        ("no-false-alarms",),
        (
            (
                above(0.05, "no-false-alarms|share"),
                "With shuffled labels, where nothing can be generalised, FSD still passes its threshold in "
                "{no-false-alarms|share:.0%} of {no-false-alarms|n} runs.",
            ),
        ),
    ),
    Sentence(
        "What is not specific",
        ("untrained-not-significant",),
        (
            (
                above(0.5, "untrained-not-significant|share"),
                "The significance test of FSD takes neurons for independent, and calls "
                "{untrained-not-significant|share:.0%} of {untrained-not-significant|n} networks significant before "
                "their first training step.",
            ),
        ),
    ),
    Sentence(
        "What acts",
        ("law-exponent",),
        (
            (
                every(between(0.9, 1.1), *(f"law-exponent|α (p = {prime})" for prime in ("53", "97", "131"))),
                f"**Weight decay sets the pace, as 1/λ.** {LAW}",
            ),
            (
                every(above(0), *(f"law-exponent|α (p = {prime})" for prime in ("53", "97", "131"))),
                f"**Weight decay sets the pace, but not always as 1/λ.** {LAW}",
            ),
        ),
        is_headline=True,
    ),
    Sentence(
        "What acts",
        ("formation-independent",),
        (
            (
                above(2, "formation-independent|largest over smallest"),
                "**Weight decay hastens the forming of the circuit too,** and not only what follows: the steps until "
                "the median neuron needs ten frequencies or fewer differ by a factor of "
                "{formation-independent|largest over smallest:.1f} between λ = 1 and 5 "
                "({formation-independent|n} runs mod 97); the paper's two phases need them to be the same.",
            ),
        ),
        is_headline=True,
    ),
    Sentence(
        "What acts",
        ("accelerator-saves", "accelerator-beats-random", "early-triggers-faster"),
        (
            (
                all_of(below(0.3, "accelerator-saves|saves fsd_x3"), above(0.3, "early-triggers-faster|saves mem_x3")),
                "Raising λ to 3 when FSD passes its threshold saves {accelerator-saves|saves fsd_x3:.0%} of the steps "
                "to grokking, where the paper has 36 to 43 %, and {accelerator-beats-random|saves fsd_x3:.0%} against "
                "a random moment; raising it as soon as the training set is memorised saves "
                "{early-triggers-faster|saves mem_x3:.0%} against raising it when FSD passes (n = "
                "{accelerator-saves|n} seeds).",
            ),
        ),
    ),
    Sentence(
        "What does not hold",
        ("grokked-falls-apart", "grokked-stays-grokked"),
        (
            (
                above(0.5, "grokked-falls-apart|falls apart"),
                "**Grokking is not stable at these settings.** {grokked-falls-apart|falls apart:.0%} of "
                "{grokked-falls-apart|n} runs fall below a validation accuracy of one half again by step 15,000, and "
                "{grokked-stays-grokked|stays:.0%} stay at 95 % for the next 2,000 steps.",
            ),
        ),
        is_headline=True,
    ),
    Sentence(
        "What is open",
        ("set-ups-rescue",),
        (
            (
                at_least(0.8, "set-ups-rescue|warm-up"),
                "With warm-up, clipping, dropout or decay of the matrices alone FSD came first in "
                "{set-ups-rescue|warm-up:.0%}, {set-ups-rescue|clipping:.0%}, {set-ups-rescue|dropout:.0%} and "
                "{set-ups-rescue|decay of matrices alone:.0%} of the runs ({set-ups-rescue|n} in all): with so few "
                "this may be chance, or the set-up of the paper.",
            ),
        ),
    ),
)
