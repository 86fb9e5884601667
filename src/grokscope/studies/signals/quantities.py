"""The numbers of a signal: how often and by how much it leads, how often it is wrong, and which run groks sooner.

An alarm is the first step at which a signal passes a threshold. A run that cannot grok is watched for as long as the
run of the same seed in the first cell of its family needs to grok (matched exposure), or of another seed where there
is none, so that both have the same time.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf, nan
from statistics import median
from typing import NamedTuple

import numpy as np

from grokscope.runs.records import RunRecord
from grokscope.shapes import Bool, Float
from grokscope.stats import Estimate, clustered_share, kaplan_meier
from grokscope.studies import Measured, Part, Quantity, Records, Selection, configuration
from grokscope.studies.signals.catalogue import SIGNALS, signal_named
from grokscope.studies.signals.experiments import FAMILIES
from grokscope.studies.signals.readings import published_step, published_threshold, trace
from grokscope.studies.synchronization.alarms import Trace, matched_threshold
from grokscope.studies.synchronization.readings import counted, median_lead, precursor_share
from grokscope.timeline import Lead, lead

__all__ = ["EVERY_FAMILY", "RATE", "SHARES", "alarms", "best_early", "concordance", "median_grok", "more_than_loss"]

RATE = 0.05  # of runs that cannot grok may raise a false alarm
SPLIT_FROM = 10  # such runs in each half, for thresholds to be judged on other seeds than they were chosen on
SHARES = (0.25, 0.5)  # of a cell's median grok step, at which signals are read
FEWEST_PAIRS = 3  # of a cell of which it is known which run grokked sooner
RESAMPLES = 1000
EVERY_FAMILY = tuple(FAMILIES)
BOTH = Selection(("groks", "cannot-grok"))
LOSS = "validation-loss"


def alarms(signal: str, families: tuple[str, ...] = EVERY_FAMILY) -> Quantity:
    """Leads and false alarms of a signal over families, from its published and from its matched thresholds."""
    return Quantity("alarms", BOTH, _alarms, options={"signal": signal, "families": families})


def concordance(signal: str, share: float, families: tuple[str, ...] = EVERY_FAMILY) -> Quantity:
    """How often, of two runs of a cell, the sooner to grok has the stronger signal at this share of the median."""
    options = {"signal": signal, "share": share, "families": families}
    return Quantity("within-cell concordance", BOTH, _concordance, options=options)


def median_grok(cell: str) -> Quantity:
    """The median grok step of a cell, with how many of its runs grokked."""
    return Quantity("median grok step", Selection(("groks",), configuration=cell), _median_grok)


# Alarms.


class _Family(NamedTuple):
    """The runs of one family."""

    groks: list[RunRecord]
    cannot: list[RunRecord]
    exposure: Mapping[int, int]

    def watched(self, seed: int) -> int | None:
        """The step before which a run of this seed that cannot grok is watched; None if no run of the family groks."""
        steps = [*self.exposure.values()]
        return self.exposure.get(seed, steps[seed % len(steps)]) if steps else None


class _Alarmed(NamedTuple):
    """What one threshold does in one family."""

    leads: list[Lead]
    false: list[tuple[int, bool]]


def _family(records: Records, name: str) -> _Family:
    """The runs of a family, and until which step a run that cannot grok is watched, by its seed."""
    family = FAMILIES[name]
    by_cell: dict[str, list[RunRecord]] = {}
    for run, record in records.items():
        by_cell.setdefault(configuration(run), []).append(record)
    groks, cannot = (
        [one for cell in cells for one in by_cell.get(cell, [])] for cells in (family.groks, family.cannot)
    )
    first = {one.spec.seeds.split: one.timeline.grokked for one in by_cell.get(family.groks[0], [])}
    return _Family(groks, cannot, {seed: step for seed, step in first.items() if step is not None})


def _alarms(records: Records, signal: str, families: Sequence[str]) -> Measured:
    found = {name: _family(records, name) for name in families}
    by_kind = {
        "published": [_at_published(one, signal) for one in found.values()],
        "matched": [_at_matched(one, signal) for one in found.values()],
    }
    parts: dict[str, Part] = {}
    for kind, several in by_kind.items():
        known = [one for one, _ in several if one is not None]
        leads = [one for alarmed in known for one in alarmed.leads if one.sign is not None]
        false = [one for alarmed in known for one in alarmed.false]
        parts |= {
            f"{kind} share": precursor_share(leads),
            f"{kind} lead": median_lead(leads) if leads else None,
            f"{kind} false": clustered_share([hit for _, hit in false], [seed for seed, _ in false]),
            f"{kind} runs": len(leads),
        }
    thresholds = [value for _, value in by_kind["matched"] if value is not None]
    parts["threshold"] = thresholds[0] if len(families) == 1 and thresholds else None
    runs = sum(len(one.groks) + len(one.cannot) for one in found.values())
    if not runs:
        return Measured(missing="No run of these families is there.")
    return Measured(parts, n=runs)


def _at_published(family: _Family, signal: str) -> tuple[_Alarmed | None, float | None]:
    """Leads of the source's event, and its false alarms in every run that cannot grok."""
    one = signal_named(signal)
    leads = [
        lead(run.timeline.grokked, published_step(run, one), found.steps[-1])
        for run in family.groks
        if (found := trace(run, one)) is not None and published_threshold(run, one) is not None
    ]
    false = [
        (found.seed, (step := published_step(run, one)) is not None and step < until)
        for run in family.cannot
        if (found := trace(run, one)) is not None
        and published_threshold(run, one) is not None
        and (until := family.watched(found.seed)) is not None
    ]
    return (_Alarmed(leads, false), None) if leads else (None, None)


