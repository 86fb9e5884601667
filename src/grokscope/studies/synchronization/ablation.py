"""§5.5 and §8: which components the answer needs (Table 7)."""

from dataclasses import replace
from fractions import Fraction
from math import nan

from grokscope.stats import known
from grokscope.studies import Claim, Evidence, Item, Measured, Part, Quantity, Records, Rule, Selection, cell, rule
from grokscope.studies.synchronization import readings
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


def _later_block(records: Records, at_least: float) -> Measured:
    """In how many runs FSD of the last block's neuron-to-logit map crosses after that of block 0, or never."""
    later = []
    for record in records.values():
        if known(record.at_checkpoints("logit_map_fsd")):
            step, first = (record.first_checkpoint(column, at_least) for column in ("logit_map_fsd", "fsd"))
            later.append(first is not None and (step is None or step > first))
    if len(later) < len(records):
        return Measured.lacking(len(later), len(records), "runs with the last block's map")
    return Measured(
        {"such runs": sum(later)},
        text=f"{sum(later)} of {len(later)}",
        n=len(later),
        note="Never crossing counts as later.",
    )


def _later(runs: Selection) -> Quantity:
    return Quantity("runs whose block 1 crosses FSD 0.80 after block 0", runs, _later_block, options={"at_least": 0.80})


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


CLAIMS = (
    Claim(
        "ablation-order",
        "Block-1 attention is the most critical component and block-0 MLP the least.",
        "§5.5, Table 7",
        "attn1 > attn0 > mlp1 > mlp0",
        drops(RUN),
        Rule(
            rule.more_than(1 / 2, "runs with both"),
            rule.any_of(
                rule.more_than(1 / 2, "runs in which attn1 costs most"),
                rule.more_than(1 / 2, "runs in which mlp0 costs least"),
            ),
        ),
        "tab-ablation",
        drops(RUNS),
    ),
    Claim(
        "ablation-drops",
        "Zeroing costs 11.8, 88.0, 89.0 and 94.4 points.",
        "§5.5, Table 7",
        "mlp0 0.118, mlp1 0.880, attn0 0.890, attn1 0.944",
        drops(RUN),
        Rule(rule.equals(4, "drops as reported"), rule.at_least(2, "drops as reported")),
        "tab-ablation",
        drops(RUNS),
    ),
    Claim(
        "block-1-after-block-0",
        "Block 1 consolidates after block 0 has become Fourier-organised.",
        "§8",
        "1,500 steps later",
        _later(readings.REPORTED_ADDITIONS),
        Rule(rule.more_than(1, "such runs", operator="="), rule.more_than(1 / 2, "such runs")),
        "tab-ablation",
        _later(readings.ADDITIONS),
    ),
)
TABLES = (Item("tab-ablation", ("base",), _tab_ablation),)
