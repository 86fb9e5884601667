"""Makes figure and table of `results/nanda/nanda.json`, and the block of docs/studies/nanda.md about it.

`examples/nanda.py` wrote the record on a GPU; run this when there is another.
"""

import json
import re
from pathlib import Path
from textwrap import wrap
from typing import Any

from grokscope.files import write_atomically
from grokscope.specs import ReadingSpec
from grokscope.timeline import first_step, first_step_below
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.charts.files import write_figure

ROOT = Path(__file__).parents[1]
FOLDER, PAGE = ROOT / "results" / "nanda", ROOT / "docs" / "studies" / "nanda.md"
RECORD, TABLE = FOLDER / "nanda.json", FOLDER / "tab-nanda.md"
BLOCK = re.compile(r"(<!-- nanda: written by docs/make_nanda.py -->\n).*?(<!-- end of nanda -->)", re.DOTALL)
SHARE = re.compile(r"(\d)%")

# What Nanda et al. report, besides what the record repeats of it.
MEMORIZED, FORMED, CLEANED = 1400, 9400, 14_000  # §5.2: the epochs at which the three phases end
NEAR_ONE = 10_000  # §3, "around": test accuracy
TRAINED = 40_000  # §3
IMPROVED = 0.77  # §4.4: share of the loss that goes when only cos and sin of w(a + b) at key frequencies are kept

NEURONS = 512
SETTLED = 2  # times its last value: a validation loss that has settled
USEFUL = 0.5  # nats of restricted loss
CONSTANTS = {"MEMORIZED": MEMORIZED, "FORMED": FORMED, "CLEANED": CLEANED, "NEAR_ONE": NEAR_ONE}
CONSTANTS |= {"NEURONS": NEURONS, "USEFUL": USEFUL}
LOSSES, SHARES, COUNTS = (1e-8, 1e3), (-0.04, 1.08), (0.8, 70)
SIZE = (6.6, 1.5)
MARGIN = 0.015  # of the steps, left of the first
Record = dict[str, Any]


def events_of(record: Record) -> dict[str, int | None]:
    """The events by which Nanda et al. define their phases. They report no rules; these are ours."""
    log = record["log"]
    steps, excluded = log["step"], log["excluded_with_final_keys"]
    lowest = excluded.index(min(excluded))
    highest = max(range(lowest, len(steps)), key=excluded.__getitem__)
    return {
        "memorised": record["memorized"],
        "excluded lowest": steps[lowest],
        "excluded highest": steps[highest],
        "grokked": record["grokked"],
        "all right": first_step(steps, log["validation_accuracy"], 1.0),
        "settled": first_step_below(steps, log["validation_loss"], SETTLED * log["validation_loss"][-1]),
        "rank 1": first_step_below(steps, log["rank"], 1.0),
        "restricted": first_step_below(steps, log["trig_with_final_keys"], USEFUL),
        "restricted, own keys": first_step_below(steps, log["trig"], USEFUL),
    }


def _at_step(step: int | None) -> str:
    return "never" if step is None else f"at step {step:,}"


# The figure.


def figure_of(record: Record) -> Figure:
    """Losses, restricted and excluded loss, FSD, rank and key frequencies over training, with both runs' phases."""
    settings, events = record["settings"], events_of(record)
    title = (
        f"Nanda et al.'s model, addition mod {settings['p']}: "
        f"memorised {_at_step(events['memorised'])}, grokked {_at_step(events['grokked'])}"
    )
    panels = (
        _panel(record, "Loss, with the phases that Nanda et al. report", "nats", _losses(record), LOSSES),
        _panel(
            record,
            "Restricted and excluded loss: final keys (solid), keys of each evaluation (dashed)",
            "nats",
            _filtered_losses(record),
            LOSSES,
        ),
        _panel(record, "Synchronisation and validation accuracy", "share", _shares(record), SHARES, log_y=False),
        _panel(
            record,
            "Median Fourier rank of neurons, and number of key frequencies",
            "number",
            _counts(record),
            COUNTS,
            x_label="step",
        ),
    )
    return Figure("nanda", "fig:nanda", title, panels, (), 1, SIZE)


