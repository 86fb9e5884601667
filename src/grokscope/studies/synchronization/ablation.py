"""§5.5 and §8: which components the answer needs (Table 7)."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import nan
from typing import Any

import numpy as np

from grokscope.runs.records import RunRecord
from grokscope.stats import known
from grokscope.studies import (
    Claim,
    Estimand,
    Evidence,
    Item,
    Measured,
    Part,
    Quantity,
    Records,
    Rule,
    Selection,
    Stratum,
    cell,
    rule,
)
from grokscope.studies.reduction import mean, median, rank_correlation, reduce_all, total
from grokscope.studies.synchronization import readings
from grokscope.studies.synchronization.designs import EVERY_ADDITION, NINE, ONE_97, as_flag
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.tasks import named_task
from grokscope.view.table import Column, Table, not_measured, not_trained, text

__all__ = ["CLAIMS", "TABLES"]

RUN, RUNS = readings.one_run("add_mod97_s42"), readings.all_seeds("add_mod97")
COMPONENTS = {
    "mlp0": "Zero block 0 MLP",
    "mlp1": "Zero block 1 MLP",
    "attn0": "Zero block 0 attention",
    "attn1": "Zero block 1 attention",
}


def _drops(records: Records, close: float) -> Measured:
    """Points of accuracy that zeroing each component costs, at the first checkpoint at or after grokking.

    Of one run its own drops, of many their medians; `close` is the difference up to which one agrees with the paper's.
    """
    found = [
        {name: 100 * readings.after_grokking(record, f"drop_{name}_zero") for name in COMPONENTS}
        for record in records.values()
    ]
    whole = [drops for drops in found if len(known(drops.values())) == len(COMPONENTS)]
    parts: dict[str, Part] = {
        name: found[0][name] if len(found) == 1 else readings.median_value(drops[name] for drops in found)
        for name in COMPONENTS
    }
    measured = Measured(parts, n=len(whole))
    if not whole or len(whole) < len(readings.grokked_runs(records.values())):
        return replace(
            measured, missing=Measured.lacking(len(whole), len(found), "grokked runs with ablations").missing
        )
    values = {name: measured.number(name) for name in COMPONENTS}
    first = [max(drops, key=drops.__getitem__) == "attn1" for drops in whole]
    last = [min(drops, key=drops.__getitem__) == "mlp0" for drops in whole]
    reported = REPORTED["tab:ablation"]
    counts = {
        "runs in which attn1 costs most": sum(first),
        "runs in which mlp0 costs least": sum(last),
        "runs with both": sum(one and other for one, other in zip(first, last, strict=True)),
        "drops as reported": sum(
            abs(value - float(reported.get(name, "drop") or nan)) <= close for name, value in values.items()
        ),
    }
    return Measured(
        parts | counts,
        text=" < ".join(f"{name} {values[name] / 100:.3f}" for name in sorted(values, key=values.__getitem__)),
        n=len(whole),
        note=f"{sum(first)} of {len(whole)} lose most without block-1 attention, {sum(last)} least without the block-0 "
        f"MLP; {counts['drops as reported']} of 4 drops are within {close:g} points.",
    )


def drops(runs: Selection) -> Quantity:
    """Points of accuracy that zeroing each component costs."""
    return Quantity("accuracy lost by zeroing (as reported: within 10 points)", runs, _drops, options={"close": 10.0})


def _accuracy(records: Records) -> Measured:
    """Accuracy in percent over all pairs of one run at that checkpoint, whole and without each component."""
    (record,) = records.values()
    count = named_task(record.spec.task).rows
    train = int(Fraction(str(record.spec.train_fraction)) * count)  # as the split rounds
    sizes = {"train_accuracy": train, "validation_accuracy": count - train}
    whole = sum(size * readings.after_grokking(record, name) for name, size in sizes.items()) / count
    lost = {name: readings.after_grokking(record, f"drop_{name}_zero") for name in COMPONENTS}
    return Measured({"none": 100 * whole} | {name: 100 * (whole - drop) for name, drop in lost.items()}, n=1)


ACCURACY = Quantity("accuracy with a component zeroed", RUN, _accuracy)


def _tab_ablation(evidence: Evidence) -> Table:
    """Table 7: accuracy over all pairs without one component."""
    reported, runs = REPORTED["tab:ablation"], RUNS.select(evidence.records)
    is_widened = any(name not in REPORTED["tab:configs"].rows for name in runs)
    rows = [
        (
            text(title),
            cell(evidence, ACCURACY, name, reported.get(name, "accuracy")),
            cell(evidence, drops(RUN), name, reported.get(name, "drop")),
            *((cell(evidence, drops(RUNS), name),) if is_widened else ()),
        )
        for name, title in {"none": "None (original)", **COMPONENTS}.items()
    ]
    unmeasured = [name for name in RUN.names if name in runs and evidence.measure(drops(RUN)).missing]
    return Table(
        "tab-ablation",
        reported.label,
        "Zero-ablation, addition mod 97",
        columns=(
            Column("Ablated component"),
            Column("Accuracy (%)", digits=2),
            Column("Drop (pp)", digits=1),
            *((Column("Drop (pp), all seeds", digits=1),) if is_widened else ()),
        ),
        rows=tuple(rows),
        notes=(
            "Over all pairs, at the first checkpoint at or after grokking, which is step 4,000 in the paper.",
            *(("All seeds of add_mod97: medians with 95 % intervals by order statistics.",) if is_widened else ()),
            *not_measured("The ablations at that checkpoint were", unmeasured),
            *not_trained(set(RUN.names) - runs.keys()),
        ),
    )


def _read_drops(record: RunRecord, close: float) -> Mapping[str, float]:
    """Points of accuracy that zeroing each component costs, their order, and how many are near the paper's."""
    lost = {name: 100 * readings.after_grokking(record, f"drop_{name}_zero") for name in COMPONENTS}
    if len(known(lost.values())) < len(COMPONENTS):
        return {}
    reported = REPORTED["tab:ablation"]
    near = [abs(value - float(str(reported.get(name, "drop")))) <= close for name, value in lost.items()]
    most, fewest = max(lost, key=lost.__getitem__), min(lost, key=lost.__getitem__)
    lead = record.timeline.sync.lead
    return {
        **lost,
        "in order": as_flag(most == "attn1" and fewest == "mlp0"),
        "near": float(sum(near)),
        "first": as_flag(lead.is_precursor) if lead.sign is not None else nan,
    }


