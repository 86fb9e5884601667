"""§7: the transfer to S5 and to other groups (Table 11, Figure 9), and how often FSD_gen fires without grokking."""

from collections.abc import Mapping
from dataclasses import replace
from math import isnan

from grokscope.runs.records import RunRecord
from grokscope.specs import ReadingSpec
from grokscope.stats import share
from grokscope.studies import Claim, Evidence, Item, Measured, Quantity, Rule, Selection, cell, rule
from grokscope.studies.quantity import Part
from grokscope.studies.synchronization import readings, series
from grokscope.studies.synchronization.events import doubt_notes, lead_signs, mean_lead
from grokscope.studies.synchronization.experiments import S5_SEEDS
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.studies.synchronization.sentences import empty_row, has_runs, quote
from grokscope.tasks import named_task
from grokscope.timeline import Flag, Lead
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.numbers import format_estimate, format_number
from grokscope.view.table import Cell, Column, Row, Table, not_trained, text

__all__ = ["CLAIMS", "FIGURES", "SUPPLEMENTS", "TABLES"]

Records = Mapping[str, RunRecord]
FRACTIONS = (0.7, 0.5, 0.3)  # what "30 % held out" may mean; 0.7 is what it says
CONTROLS = (0.80, 0.50)  # thresholds of the Fourier control, which the paper does not state
GROUPS = ("A5", "Aff11", "D59")
EVERY = Selection(("symmetric",))
OTHERS = Selection(("open_questions",), task="[AD]*")  # whose names begin so
OVER = " over {n} runs at three train fractions"


def _run(fraction: float, seed: int) -> Selection:
    return readings.one_run(f"S5_f{fraction:g}_s{seed}", "symmetric")


def _six(fraction: float) -> Selection:
    return Selection(("symmetric",), tuple(f"S5_f{fraction:g}_s{seed}" for seed in S5_SEEDS))


def _seeds(fraction: float) -> Selection:
    return Selection(("symmetric",), configuration=f"S5_f{fraction:g}")


SIX = _six(FRACTIONS[0])


def _control_lead(record: RunRecord, at: float) -> Lead | None:
    """The lead of the Fourier control, with grokking seen at the same evaluations; None where it was not measured."""
    read = readings.read_by(record, "control_fsd")
    return None if read is None else read.timeline_by(ReadingSpec(fsd_sync=at, fsd_gen_sync=at)).sync.lead


def _irrep(record: RunRecord, step: int | None) -> tuple[str, int] | None:
    """Young label and dimension of the irrep that most neurons share at a step."""
    mode = float("nan") if step is None else record.at(step, "fsd_mode")
    if isnan(mode):
        return None
    found = named_task(record.spec.task).basis().modes.modes[round(mode) - 1]
    return found.label, found.irrep_dimension


def _events(records: Records) -> Measured:
    """When one run grokked, when FSD_gen and its control crossed, and the irrep of most neurons at grokking."""
    (record,) = records.values()
    found, irrep = record.timeline, _irrep(record, record.timeline.grokked)
    parts: dict[str, Part] = {
        "grok": readings.step_part(found.grokked),
        "sync": readings.crossing_part(found.sync),
        "lead": readings.lead_part(found.sync.lead),
        "irrep": None if irrep is None else f"{irrep[0]}, d = {irrep[1]}",
    }
    for at in CONTROLS:
        control = _control_lead(record, at)
        parts[f"control {at}"] = None if control is None else readings.lead_part(control)
    return Measured(parts | {flag: flag in found.sync.flags for flag in Flag}, n=1)


def events(run: Selection) -> Quantity:
    """The events of one run of S5."""
    return Quantity("events on S5", run, _events)