def _panel(
    record: Record,
    title: str,
    y_label: str,
    series: tuple[Series, ...],
    y_range: tuple[float, float],
    *,
    log_y: bool = True,
    x_label: str = "",
) -> Panel:
    marked = (*_marks(events_of(record), named="phases" in title), *series)
    x_range = (-MARGIN * record["steps"], record["steps"])
    return Panel(title, x_label, y_label, marked, log_y=log_y, x_range=x_range, y_range=y_range)


def _marks(events: dict[str, int | None], *, named: bool) -> tuple[Series, ...]:
    """Where excluded loss rises, the step of grokking, and the ends of the reported phases."""
    start, end = events["excluded lowest"], events["excluded highest"]
    words = ("memorisation", "circuit formation", "clean-up") if named else ()
    return (
        Series("excluded loss rises", "span", "phase", "run", (), (), (start,), (end,)),
        Series("grokked", "vertical", "grokked", "fit", (events["grokked"],)),
        Series("reported: phase ends", "vertical", "theory", "paper", (MEMORIZED, FORMED, CLEANED), texts=words),
    )


def _losses(record: Record) -> tuple[Series, ...]:
    return (
        _curve(record, "train_loss", "train loss", "train"),
        _curve(record, "validation_loss", "validation loss, accuracy", "accuracy"),
    )


def _filtered_losses(record: Record) -> tuple[Series, ...]:
    return (
        _curve(record, "trig", "restricted, keys of each evaluation", "restricted", legend="", by_evaluation=True),
        _curve(record, "excluded", "excluded, keys of each evaluation", "excluded", legend="", by_evaluation=True),
        _curve(record, "trig_with_final_keys", "restricted loss", "restricted"),
        _curve(record, "excluded_with_final_keys", "excluded loss", "excluded"),
    )


def _shares(record: Record) -> tuple[Series, ...]:
    return (
        _curve(record, "validation_accuracy", "validation accuracy", "accuracy", legend=""),
        Series("reported: accuracy near 1", "points", "theory", "paper", (NEAR_ONE,), (1.0,)),
        Series(f"FSD = {ReadingSpec().fsd_sync:.2f}", "horizontal", "fsd", "fit", (), (ReadingSpec().fsd_sync,)),
        _curve(record, "fsd", "FSD", "fsd"),
    )


def _counts(record: Record) -> tuple[Series, ...]:
    return (
        _curve(record, "trig_modes", "key frequencies", "null"),
        _curve(record, "rank", "median Fourier rank", "rank"),
    )


def _curve(
    record: Record, column: str, label: str, role: str, *, legend: str | None = None, by_evaluation: bool = False
) -> Series:
    log = record["log"]
    source = "fit" if by_evaluation else "run"
    return Series(label, "line", role, source, tuple(log["step"]), tuple(log[column]), legend=legend)


# The table.


