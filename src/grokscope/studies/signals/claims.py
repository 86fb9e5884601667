"""What is judged, by rules written before any run: what each paper says of its signal, and what is asked of all.

What was not available in public sources, and what is assumed instead, stands with each group of claims.
"""

from grokscope.studies import Claim, Estimand, Rule, Selection, Stratum, rule
from grokscope.studies.reduction import Reduction, greatest, least, mean, mean_low, median, total
from grokscope.studies.signals.catalogue import ONE_LAYER
from grokscope.studies.signals.experiments import CELLS, FAMILIES, family_of
from grokscope.studies.signals.quantities import best_early, more_than_loss
from grokscope.studies.signals.readings import read_alarm, read_circuit, read_growth

__all__ = ["CLAIMS"]

FALSE = 0.05  # share of the runs that cannot grok in which a signal may be given
NEAR = 0.03  # of concordance


def _runs(*cells: str, drawn: int | None = None) -> tuple[Stratum, ...]:
    return tuple(Stratum(name, Selection((CELLS[name].kind,), configuration=name), drawn) for name in cells)


# Nanda et al. and Chughtai et al.: losses with the key modes of the final model, as they plot them. Neither reports a
# rule for when a loss falls or rises: half of the loss of a guess is assumed. They show one run of their main setting.

LEADS = ("restricted lead", "excluded lead", "formed lead")


def _turns(names: tuple[str, str], cells: tuple[str, ...]) -> Estimand:
    """When the losses of a circuit turn, in a design of one run."""
    parts: dict[str, Reduction] = {one: median(one) for one in LEADS}
    return Estimand(
        "when restricted and excluded loss turn",
        _runs(*cells, drawn=1),
        read_circuit,
        parts,
        "restricted {restricted lead:+,.0f}, excluded {excluded lead:+,.0f}, formed {formed lead:+,.0f}",
        (LEADS, "+,.0f"),
        options={"restricted": names[0], "excluded": names[1]},
    )


OF_NANDA = _turns(("trig@final", "excluded@final"), ("nanda",))
OF_CHUGHTAI = _turns(("hidden_restricted@final", "hidden_excluded@final"), ("S5",))


def _turn(name: str, statement: str, where: str, estimand: Estimand, part: str) -> Claim:
    return Claim(name, statement, where, "a curve", estimand, Rule(rule.above(0, part)), "tab-order")


CIRCUITS = (
    _turn(
        "nanda-restricted-first",
        "Restricted loss with the final key frequencies falls before the loss on held-out pairs does.",
        "Nanda et al. 2023 (arXiv:2301.05217), §5, Figure 7",
        OF_NANDA,
        "restricted lead",
    ),
    _turn(
        "nanda-excluded-first",
        "Excluded loss rises, as the circuit forms, before the loss on held-out pairs falls.",
        "Nanda et al. 2023 (arXiv:2301.05217), §5, Figure 7",
        OF_NANDA,
        "excluded lead",
    ),
    _turn(
        "nanda-formed-first",
        "Circuit formation is over, with excluded loss at its highest, before validation accuracy is 0.95.",
        "Nanda et al. 2023 (arXiv:2301.05217), §5.2: formation ends at 9,400 epochs, accuracy is near 1 at 10,000",
        OF_NANDA,
        "formed lead",
    ),
    _turn(
        "chughtai-restricted-first",
        "On S5, restricted loss with the final key irreps falls before the loss on held-out pairs does.",
        "Chughtai et al. 2023 (arXiv:2302.03025), progress measures of the main text",
        OF_CHUGHTAI,
        "restricted lead",
    ),
    _turn(
        "chughtai-excluded-first",
        "On S5, excluded loss rises before the loss on held-out pairs falls.",
        "Chughtai et al. 2023 (arXiv:2302.03025), progress measures of the main text",
        OF_CHUGHTAI,
        "excluded lead",
    ),
)

# Events at published thresholds.


def _events(signal: str, name: str, strata: tuple[Stratum, ...], **options: object) -> Estimand:
    parts: dict[str, Reduction] = {
        "leads": total("leads"),
        "share": mean("leads"),
        "mean lead": mean("lead"),
        "mean lead, low": mean_low("lead"),
    }
    return Estimand(
        name,
        strata,
        read_alarm,
        parts,
        "{leads:.0f} of {n:.0f}, mean lead {mean lead:+,.0f}",
        (("share", "mean lead"), ",.2f"),
        options={"signal": signal, **options},
    )


ALL_LEAD = Rule(rule.more_than(1, "leads", operator="="))
TEN_SEEDS = _runs("one-layer", drawn=10)
THREE_EACH = _runs("add97", "mult97", drawn=3)
TWELVE_EACH = _runs("add97", "mult97", drawn=12)


def _entropy(site: str, signal: str) -> tuple[Claim, Claim]:
    """The abstract does not say which layer the covariance is of, so each claim is judged at two places."""
    events = _events(signal, f"falls of spectral entropy below 0.61 ({site})", TEN_SEEDS)
    return (
        Claim(
            f"{signal}-always-first",
            f"The spectral entropy of the representation ({site}) falls below 0.61 before every run groks.",
            "Truong et al. 2026 (arXiv:2604.13123), abstract: three modular tasks, ten seeds, one layer",
            "100 %",
            events,
            ALL_LEAD,
            "tab-signals",
        ),
        Claim(
            f"{signal}-lead",
            f"The spectral entropy of the representation ({site}) falls below 0.61 about 1,020 steps before grokking.",
            "Truong et al. 2026 (arXiv:2604.13123), abstract",
            "+1,020",
            events,
            Rule(rule.all_of(rule.above(0, "mean lead, low"), rule.within(0.5, 1020, "mean lead"))),
            "tab-signals",
        ),
    )