def _control_leads(records: Records) -> Measured:
    """Mean lead of the Fourier control at each threshold, and in how many runs it leads."""
    leads = {at: [lead for one in records.values() if (lead := _control_lead(one, at)) is not None] for at in CONTROLS}
    means: dict[str, Part] = {f"control {at}": readings.mean_lead(found) for at, found in leads.items()}
    found = leads[CONTROLS[0]]
    if len(found) < len(records):
        return replace(Measured.lacking(len(found), len(records), "runs with the Fourier control"), parts=means)
    count = sum(lead.is_precursor for lead in found)
    shown = f"{count} of {len(found)} lead"
    return Measured(means | {"leading": count}, shown, len(found), "FSD over the elements' index, at checkpoints.")


def control_leads(runs: Selection) -> Quantity:
    """The leads of the Fourier control over runs."""
    return Quantity("leads of the Fourier control", runs, _control_leads)


def _tab_transfer(evidence: Evidence) -> Table:
    """Table 11: FSD_gen on S5, with the Fourier control."""
    rows = [row for fraction in FRACTIONS for row in _fraction_rows(evidence, fraction)]
    columns = (
        *map(Column, ("Seed", "Grok", "FSD_gen sync")),
        Column("Lead", signed=True),
        Column("Dominant irrep"),
        *(Column(f"Fourier control lead, {at:g}", signed=True) for at in CONTROLS),
        Column("Positive", digits=2),
        Column("Sign-test p", digits=4),
    )
    notes = (
        "Grokking and FSD_gen are evaluated every 100 steps; the control and its lead at the checkpoints.",
        "The paper's values are shown with runs trained on 70 % of the pairs, which is 30 % held out.",
        "The irrep is FSD_gen's mode at the evaluation at which the run had grokked.",
        *doubt_notes(evidence, {name: events(replace(SIX, names=(name,))) for name in SIX.names}),
        *not_trained(set(SIX.names) - evidence.experiment("symmetric").keys()),
    )
    title = "Transfer to the symmetric group S5"
    return Table("tab-transfer", "tab:transfer", title, columns, tuple(rows), notes)


def _fraction_rows(evidence: Evidence, fraction: float) -> list[Row]:
    """The reported seeds at one train fraction, their mean, and the mean of all seeds."""
    reported, trained = REPORTED["tab:transfer"], _seeds(fraction).select(evidence.records)
    is_reported = fraction == FRACTIONS[0]
    columns = {"grok": "grok", "sync": "sync", "lead": "lead", "irrep": "irrep", "control 0.8": "control_lead"}
    rows: list[Row] = []
    for seed in S5_SEEDS:
        quantity = events(_run(fraction, seed))
        if is_reported or not evidence.measure(quantity).missing:
            paper = {part: reported.get(str(seed), name) if is_reported else None for part, name in columns.items()}
            cells = [cell(evidence, quantity, part, value) for part, value in paper.items()]
            title = str(seed) if is_reported else f"{seed}, trained on {fraction:.0%}"
            rows.append((text(title), *cells, cell(evidence, quantity, "control 0.5"), Cell(), Cell()))
    present = readings.trained_part(_six(fraction), trained)
    if is_reported or trained:
        rows.append(_mean_row(evidence, f"mean, trained on {fraction:.0%}", present, is_reported))
    if len(trained) > len(S5_SEEDS):
        rows.append(_mean_row(evidence, f"mean, trained on {fraction:.0%}, all seeds", _seeds(fraction), False))
    return rows


def _mean_row(evidence: Evidence, title: str, runs: Selection, is_reported: bool) -> Row:
    reported = REPORTED["tab:transfer"]
    lead, p = (reported.get("mean", name) if is_reported else None for name in ("lead", "p"))
    return (
        text(title),
        Cell(),
        Cell(),
        cell(evidence, mean_lead(runs, cadence=None), reported=lead),
        Cell(),
        *(cell(evidence, control_leads(runs), f"control {at}") for at in CONTROLS),
        cell(evidence, lead_signs(runs, None), "share", "6/6" if is_reported else None),
        cell(evidence, lead_signs(runs, None), "p", p),
    )