def table_of(record: Record) -> str:
    """What Nanda et al. report and what this run has, as Markdown."""
    log, events = record["log"], events_of(record)
    loss, restricted = log["loss"][-1], log["trig_with_final_keys"][-1]
    reported = {row["what"]: row["printed"] for row in record["comparison"]}
    keys, reported_keys = record["key_frequencies"], record["printed_key_frequencies"]
    last = f"after {TRAINED:,} epochs, here after {record['steps']:,}"
    share, whole, kept = (
        next(value for what, value in reported.items() if what.startswith(start))
        for start in ("share of neurons", "loss (", "loss of cos")
    )
    rows = (
        ("key frequencies (§4.1)", _listed(reported_keys), _listed(keys)),
        ("their number", f"{len(reported_keys)}; 3 or 4 in its other runs (C.2.1)", f"{len(keys)}"),
        (
            "neurons with more than 85 % of their variance in one frequency (§4.3)",
            f"{share:.3f}",
            f"{record['single_frequency_neurons']:.3f}",
        ),
        ("memorisation ends (§5.2); here, excluded loss is lowest", *_both(MEMORIZED, events["excluded lowest"])),
        ("circuit formation ends (§5.2); here, excluded loss is highest", *_both(FORMED, events["excluded highest"])),
        (
            f"test accuracy is near 1 (§3); here, at least {ReadingSpec().grokked}",
            f"around {NEAR_ONE:,}",
            f"{events['grokked']:,}",
        ),
        ("every pair is answered right", "", f"{events['all right']:,}"),
        (
            f"clean-up ends (§5.2); here, validation loss is within {SETTLED} times its last value",
            *_both(CLEANED, events["settled"]),
        ),
        (f"loss on all pairs (§4.4), {last}", _power(whole), _power(loss)),
        ("the same with cos and sin of w(a + b) at key frequencies alone (§4.4)", _power(kept), _power(restricted)),
        ("share of the loss that goes with this", f"{IMPROVED:.0%}", f"{1 - restricted / loss:.0%}"),
        ("excluded loss at the end", "a curve (Figure 7)", f"{log['excluded_with_final_keys'][-1]:.2f}"),
        ("FSD at the end; highest", "", f"{log['fsd'][-1]:.2f}; {max(log['fsd']):.2f} at {_peak(log, 'fsd'):,}"),
        ("median Fourier rank at the end; 1 since", "", f"{log['rank'][-1]:.0f}; {events['rank 1']:,}"),
    )
    lines = ["| what | Nanda et al. | this run |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]
    return SHARE.sub(r"\1 %", "\n".join(lines)) + "\n"


def _both(reported: int, found: int | None) -> tuple[str, str]:
    return f"{reported:,}", f"{found:,}"


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _power(value: float) -> str:
    """5.30·10⁻⁸."""
    digits, _, exponent = f"{value:.2e}".partition("e")
    return f"{digits}·10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def _peak(log: dict[str, list[float]], column: str) -> int:
    """The step at which a column is highest."""
    return int(log["step"][log[column].index(max(log[column]))])


# The page. Every number in it is a fact of the record or a constant above.

PROSE = """
On one {device} (seed {seed}, commit `{commit}`, torch {torch}) it took {steps:,} steps and {evaluations} evaluations in
{seconds:.0f} s, memorised {memorised} and grokked {grokked}. Record: [nanda.json](../../results/nanda/nanda.json).

![Losses, FSD, rank and key frequencies over training, with the reported phases](../../results/nanda/nanda.svg)

Restricted loss is of all pairs, excluded loss of the training pairs, each with the keys of the last evaluation (solid)
and with those of each evaluation (dashed). Shaded: excluded loss rises. Dotted: where memorisation ({MEMORIZED:,}),
circuit formation ({FORMED:,}) and clean-up ({CLEANED:,}) end in the run of Nanda et al.; diamond: where its accuracy
is near 1.

{table}

**One run compared with one run.** Initial weights and training pairs differ from theirs, and in their paper, too,
seeds differ in which of the {modes} frequencies become key, in how many, and in when. Neither the other keys nor the
earlier grokking mean that this run is better or worse. The mechanism agrees: the {keys} keys
hold {of_embedding:.0%} of the embedding's power and {of_logits:.1%} of the logits' (means by answer), {single:.0f} of
{NEURONS}
neurons have one frequency, logits reduced to the keys have a lower loss, and logits without them a high one.
{others}

**Phases.** Nanda et al. read them from the curves and report no rule for where they end; the table says which rule is
used here. The order is the same, with two differences. Excluded loss is highest {after_grokking:,} steps {side}
validation accuracy has reached 0.95, whereas they end circuit formation at {FORMED:,} and report test accuracy near 1
after around {NEAR_ONE:,}. And it then falls, from {excluded_highest:.1f} to {excluded_last:.1f}, where they report a
plateau.

**Restricted loss** with the final keys falls to {USEFUL} nats {restricted}, {restricted_lead:,} steps before
grokking, but these keys are known only afterwards. With the keys of each evaluation it does so {restricted_own}, when
{keys_then:.0f} of {modes} frequencies count as key and validation accuracy is {accuracy_then:.2f}, so this is weak
evidence.

**FSD** {reaches} {sync:.2f}. It is highest, {fsd_highest:.2f}, {fsd_peak}, and {fsd_last:.2f} at the end, in a
model that has grokked: {peak_neurons:.0f} of {NEURONS} neurons have their strongest mode at frequency
{fsd_mode:.0f}. FSD measures whether *one* frequency dominates, and by their variance over (a, b) these neurons are
divided among {keys}; with equal shares, FSD would be {equal_shares:.2f}. So a model can generalise without
synchronising on one frequency, and a trigger at {sync:.2f} would {fires} here. The Fourier rank is a property of each
neuron: its median falls from {rank_first:.0f} to {rank_grokked:.0f} at grokking, and to 1 {rank_one}. The record
has neither FSD_k nor the number of neurons for each frequency. FSD_k counts a neuron's k strongest modes, so it
does not follow from the number of keys.
"""


def block_of(record: Record) -> str:
    """Figure, table, and what can be read from them."""
    text = PROSE.strip().format_map(CONSTANTS | _run_facts(record) | _spectrum_facts(record) | _measure_facts(record))
    return SHARE.sub(r"\1 %", "\n\n".join(map(_wrapped, text.split("\n\n")))) + "\n"


def _run_facts(record: Record) -> Record:
    events = {name: _at_step(step) for name, step in events_of(record).items()}
    return {
        **record["provenance"],
        "seed": record["settings"]["seed"],
        "modes": record["settings"]["p"] // 2,
        "steps": record["steps"],
        "evaluations": len(record["log"]["step"]),
        "seconds": record["seconds"],
        "memorised": events["memorised"],
        "grokked": events["grokked"],
        "restricted": events["restricted"],
        "restricted_own": events["restricted, own keys"],
        "rank_one": events["rank 1"],
        "table": table_of(record).rstrip("\n"),
    }


def _spectrum_facts(record: Record) -> Record:
    keys, shares = set(map(str, record["key_frequencies"])), record["power_shares"]
    held = {part: sum(share for mode, share in of_mode.items() if mode in keys) for part, of_mode in shares.items()}
    unused = {mode: share for mode, share in shares["embedding"].items() if mode not in shares["logits"]}
    named = ", ".join(f"{mode} ({share:.0%} of its power)" for mode, share in unused.items())
    return {
        "keys": len(keys),
        "of_embedding": held["embedding"],
        "of_logits": held["logits"],
        "single": record["single_frequency_neurons"] * NEURONS,
        # The record lists frequencies with at least a hundredth of the power.
        "others": f"The embedding also holds {named}, of which the logits have less than 1 %; theirs has a sixth "
        "frequency that is little used (§4.1)."
        if unused
        else "",
    }


def _measure_facts(record: Record) -> Record:
    log, events = record["log"], events_of(record)
    excluded, sync, chance = log["excluded_with_final_keys"], ReadingSpec().fsd_sync, 2 / (record["settings"]["p"] - 1)
    grokked, own = (log["step"].index(events[name]) for name in ("grokked", "restricted, own keys"))
    highest = log["step"].index(events["excluded highest"])
    reaches = max(log["fsd"]) >= sync
    return {
        "after_grokking": abs(log["step"][highest] - log["step"][grokked]),
        "side": "after" if highest > grokked else "before",
        "excluded_highest": excluded[highest],
        "excluded_last": excluded[-1],
        "restricted_lead": log["step"][grokked] - events["restricted"],
        "keys_then": log["trig_modes"][own],
        "accuracy_then": log["validation_accuracy"][own],
        "reaches": "reaches" if reaches else "never reaches",
        "fires": "have fired" if reaches else "not have fired",
        "sync": sync,
        "fsd_highest": max(log["fsd"]),
        "fsd_peak": _at_step(_peak(log, "fsd")),
        "fsd_last": log["fsd"][-1],
        "fsd_mode": log["fsd_mode"][-1],
        "peak_neurons": (log["fsd"][-1] * (1 - chance) + chance) * NEURONS * (1 - log["constant_share"][-1]),
        "equal_shares": (1 / len(record["key_frequencies"]) - chance) / (1 - chance),
        "rank_first": log["rank"][0],
        "rank_grokked": log["rank"][grokked],
    }


def _wrapped(part: str) -> str:
    """A paragraph in lines; a table or a picture as it is."""
    if part.startswith(("|", "!")):
        return part
    return "\n".join(wrap(" ".join(part.split()), 124, break_on_hyphens=False, break_long_words=False))


def with_block(text: str, block: str) -> str:
    """The page with the block in its place."""
    return BLOCK.sub(lambda found: f"{found[1]}{block}{found[2]}", text)


def main() -> None:
    """Write everything that follows from the record."""
    record = json.loads(RECORD.read_text())
    for path in write_figure(figure_of(record), FOLDER):
        print(f"made {path.relative_to(ROOT)}")
    write_atomically(TABLE, table_of(record).encode())
    write_atomically(PAGE, with_block(PAGE.read_text(encoding="utf-8"), block_of(record)).encode())


if __name__ == "__main__":
    main()
