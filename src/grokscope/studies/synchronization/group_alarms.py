"""How often FSD_gen fires on S5 without grokking, and when; tested on runs that never grok."""

from dataclasses import replace

from grokscope.specs import ReadingSpec
from grokscope.stats import clustered_share
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
    cell,
    rule,
)
from grokscope.studies.reduction import mean
from grokscope.studies.synchronization import readings
from grokscope.studies.synchronization.designs import every_run, read_lead
from grokscope.studies.synchronization.groups import CONTROLS, EVERY, FRACTIONS, seeds_at
from grokscope.studies.synchronization.sentences import empty_row, has_runs, quote
from grokscope.timeline import Flag
from grokscope.view.numbers import format_estimate
from grokscope.view.table import Column, Row, Table, text

__all__ = ["CLAIMS", "SUPPLEMENTS"]


def _fired(records: Records, groks: bool, fewest: int, controls: tuple[float, float]) -> Measured:
    """How often FSD_gen and its control cross in the runs that grok, or in those that never do."""
    own = [record for record in records.values() if (record.timeline.grokked is not None) == groks]
    runs = [record.timeline for record in own]
    if not runs:
        return Measured.lacking(0, fewest, "such runs of S5")
    seeds = readings.seeds_of(own)
    delays = [run.sync.step - run.memorized for run in runs if run.sync.step is not None and run.memorized is not None]
    count, found = len(runs), clustered_share((run.sync.step is not None for run in runs), seeds)
    assert found is not None
    read = [one for record in own if (one := record.with_fsd("control_fsd")) is not None]
    parts: dict[str, Part] = {
        "value": found,
        "runs": count,
        "at start": clustered_share((Flag.AT_START in run.sync.flags for run in runs), seeds),
        "before memorised": clustered_share((Flag.BEFORE_MEMORIZED in run.sync.flags for run in runs), seeds),
        "before grokking": clustered_share((run.sync.lead.is_precursor for run in runs), seeds) if groks else "n/a",
        "step": readings.of_independent(
            readings.median_steps([run.sync.step for run in runs], [run.last for run in runs]), seeds
        ),
        "delay": readings.of_independent(readings.median_value(delays), seeds),
        **{
            f"control {at}": clustered_share(
                (one.timeline_by(ReadingSpec(fsd_sync=at, fsd_gen_sync=at)).sync.step is not None for one in read),
                readings.seeds_of(read),
            )
            for at in controls
        },
    }
    if count < fewest:
        return replace(Measured.lacking(count, fewest, "runs of S5 that did not grok"), parts=parts)
    return Measured(
        parts,
        text=f"crosses in {round(found.value * count)} of {count} runs that {'' if groks else 'do not '}grok",
        n=count,
        note=f"{'Share' if groks else 'False alarms'}: {format_estimate(found, 2)}.",
    )


def fired(runs: Selection, groks: bool) -> Quantity:
    """How often FSD_gen fires in runs that grok, or that do not."""
    return Quantity(
        f"share of runs that {'' if groks else 'do not '}grok in which FSD_gen fires (at least 3 runs)",
        runs,
        _fired,
        options={"groks": groks, "fewest": 3, "controls": CONTROLS},
    )


def _false_alarms(evidence: Evidence) -> Table:
    """FSD_gen and its control on S5, in runs that grok and in runs that never do."""
    fired_at = {at: f"Control ≥ {at:.2f} fired" for at in sorted(CONTROLS)}
    shares = ("FSD_gen fired", "Fired at the first evaluation", "Fired before memorisation", "Fired before grokking")
    columns = (
        *map(Column, ("Trained on, outcome", "Runs")),
        *(Column(name, digits=2) for name in shares),
        Column("Median step fired"),
        Column("Steps after memorisation (median)", signed=True),
        *(Column(name, digits=2) for name in fired_at.values()),
    )
    parts = ("runs", "value", "at start", "before memorised", "before grokking", "step", "delay")
    rows: list[Row] = []
    for name, runs in {**{f"{fraction:.0%}": seeds_at(fraction) for fraction in FRACTIONS}, "all": EVERY}.items():
        for outcome, groks in (("never grokked", False), ("grokked", True)):
            cells = [
                cell(evidence, fired(runs, groks), part) for part in (*parts, *(f"control {at}" for at in fired_at))
            ]
            title = f"{name}, {outcome}"
            rows.append((text(title), *cells) if cells[0].ours is not None else empty_row(title, len(columns)))
    title = "How often does FSD_gen fire on S5 runs that never grok?"
    return Table(
        "sup-s5-false",
        "sup:s5-false",
        title,
        columns,
        tuple(rows),
        notes=(
            "Fired: FSD_gen ≥ 0.50 at any evaluation, every 100 steps. On runs that never grok within their budget "
            "each is a false alarm. Shares are of all runs of the row, with 95 % Clopper–Pearson intervals.",
            "Before memorisation: at an evaluation before train accuracy ≥ 0.99, or in a run that never had it. At the "
            "first evaluation nothing has been learnt; an untrained network may lie above the threshold.",
            "Steps after memorisation are of runs that did both: the evaluation of the crossing less that of "
            "memorisation; negative before it. Medians have 95 % intervals by order statistics, or are "
            "Kaplan–Meier's where a run never fired.",
            "The control is FSD over the elements' index in lexicographic order, at the checkpoints every 500 steps, "
            "with two thresholds because none is reported; runs without it are not counted.",
            "Rows 'all' pool the three shares of training pairs, whose seeds are the same: for the interval of a share "
            "each seed's runs are one cluster, and a median has none; n is the number of seeds. Nothing is tested, so "
            "nothing is corrected for the number of rows.",
        ),
    )


def _false_alarms_sentence(table: Table) -> str:
    """False alarms against hits, over the three shares of training pairs."""
    never, grokked = table.rows[-2:]
    if not has_runs(never):
        return "How often FSD_gen fires on S5 without grokking is not known: no run of it was trained and did not grok."
    hits = f", and in {quote(table, grokked, 'FSD_gen fired')} of those that do" if has_runs(grokked) else ""
    return f"FSD_gen fires in {quote(table, never, 'FSD_gen fired')} of the runs of S5 that never grok{hits}."


CLAIMS = (
    Claim(
        "s5-never-groks",
        "On S5 FSD_gen crosses in at most 5 % of the runs that have not grokked when training ends.",
        "§7: FSD_gen predicts grokking; tested here with 30 % of the pairs",
        "not tested",
        Estimand(
            "crossings of FSD_gen without grokking",
            every_run("S5_f0.3", experiment="symmetric"),
            read_lead,
            {"share": mean("does not grok, but crosses"), "groks": mean("groks")},
            "{share:.0%}",
            ("share", ".0%"),
        ),
        Rule.of_many(rule.at_most(0.05, "share")),
        "sup-s5-false",
        "new",
    ),
)
SUPPLEMENTS = (Item("sup-s5-false", ("symmetric",), _false_alarms, _false_alarms_sentence),)