def _at_matched(family: _Family, signal: str) -> tuple[_Alarmed | None, float | None]:
    """Leads at the most lenient threshold that so few runs that cannot grok exceed, chosen on the even seeds."""
    one = signal_named(signal)
    watched = [
        cut
        for run in family.cannot
        if (found := trace(run, one)) is not None
        and (until := family.watched(found.seed)) is not None
        and (cut := found.until(until - 1)) is not None
    ]
    chosen, judged = ([run for run in watched if run.seed % 2 == rest] for rest in (0, 1))
    if min(len(chosen), len(judged)) < SPLIT_FROM:
        chosen = judged = watched
    positives = [found for run in family.groks if (found := trace(run, one)) is not None]
    if not chosen or not positives:
        return None, None
    threshold = matched_threshold([run.peak for run in chosen], RATE)
    leads = [lead(run.grokked, run.crossing(threshold), run.steps[-1]) for run in positives]
    false = [(run.seed, run.crossing(threshold) is not None) for run in judged]
    return _Alarmed(leads, false), threshold if one.rises else -threshold


# Which run groks sooner.


def _concordance(records: Records, signal: str, share: float, families: Sequence[str]) -> Measured:
    """The mean over cells, with percentiles of a bootstrap over the runs of each."""
    tables = [
        table
        for family in families
        for cell in FAMILIES[family].groks
        if (table := _pairs([run for name, run in records.items() if configuration(name) == cell], signal, share))
    ]
    if not tables:
        return Measured(missing="No cell is there with runs of which it is known which one grokked sooner.")
    rng = np.random.default_rng(0)
    value = float(np.mean([_share_right(np.ones((1, len(known))), right, known)[0] for right, known in tables]))
    drawn = [
        _share_right(rng.multinomial(len(known), [1 / len(known)] * len(known), RESAMPLES) * 1.0, right, known)
        for right, known in tables
    ]
    low, high = np.nanquantile(np.mean(drawn, axis=0), [0.025, 0.975])
    runs = sum(len(known) for _, known in tables)
    return Measured.of(Estimate(value, float(low), float(high), runs), f"{value:.2f}", runs, cells=float(len(tables)))