CURVES = {  # column → name, colour
    "control_fsd": ("Fourier control", "control"),
    "validation_accuracy": ("validation accuracy", "accuracy"),
    "fsd": ("FSD_gen", "fsd"),
}


def _fig_transfer(evidence: Evidence) -> Figure:
    """Figure 9: six seeds of S5, and below them all seeds at each train fraction."""
    runs = evidence.experiment("symmetric")
    until = series.last_shown(_seeds(FRACTIONS[0]).select(evidence.records).values(), 8000)
    panels = [_seed_panel(evidence, seed, until) for seed in S5_SEEDS]
    panels += [_fraction_panel(evidence, fraction, until) for fraction in FRACTIONS]
    grokked = len(readings.grokked_runs(runs.values()))
    title = "FSD_gen on S5: " + (f"{len(runs)} runs, of which {grokked} grokked" if runs else "no runs")
    notes = (
        "Seeds are trained on 70 % of the pairs, which is 30 % held out. FSD_gen is evaluated every 100 steps, the "
        "control at the checkpoints.",
        "The paper's diamonds: FSD_gen reaching 0.50 and validation accuracy 0.95, at the reported steps.",
        "Nulls of FSD_gen: the first evaluation of the runs themselves, which are untrained networks, and the exact "
        "95 % point of independent neurons with Gaussian means, which is the paper's random-activation null.",
        "The lower row: medians over seeds, between quartiles but for validation accuracy; a run whose FSD_gen is "
        "undefined, because its neurons no longer vary, is not in FSD_gen's there.",
        *series.steps_shown(until, runs.values()),
        *not_trained(set(SIX.names) - runs.keys()),
    )
    return Figure("fig-transfer", "fig:transfer", title, tuple(panels), notes, 3, (2.5, 1.75))


def _seed_panel(evidence: Evidence, seed: int, until: int) -> Panel:
    reported, reading, run = REPORTED["tab:transfer"], ReadingSpec(), _run(FRACTIONS[0], seed)
    marks = [
        Series("paper", "points", role, "paper", (step,), (height,))
        for column, role, height in (("grok", "accuracy", reading.grokked), ("sync", "fsd", reading.fsd_gen_sync))
        if isinstance(step := reported.get(str(seed), column), int)
    ]
    curves = [
        series.line(evidence, series.curve(run, column), until, name, role) for column, (name, role) in CURVES.items()
    ]
    return _panel(f"seed {seed}", "", (*_nulls(evidence, FRACTIONS[0], until), *curves, *marks), until)


def _fraction_panel(evidence: Evidence, fraction: float, until: int) -> Panel:
    runs = _seeds(fraction)
    curves = [
        series.seeds_line(evidence, series.quartiles(runs, column), until, name, role)
        for column, (name, role) in CURVES.items()
    ]
    # Accuracies leap between 0 and 1, and their band would be as grey as the null's.
    curves = [replace(one, low=(), high=()) if one.role == "accuracy" else one for one in curves]
    title = f"trained on {fraction:.0%}, {len(runs.select(evidence.records))} seeds"
    return _panel(title, "step", (*_nulls(evidence, fraction, until), *curves), until)


def _panel(title: str, x_label: str, drawn: tuple[Series, ...], until: int) -> Panel:
    return Panel(title, x_label, "", drawn, x_range=(0, until), y_range=(-0.06, 1.08))


def _nulls(evidence: Evidence, fraction: float, until: int) -> tuple[Series, ...]:
    runs = _seeds(fraction)
    first = next(iter(runs.select(evidence.records)), None)
    if first is None:
        return ()
    band = series.untrained_band(evidence, series.untrained(runs, "fsd"), until)
    return band, *series.independent_line(evidence, readings.one_run(first, "symmetric"))


