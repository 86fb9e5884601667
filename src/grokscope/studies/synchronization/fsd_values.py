"""§5.1 and §4: the values of FSD itself, when it crosses, and whether its test of significance tells anything."""

from collections.abc import Mapping

import numpy as np

from grokscope.runs.records import RunRecord
from grokscope.specs import ReadingSpec
from grokscope.stats import correlation, known, mean_known
from grokscope.stats.multinomial import critical_peak
from grokscope.studies import Claim, Estimand, Rule, Stratum, rule
from grokscope.studies.reduction import mean, total
from grokscope.studies.synchronization import readings
from grokscope.studies.synchronization.designs import NINE, ONE_97, as_flag, one_run_of, step_or_inf
from grokscope.studies.synchronization.readings import CADENCE

__all__ = ["CLAIMS"]

LOW, HIGH = 0.49, 0.78  # §5.1: the reported correlations


def _read_fsd(record: RunRecord, step: int) -> Mapping[str, float]:
    """FSD at a step, when it crosses, its mean after grokking, and its correlation with validation accuracy."""
    if not known(record.evaluations.get("fsd", [])):
        return {}
    rows = zip(record.evaluations["fsd"], record.evaluations["validation_accuracy"], strict=False)
    pairs = np.array([(x, y) for x, y in rows if x == x and y == y]).reshape(-1, 2)
    crossed = record.timeline.sync.step
    return {
        "at step": record.at(step, "fsd"),
        "crossing": step_or_inf(crossed),
        "after": mean_known(readings.later_values(record, "fsd")),
        "correlation": (found := correlation(pairs[:, 0], pairs[:, 1]).value),
        "correlation inside": as_flag(LOW <= found <= HIGH),
    }


def _read_fsd_2(record: RunRecord, threshold: float) -> Mapping[str, float]:
    """Whether FSD_2 crosses at a checkpoint before the first grokked one."""
    if not known(record.at_checkpoints("fsd_2")):
        return {}
    levels = {"fsd_2": threshold, "validation_accuracy": ReadingSpec().grokked}
    step, grok = (record.first_checkpoint(*level) for level in levels.items())
    return {"leads": as_flag(grok is not None and step is not None and step < grok)}


def _read_significance(record: RunRecord, neurons: int, modes: int) -> Mapping[str, float]:
    """Whether FSD is significant before the first step by Algorithm 1: against so many independent uniform votes."""
    fsd, chance = record.at(0, "fsd"), 1 / modes
    if fsd != fsd:
        return {}
    peak = round((fsd * (1 - chance) + chance) * neurons)
    return {"significant": as_flag(peak >= critical_peak(neurons, (chance,) * modes))}


def _fsd(name: str, strata: tuple[Stratum, ...], text: str, effect: tuple[str | tuple[str, ...], str]) -> Estimand:
    parts = {name: mean(name) for name in ("at step", "crossing", "after", "correlation")}
    return Estimand(name, strata, _read_fsd, parts, text, effect, cadence=CADENCE, options={"step": 1000})


CLAIMS = (
    Claim(
        "fsd-at-1000",
        "In addition mod 97 FSD is 0.80 and more at step 1,000 (0.84 reported): the circuit is complete there.",
        "§5.1, §5.3, Table 4",
        "0.84",
        _fsd("FSD at step 1,000", ONE_97, "{at step:.2f}", ("at step", ".2f")),
        Rule(rule.at_least(0.80, "at step")),
        "tab-cross",
    ),
    Claim(
        "sync-at-1500",
        "In addition mod 97 FSD first crosses 0.80 at step 1,500, give or take one evaluation of 500 steps.",
        "§5.1, Table 2",
        "1,500",
        _fsd("crossing of FSD", ONE_97, "{crossing:,.0f}", ("crossing", ",.0f")),
        Rule(rule.between(1000, 2000, "crossing")),
        "tab-cross",
    ),
    Claim(
        "sync-at-2500",
        "In addition mod 97 FSD first crosses 0.80 at step 2,500, give or take one evaluation of 500 steps.",
        "§5.7, Table 8",
        "2,500",
        _fsd("crossing of FSD", ONE_97, "{crossing:,.0f}", ("crossing", ",.0f")),
        Rule(rule.between(2000, 3000, "crossing")),
        "tab-arch",
    ),
    Claim(
        "fsd-after",
        "After grokking FSD is 0.92 and more in the mean (0.97 reported).",
        "§5.1",
        "0.97",
        _fsd("mean FSD after grokking", ONE_97, "{after:.2f}", ("after", ".2f")),
        Rule(rule.at_least(0.92, "after")),
        "tab-cross",
    ),
    Claim(
        "fsd-correlation",
        "FSD and validation accuracy correlate with 0.49 to 0.78 in every one of nine runs.",
        "§5.1",
        "0.49 to 0.78 in 9 of 9",
        Estimand(
            "correlations inside [0.49, 0.78]",
            NINE,
            _read_fsd,
            {"inside": total("correlation inside"), "mean correlation": mean("correlation")},
            "{inside:.0f} of {n:.0f} inside, mean {mean correlation:.2f}",
            ("mean correlation", ".2f"),
            cadence=CADENCE,
            options={"step": 1000},
        ),
        Rule(rule.more_than(1, "inside", operator="=")),
        "tab-cross",
    ),
    Claim(
        "fsd-2-at-113",
        "At p = 113 FSD_2, which counts each neuron's two strongest frequencies, crosses before grokking too.",
        "§4, Definition 2; §5.4",
        "FSD_2 leads",
        Estimand(
            "FSD_2 ≥ 0.80 before grokking",
            one_run_of("add_mod113"),
            _read_fsd_2,
            {"leading": total("leads"), "share": mean("leads")},
            "{leading:.0f} of {n:.0f} lead",
            ("share", ".0%"),
            cadence=CADENCE,
            options={"threshold": 0.80},
        ),
        Rule(rule.more_than(1, "leading", operator="=")),
        "tab-cross",
    ),
    Claim(
        "untrained-not-significant",
        "FSD's significance test, at 0.05, does not call a network significant that has learnt nothing.",
        "§4, Algorithm 1",
        "significance at 0.05",
        Estimand(
            "significance of FSD before the first step",
            ONE_97,
            _read_significance,
            {"significant": total("significant"), "share": mean("significant")},
            "{significant:.0f} of {n:.0f} untrained networks are significant",
            ("share", ".0%"),
            options={"neurons": 512, "modes": 48},
        ),
        Rule(rule.equals(0, "significant")),
        "tab-cross",
    ),
)