ENTROPY = (
    *_entropy("block 0's neurons", "entropy"),
    *_entropy("the residual stream", "residual-entropy"),
    Claim(
        "entropy-on-S5",
        "On S5 spectral entropy falls below another threshold before grokking.",
        "Truong et al. 2026 (arXiv:2604.13123), abstract",
        "a shifted threshold",
        _events("residual-entropy", "falls of spectral entropy", _runs("S5", drawn=10)),
        Rule(untestable="the threshold on S5 is not in any public source that was found."),
        "tab-signals",
    ),
)
ONSET = _events("commutator", "onsets of the commutator defect", THREE_EACH, grokked=0.9)
GROWTH = Estimand(
    "growth of the commutator defect",
    (*THREE_EACH, *_runs("square-sum", "cube-sum", drawn=1)),
    read_growth,
    {
        "least that groks": least("highest", "add97", "mult97"),
        "greatest that does not": greatest("highest", "square-sum", "cube-sum"),
    },
    "{least that groks:,.0f} times at least, and {greatest that does not:,.0f} at most",
    (("least that groks", "greatest that does not"), ",.0f"),
    options={"signal": "commutator"},
)
# Two of the source's four operations are trained here, with three seeds each as there, and both of its two controls.
COMMUTATORS = (
    Claim(
        "commutator-always-first",
        "The commutator defect begins to grow before every run reaches 90 % on held-out pairs.",
        "Xu 2026 (arXiv:2602.16746): four operations, three seeds",
        "12 of 12",
        ONSET,
        ALL_LEAD,
        "tab-signals",
    ),
    Claim(
        "commutator-lead",
        "The commutator defect begins to grow 600 to 1,600 steps before that, in the mean.",
        "Xu 2026 (arXiv:2602.16746): 600 to 1,600, mean 1,117",
        "+1,117",
        ONSET,
        Rule(rule.between(600, 1600, "mean lead")),
        "tab-signals",
    ),
    Claim(
        "commutator-separates",
        "The defect grows by more in every run that groks than in any that does not.",
        "Xu 2026 (arXiv:2602.16746): at least 513 times, and at most 47 times",
        "513 against 47",
        GROWTH,
        Rule(rule.falling("least that groks", "greatest that does not")),
        "tab-signals",
    ),
)
GAPS = (
    Claim(
        "gap-always-first",
        "The gap g₂₃ of the updates of the attention weights falls before every run groks.",
        "Xu 2026 (arXiv:2603.28964), abstract: six model families, with weight decay; the fall is assumed to be 4.53 "
        "times, the smallest of the six runs that grok in the author's code",
        "24 of 24",
        _events("gap", "falls of g₂₃", TWELVE_EACH),
        ALL_LEAD,
        "tab-signals",
    ),
)

# What the sources do not ask, or ask of few runs: is the signal given in runs that cannot grok?

CANNOT = tuple(name for family in FAMILIES.values() for name in family.cannot)


def _no_false_alarms(signal: str, what: str, source: str, reported: str = "not tested") -> Claim:
    alarms = Estimand(
        f"false alarms of {signal}",
        _runs(*(name for name in CANNOT if _has_threshold(signal, name))),
        read_alarm,
        {"alarms": total("alarm"), "share": mean("alarm")},
        "{alarms:.0f} of {n:.0f}",
        ("share", ".0%"),
        options={"signal": signal},
    )
    return Claim(
        f"{signal}-no-false-alarms",
        f"{what} in at most 5 % of the runs that cannot grok.",
        f"{source}; tested here",
        reported,
        alarms,
        Rule.of_many(rule.at_most(FALSE, "share")),
        "tab-signals",
        "new",
    )


def _has_threshold(signal: str, cell: str) -> bool:
    """Whether a signal is read in a cell, and has a threshold there: entropy has none on S5, an MLP no attention."""
    if signal == "entropy":
        return cell in ONE_LAYER
    if signal == "residual-entropy":
        return family_of(cell) != "S5"
    return signal != "gap" or CELLS[cell].architecture.kind == "transformer"


MLP_FALLS = "an MLP's falls without grokking: necessary, and not sufficient"
FALSE_ALARMS = (
    _no_false_alarms(
        "entropy",
        "The spectral entropy of block 0's neurons falls below 0.61",
        "Truong et al. 2026 (arXiv:2604.13123)",
        MLP_FALLS,
    ),
    _no_false_alarms(
        "residual-entropy",
        "The spectral entropy of the residual stream falls below 0.61",
        "Truong et al. 2026 (arXiv:2604.13123)",
        MLP_FALLS,
    ),
    _no_false_alarms(
        "commutator",
        "The commutator defect begins to grow",
        "Xu 2026 (arXiv:2602.16746)",
        "it grows 30 to 50 times in two operations that do not grok: no sufficient sign",
    ),
    _no_false_alarms("gap", "g₂₃ falls", "Xu 2026 (arXiv:2603.28964)"),
)
ALL_SIGNALS = (
    Claim(
        "some-signal-beats-the-loss",
        "At equal false alarms some published signal leads in more runs than the validation loss does.",
        "all six papers; asked here",
        "not compared",
        more_than_loss(),
        Rule.of_many(rule.above(0)),
        "tab-signals",
        "new",
    ),
    Claim(
        "early-information-suffices",
        "Some signal that needs no labels of held-out rows tells nearly as well which seed groks sooner as the best of "
        "those that do.",
        "asked here",
        "not compared",
        best_early(),
        Rule.of_many(rule.at_least(-NEAR)),
        "tab-signals",
        "new",
    ),
)
CLAIMS = (*CIRCUITS, *ENTROPY, *COMMUTATORS, *GAPS, *FALSE_ALARMS, *ALL_SIGNALS)