def _fired(records: Records, groks: bool, fewest: int) -> Measured:
    """How often FSD_gen and its control cross in the runs that grok, or in those that never do."""
    own = [record for record in records.values() if (record.timeline.grokked is not None) == groks]
    runs = [record.timeline for record in own]
    if not runs:
        return Measured.lacking(0, fewest, "such runs of S5")
    delays = [run.sync.step - run.memorized for run in runs if run.sync.step is not None and run.memorized is not None]
    count, found = len(runs), share(sum(run.sync.step is not None for run in runs), len(runs))
    parts: dict[str, Part] = {
        "value": found,
        "runs": count,
        "at start": readings.share_that(Flag.AT_START in run.sync.flags for run in runs),
        "before memorised": readings.share_that(Flag.BEFORE_MEMORIZED in run.sync.flags for run in runs),
        "before grokking": readings.share_that(run.sync.lead.is_precursor for run in runs) if groks else "n/a",
        "step": readings.median_steps([run.sync.step for run in runs], [run.last for run in runs]),
        "delay": readings.median_value(delays),
    }
    for at in CONTROLS:
        read = [one for record in own if (one := readings.read_by(record, "control_fsd")) is not None]
        reading = ReadingSpec(fsd_sync=at, fsd_gen_sync=at)
        parts[f"control {at}"] = readings.share_that(one.timeline_by(reading).sync.step is not None for one in read)
    if count < fewest:
        return replace(Measured.lacking(count, fewest, "runs of S5 that did not grok"), parts=parts)
    shown = f"crosses in {round(found.value * count)} of {count} runs that {'' if groks else 'do not '}grok"
    return Measured(parts, shown, count, f"{'Share' if groks else 'False alarms'}: {format_estimate(found, 2)}.")


def fired(runs: Selection, groks: bool) -> Quantity:
    """How often FSD_gen fires in runs that grok, or that do not."""
    return Quantity("firing of FSD_gen", runs, _fired, options={"groks": groks, "fewest": 3})


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
    for name, runs in {**{f"{fraction:.0%}": _seeds(fraction) for fraction in FRACTIONS}, "all": EVERY}.items():
        for outcome, groks in (("never grokked", False), ("grokked", True)):
            cells = [
                cell(evidence, fired(runs, groks), part) for part in (*parts, *(f"control {at}" for at in fired_at))
            ]
            title = f"{name}, {outcome}"
            rows.append((text(title), *cells) if cells[0].ours is not None else empty_row(title, len(columns)))
    notes = (
        "Fired: FSD_gen ≥ 0.50 at any evaluation, every 100 steps. On runs that never grok within their budget each is "
        "a false alarm. Shares are of all runs of the row, with 95 % Clopper–Pearson intervals.",
        "Before memorisation: at an evaluation before train accuracy ≥ 0.99, or in a run that never had it. At the "
        "first evaluation nothing has been learnt; an untrained network may lie above the threshold.",
        "Steps after memorisation are of runs that did both: the evaluation of the crossing less that of memorisation; "
        "negative before it. Medians have 95 % intervals by percentile bootstrap, or are Kaplan–Meier's where a run "
        "never fired.",
        "The control is FSD over the elements' index in lexicographic order, at the checkpoints every 500 steps, "
        "with two thresholds because none is reported; runs without it are not counted.",
        "Rows 'all' pool the three shares of training pairs, whose seeds are the same; nothing is tested, so nothing "
        "is corrected for the number of rows.",
    )
    title = "How often does FSD_gen fire on S5 runs that never grok?"
    return Table("sup-s5-false", "sup:s5-false", title, columns, tuple(rows), notes)


def _false_alarms_sentence(table: Table) -> str:
    """False alarms against hits, over the three shares of training pairs."""
    never, grokked = table.rows[-2:]
    if not has_runs(never):
        return "How often FSD_gen fires on S5 without grokking is not known: no run of it was trained and did not grok."
    hits = f", and in {quote(table, grokked, 'FSD_gen fired')} of those that do" if has_runs(grokked) else ""
    return f"FSD_gen fires in {quote(table, never, 'FSD_gen fired')} of the runs of S5 that never grok{hits}."