def _read_later_block(record: RunRecord, column: str, at_least: float) -> Mapping[str, float]:
    """Whether FSD where the answer is made crosses, and after that of block 0."""
    if not known(record.at_checkpoints(column)):
        return {}
    later, first = (record.first_checkpoint(name, at_least) for name in (column, "fsd"))
    both = later is not None and first is not None
    return {"crosses": as_flag(later is not None), "later": as_flag(both and (later or 0) > (first or 0))}


def _zeroed(name: str, strata: tuple[Stratum, ...], text: str, effect: tuple[str | tuple[str, ...], str]) -> Estimand:
    parts = {one: mean(one) for one in (*COMPONENTS, "in order", "near")}
    parts |= {f"median {one}": median(one) for one in COMPONENTS}
    parts |= {"lost and led": rank_correlation("mlp0", "first")}
    return Estimand(name, strata, _read_drops, parts, text, effect, options={"close": 10.0})


def _derive_over_primes(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Spearman's correlation over primes of the mean accuracy lost and the share of runs that FSD leads."""
    columns = {
        what: np.stack([parts[f"{what} {one.name}"] for one in EVERY_ADDITION], axis=-1) for what in ("lost", "led")
    }
    return {"over primes": reduce_all({"r": rank_correlation("lost", "led")}, {"primes": columns})["r"]}


FOUR = "mlp0 {mlp0:.1f}, attn0 {attn0:.1f}, mlp1 {mlp1:.1f}, attn1 {attn1:.1f}"
CLAIMS = (
    Claim(
        "ablation-order",
        "Zeroing block-1 attention costs most accuracy, and the block-0 MLP least.",
        "§5.5, Table 7",
        "attn1 > attn0 > mlp1 > mlp0",
        _zeroed("order of the accuracy lost by zeroing", ONE_97, FOUR, ("in order", ".0%")),
        Rule(rule.equals(1, "in order")),
        "tab-ablation",
    ),
    Claim(
        "ablation-drops",
        "Zeroing costs 11.8, 88.0, 89.0 and 94.4 points, within 10 points each.",
        "§5.5, Table 7",
        "mlp0 11.8, mlp1 88.0, attn0 89.0, attn1 94.4",
        _zeroed("accuracy lost by zeroing", ONE_97, FOUR, (tuple(COMPONENTS), ".1f")),
        Rule(rule.equals(4, "near")),
        "tab-ablation",
    ),
    Claim(
        "block-0-not-load-bearing",
        "The block-0 MLP, where FSD is read, is not load-bearing: zeroing it costs less than 25 points.",
        "§5.5, §5.7, §8",
        "11.8 points",
        _zeroed("accuracy lost without the block-0 MLP", ONE_97, "{mlp0:.1f} points", ("median mlp0", ".1f")),
        Rule(rule.below(25, "mlp0")),
        "tab-ablation",
    ),
    Claim(
        "leads-where-nothing-is-done",
        "Of runs of one prime FSD leads mainly those whose answer hardly needs the layer that it reads: rank "
        "correlation of accuracy lost without that layer and FSD coming first of −0.3 or less, in the mean over five "
        "primes.",
        "asked here",
        "—",
        _zeroed(
            "correlation within primes of accuracy lost without the block-0 MLP and a positive lead",
            EVERY_ADDITION,
            "{lost and led:.2f}",
            ("lost and led", ".2f"),
        ),
        Rule.of_many(rule.at_most(-0.3, "lost and led")),
        "tab-ablation",
        "new",
    ),
    Claim(
        "leads-where-primes-do-nothing",
        "Of five primes, the more accuracy is lost without the layer that FSD reads, the fewer runs FSD leads: rank "
        "correlation of the primes' means of −0.85 or less.",
        "asked here",
        "—",
        Estimand(
            "correlation over primes of accuracy lost without the block-0 MLP and the share of positive leads",
            EVERY_ADDITION,
            _read_drops,
            {f"lost {one.name}": mean("mlp0", one.name) for one in EVERY_ADDITION}
            | {f"led {one.name}": mean("first", one.name) for one in EVERY_ADDITION},
            "{over primes:.2f}",
            ("over primes", ".2f"),
            options={"close": 10.0},
            derive=_derive_over_primes,
        ),
        Rule.of_many(rule.at_most(-0.85, "over primes")),  # of five, −0.9 is one pair of neighbours that change places
        "tab-ablation",
        "new",
    ),
    Claim(
        "block-1-after-block-0",
        "The MLP of block 1 synchronises too, and after that of block 0.",
        "§8",
        "1,500 steps later",
        Estimand(
            "FSD of block 1 crosses after that of block 0",
            NINE,
            _read_later_block,
            {"later": total("later"), "share": mean("later")},
            "{later:.0f} of {n:.0f}",
            ("share", ".0%"),
            options={"column": "last_fsd", "at_least": 0.80},
        ),
        Rule(rule.more_than(1, "later", operator="=")),
        "tab-ablation",
    ),
)
TABLES = (Item("tab-ablation", ("base",), _tab_ablation),)