def _pairs(
    runs: Sequence[RunRecord], signal: str, share: float
) -> tuple[Float[np.ndarray, "runs runs"], Bool[np.ndarray, "runs runs"]] | None:
    """Of each pair of runs of a cell: whether the signal ranks them as they grokked, and whether that is known.

    A run that did not grok comes after those that did; one that had grokked by the step of the reading is left out.
    """
    ends = [inf if run.timeline.grokked is None else float(run.timeline.grokked) for run in runs]
    middle = median(ends) if ends else inf
    if middle == inf:
        return None
    kept = [
        (end, found.values[place])
        for run, end in zip(runs, ends, strict=True)
        if end > share * middle
        and (found := trace(run, signal_named(signal))) is not None
        and (place := _last_before(found, share * middle)) is not None
    ]
    if not kept:
        return None
    end, value = np.array(kept, dtype=np.float64).T
    known = end[:, None] < end
    right = (value[:, None] > value) + 0.5 * (value[:, None] == value)
    return (np.where(known, right, 0.0), known) if known.sum() >= FEWEST_PAIRS else None


def _last_before(found: Trace, step: float) -> int | None:
    """The place of the last value at or before a step."""
    return next((place for place in reversed(range(len(found.steps))) if found.steps[place] <= step), None)


def _share_right(weights: Float[np.ndarray, "draws runs"], right: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Σ wᵢ wⱼ rightᵢⱼ / Σ wᵢ wⱼ knownᵢⱼ, where a run that is drawn several times weighs so much."""
    total = np.einsum("di,ij,dj->d", weights, known.astype(float), weights)
    return np.einsum("di,ij,dj->d", weights, right, weights) / np.where(total > 0, total, nan)


# Comparisons between signals.


def more_than_loss() -> Quantity:
    """How many published signals lead in more runs than the validation loss does, at equal false alarms."""
    names = [one.name for one in SIGNALS if one.source and not one.is_retrospective]
    members = {name: alarms(name) for name in (LOSS, *names)}
    return Quantity("signals that lead more often than the validation loss", BOTH, _more_than_loss, members=members)


def _more_than_loss(measured: Mapping[str, Measured]) -> Measured:
    """A signal leads more often if the lower end of its share is above the upper end of the validation loss's."""
    shares = {name: one.parts.get("matched share") for name, one in measured.items()}
    loss = shares.pop(LOSS)
    others = {name: one for name, one in shares.items() if isinstance(one, Estimate)}
    if not isinstance(loss, Estimate) or not others:
        return Measured(missing="The validation loss, or every other signal, was not measured.")
    better = [name for name, one in others.items() if one.low > loss.high]
    found = counted(len(better), loss.items)
    return Measured.of(found, ", ".join(better) or "none", loss.items, compared=float(len(others)))


def best_early(share: float = 0.5) -> Quantity:
    """The best within-cell concordance of signals without labels of other rows, less that of the others."""
    members = {one.name: concordance(one.name, share) for one in SIGNALS if not one.is_retrospective}
    return Quantity("concordance of tier 3 and below, less that of tier 5", BOTH, _best_early, members=members)


def _best_early(measured: Mapping[str, Measured]) -> Measured:
    def best(chosen: Iterable[str]) -> tuple[float, str]:
        return max(
            ((measured[name].number(), name) for name in chosen if not measured[name].missing), default=(nan, "")
        )

    low, high = (best(one.name for one in SIGNALS if one.name in measured and ok(one.tier)) for ok in (_early, _late))
    if not low[1] or not high[1]:
        return Measured(missing="No signal of one of the two tiers was measured.")
    runs = min(measured[name].n for _, name in (low, high))
    found = counted(low[0] - high[0], runs)
    return Measured.of(found, f"{low[1]} {low[0]:.2f}, {high[1]} {high[0]:.2f}", runs)


def _early(tier: int) -> bool:
    return tier <= 3


def _late(tier: int) -> bool:
    return tier == 5


def _median_grok(records: Records) -> Measured:
    """By Kaplan–Meier: a run that did not grok is later than its last evaluation."""
    grokked = [record.timeline.grokked for record in records.values()]
    times = [one.timeline.last if step is None else step for one, step in zip(records.values(), grokked, strict=True)]
    came = [step is not None for step in grokked]
    return Measured.of(kaplan_meier(times, came).median, n=len(records), grokked=sum(came))