def _dimensions(records: Records, dimensions: tuple[int, ...]) -> Measured:
    """How many runs have a dominant irrep of these dimensions, or of more than one, where FSD_gen crosses."""
    at_sync, at_grok = (
        [found[1] for record, step in steps if (found := _irrep(record, step)) is not None]
        for steps in (
            [(record, record.timeline.sync.step) for record in records.values()],
            [(record, record.timeline.grokked) for record in records.values()],
        )
    )
    if not at_sync:
        return Measured({}, "none synchronised", len(records), "No run has an irrep to name.")
    inside, later = (sum(one in dimensions for one in found) for found in (at_sync, at_grok))
    parts = {"inside": inside, "above 1": sum(one > 1 for one in at_sync)}
    shown = ", ".join(f"{at_sync.count(one)} of dimension {one}" for one in sorted({*at_sync}))
    wanted = " or ".join(map(str, dimensions))
    note = f"{inside} of {len(records)} have dimension {wanted} at the crossing, {later} at grokking."
    return Measured(parts, shown, len(records), note)


def _memorization(records: Records) -> Measured:
    """The mean step at which the training set is memorised, if every run does."""
    steps = [float(step) for record in records.values() if (step := record.timeline.memorized) is not None]
    if len(steps) < len(records):
        return Measured({}, f"{len(steps)} of {len(records)} memorise", len(records), "Some never do.")
    found = readings.mean_known(steps)
    return Measured.of(
        found, format_number(found), len(steps), f"{format_number(min(steps))} to {format_number(max(steps))}."
    )


def _grokking(records: Records, low: int, high: int) -> Measured:
    """How many runs grok, and how many of them in a range of steps."""
    steps = [step for record in records.values() if (step := record.timeline.grokked) is not None]
    if not steps:
        return Measured({}, "none grokked", len(records), "No run grokked.")
    inside = sum(low <= step <= high for step in steps)
    shown = f"{len(steps)} of {len(records)} grok, {format_number(min(steps))} to {format_number(max(steps))}"
    return Measured({"grokked": len(steps), "inside": inside}, shown, len(records), f"{inside} lie inside.")


def _plateau(records: Records) -> Measured:
    """How many runs memorise, then synchronise, then grok."""
    good = 0
    for record in records.values():
        found = record.timeline
        steps = [step for step in (found.memorized, found.sync.step, found.grokked) if step is not None]
        good += len(steps) == 3 and steps[0] <= steps[1] < steps[2]
    return Measured.of(good, f"{good} of {len(records)}", len(records), "Memorised, then synchronised, then grokked.")


def _other_groups(records: Records, fewest: int) -> Measured:
    """In how many grokked runs of other groups FSD_gen leads, and how often it crosses in those that do not grok."""
    leads = {group: [r.timeline.sync.lead for r in records.values() if r.spec.task == group] for group in GROUPS}
    known = {group: [lead for lead in found if lead.sign is not None] for group, found in leads.items()}
    total = sum(map(len, known.values()))
    if total < fewest:
        return Measured.lacking(total, fewest, "grokked runs of other groups")
    ahead = {group: sum(lead.is_precursor for lead in found) for group, found in known.items()}
    pooled = share(sum(ahead.values()), total)
    shown = ", ".join(
        f"{group}: {f'{ahead[group]} of {len(found)}' if found else 'none groks'}" for group, found in known.items()
    )
    others = [record.timeline.sync.step for record in records.values() if record.timeline.grokked is None]
    false = sum(step is not None for step in others)
    note = f"; it also crosses in {false} of {len(others)} that do not grok" if others else ""
    return Measured.of(pooled, shown, total, f"Pooled {format_estimate(pooled, 2)}{note}.")


ALL = Rule(rule.more_than(1, "value", operator="="), rule.more_than(1 / 2, "value"))
CLAIMS = (
    Claim(
        "s5-leads",
        "FSD_gen precedes grokking on all six seeds of S5.",
        "Abstract, §7, Table 11",
        "6 of 6, p = 0.03",
        lead_signs(SIX, None),
        Rule(rule.more_than(1, "positive", operator="="), rule.more_than(1 / 2, "positive")),
        "tab-transfer",
        lead_signs(EVERY, None),
        OVER,
    ),
    Claim(
        "s5-mean-lead",
        "The mean lead on S5 is 2,417 steps.",
        "§7, Table 11",
        "+2,417",
        mean_lead(SIX, cadence=None),
        Rule(rule.all_of(rule.contains(2417), rule.above(0, end="low")), rule.above(0, end="low")),
        "tab-transfer",
        mean_lead(EVERY, cadence=None),
        OVER,
    ),
    Claim(
        "s5-irreps",
        "On S5 neurons lock onto an irrep of dimension 4 or 5, never a one-dimensional one.",
        "§7, Table 11",
        "4, 4, 4, 4, 5, 4",
        Quantity("dimensions of the dominant irrep", SIX, _dimensions, options={"dimensions": (4, 5)}),
        Rule(rule.more_than(1, "inside", operator="="), rule.more_than(1 / 2, "above 1")),
        "tab-transfer",
        Quantity("dimensions of the dominant irrep", EVERY, _dimensions, options={"dimensions": (4, 5)}),
        OVER,
    ),
    Claim(
        "s5-control",
        "The Fourier control precedes grokking on one of six seeds only.",
        "§7, Table 11",
        "1 of 6",
        control_leads(SIX),
        Rule(rule.more_than(1 / 6, "leading", operator="≤"), rule.more_than(1 / 2, "leading", operator="<")),
        "tab-transfer",
        control_leads(EVERY),
        OVER,
    ),
    Claim(
        "s5-memorises",
        "S5 is memorised at about step 600.",
        "§7",
        "600",
        Quantity("mean step of memorisation", SIX, _memorization),
        Rule(rule.within(0.2, of=600), rule.at_most(1200)),
        "tab-transfer",
        Quantity("mean step of memorisation", EVERY, _memorization),
        OVER,
    ),
    Claim(
        "s5-groks",
        "S5 generalises at step 2,100 to 6,900.",
        "§7, Table 11",
        "2,100 to 6,900",
        Quantity("grok steps", SIX, _grokking, options={"low": 2100, "high": 6900}),
        Rule(rule.more_than(1, "inside", operator="="), rule.more_than(1, "grokked", operator="=")),
        "tab-transfer",
        Quantity("grok steps", EVERY, _grokking, options={"low": 2100, "high": 6900}),
        OVER,
    ),
    Claim(
        "s5-plateau",
        "FSD_gen reaches its ceiling during the memorisation plateau.",
        "§7, Figure 9",
        "6 of 6 (Table 11 itself has two crossings before step 600)",
        Quantity("runs synchronised between memorisation and grokking", SIX, _plateau),
        ALL,
        "fig-transfer",
        Quantity("runs synchronised between memorisation and grokking", EVERY, _plateau),
        OVER,
    ),
    Claim(
        "s5-never-groks",
        "FSD_gen predicts grokking on S5.",
        "§7, asked of runs that never grok",
        "not tested",
        fired(EVERY, groks=False),
        Rule(rule.equals(0), rule.below(0.5)),
        "sup-s5-false",
    ),
    Claim(
        "other-groups",
        "The precursor is a property of the faithful basis, whatever the group.",
        "§7, asked of A5, Aff11 and D59",
        "not tested",
        Quantity("leads on other groups", OTHERS, _other_groups, options={"fewest": 6}),
        Rule(rule.equals(1), rule.above(0.5, end="low")),
        "sup-lead-share",
    ),
)
TABLES = (Item("tab-transfer", ("symmetric",), _tab_transfer),)
SUPPLEMENTS = (Item("sup-s5-false", ("symmetric",), _false_alarms, _false_alarms_sentence),)
FIGURES = (Item("fig-transfer", ("symmetric",), _fig_transfer),)
