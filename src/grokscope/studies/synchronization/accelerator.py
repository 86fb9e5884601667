"""§6, Figure 8: weight decay raised once, at the FSD crossing, at memorisation, early or at random."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isnan
from statistics import fmean

from grokscope.studies import (
    Claim,
    Evidence,
    Item,
    Measured,
    Part,
    Quantity,
    Records,
    Rule,
    Selection,
    cell,
    configuration,
    rule,
)
from grokscope.studies.synchronization import readings, series
from grokscope.studies.synchronization.comparisons import grokking, measure_grokking
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.numbers import format_percent, format_range
from grokscope.view.table import not_trained

__all__ = ["CLAIMS", "FIGURES"]

SEEDS = (42, 0, 1)  # reported
HIGHS = ("3", "5", "10")
TRIGGERS = {
    "fsd": "at FSD ≥ 0.80",
    "mem": "at memorisation",
    "early": "at step 300",
    "random": "at a random step",
    "restored": "at FSD ≥ 0.80, restored after grokking",
}
RAISED = tuple(f"{trigger}_x{high}" for high in HIGHS for trigger in TRIGGERS)
ACCELERATED = (0.36, 0.43)  # Figure 8: share of the steps that the FSD trigger saves
MEANS = "Mean of the reported seeds 42, 0 and 1 that grokked"
GROUP, WIDTH = 1.0, 0.155


def reported_seeds(*names: str) -> Selection:
    """The runs of configurations at the reported seeds."""
    return Selection(("accelerator",), tuple(f"{name}_s{seed}" for name in names for seed in SEEDS))


def every_seed(*names: str) -> Selection:
    """The runs of configurations at all seeds."""
    return Selection(("accelerator",), configuration="|".join(names))


def _fixed(records: Records) -> Measured:
    """Grokking at fixed λ, at the seeds of the triggered runs; as base runs there are more."""
    seeds = {name.rpartition("_s")[2] for name in records if configuration(name) != "fixed"}
    fixed = {name: one for name, one in records.items() if configuration(name) == "fixed"}
    return measure_grokking({name: one for name, one in fixed.items() if name.rpartition("_s")[2] in seeds})


def _saved(records: Records, name: str, against: str) -> Measured:
    """1 − mean grok step of a configuration over that of another, over the seeds at which both grok."""
    runs = {
        one: {run.rpartition("_s")[2]: record for run, record in records.items() if configuration(run) == one}
        for one in (name, against)
    }
    steps = {one: {seed: record.timeline.grokked for seed, record in own.items()} for one, own in runs.items()}
    both = [(step, steps[against].get(seed)) for seed, step in steps[name].items()]
    pairs = [(own, other) for own, other in both if own is not None and other is not None]
    value = 1 - fmean(own for own, _ in pairs) / fmean(other for _, other in pairs) if pairs else None
    late = {one: sum(map(readings.triggered_late, own.values())) for one, own in runs.items()}
    shown: dict[str, Part] = {
        f"late in {one}": f"{one} {count} of {len(runs[one])}" if count else None for one, count in late.items()
    }
    return Measured(
        {"value": value, "pairs": len(pairs), **shown},
        "none" if value is None else format_percent(value),
        len(runs[name]),
    )


def saved(runs: Selection, name: str, against: str = "fixed") -> Quantity:
    """Steps that a configuration saves against another."""
    return Quantity("steps saved", runs, _saved, None, {"name": name, "against": against})


def _savings(found: Mapping[str, Measured], suffix: str) -> Measured:
    """Steps saved, side by side, with how often λ rose too late to do anything."""
    late = {name: text for one in found.values() for name, text in one.parts.items() if name.startswith("late in ")}
    return Measured(
        {name: one.parts.get("value") for name, one in found.items()},
        text=", ".join(f"{name}: {one.text}{suffix * (one.text != 'none')}" for name, one in found.items()),
        n=sum(one.n for one in found.values()),
        note=f"Over the seeds at which both grok. {_late_note(late.values())}".rstrip(),
        missing=next((one.missing for one in found.values() if one.missing), ""),
    )


def _late_note(late: Iterable[Part]) -> str:
    shown = [str(text) for text in late if text]
    return f"λ rose only after grokking, or never, in: {', '.join(shown)}." if shown else ""


def savings(names: Mapping[str, str], is_reported: bool, against: str = "fixed", suffix: str = "") -> Quantity:
    """Steps that several configurations, by what they are called, save against another."""
    select = reported_seeds if is_reported else every_seed
    return Quantity(
        f"share of the steps of {against} that are saved by {' and '.join(names.values())}",
        select(*names.values()),
        _savings,
        None,
        {"suffix": suffix},
        members={label: saved(select(name, against), name, against) for label, name in names.items()},
    )


def _counts(found: Mapping[str, Measured]) -> Measured:
    """How many runs grok, by configuration and in all."""
    n, grok = sum(one.n for one in found.values()), sum(one.number("grok") for one in found.values())
    late = [f"{name} {one.number('late'):g} of {one.n}" for name, one in found.items() if one.number("late") > 0]
    return Measured(
        {"grok": grok, "never grok": n - grok},
        text=", ".join(f"{name}: {one.number('grok'):g} of {one.n} grok" for name, one in found.items()),
        n=n,
        note=f"{grok:g} of {n} grok. {_late_note(late)}".rstrip(),
        missing=next((one.missing for one in found.values() if one.missing), ""),
    )


def counts(names: tuple[str, ...], is_reported: bool) -> Quantity:
    """How many runs of configurations grok, at the reported seeds or at all."""
    select = reported_seeds if is_reported else every_seed
    return Quantity(
        f"runs of {' and '.join(names)} that grok",
        select(*names),
        _counts,
        members={name: grokking(select(name)) for name in names},
    )


def _figure_8(evidence: Evidence) -> Figure:
    """Steps to grokking by trigger and by how far λ is raised."""
    runs = evidence.experiment("accelerator")
    sizes = [len(found) for name in RAISED if (found := every_seed(name).select(evidence.records))]
    seeds, is_widened = format_range(sizes), max(sizes, default=0) > len(SEEDS)
    titles = {"mean": MEANS, "median": f"Median of all seeds, {seeds} per trigger, with 95 % intervals"}
    counted = f"{sum(sizes)} runs, {seeds} seeds per trigger" if runs else "no runs"
    return Figure(
        "fig-accelerator",
        "fig:accelerator",
        f"Weight decay raised once, addition mod 97: {counted}",
        tuple(_panel(evidence, titles[part], part) for part in (("mean", "median") if is_widened else ("mean",))),
        notes=(
            "Above each bar: runs that grokked, of those trained. Grokking is evaluated every 100 steps.",
            "The paper's band is 36 to 43 % below our mean at fixed λ = 1. It reports no steps, and says that none of "
            "three seeds groks where λ is raised to 10 at memorisation or at an early step.",
            "Means are of the runs that grokked, so a configuration in which few did looks better than it is; medians "
            "count all.",
            *_savings_notes(evidence),
            *((series.OPEN,) if is_widened else ()),
            *not_trained({*reported_seeds("fixed", *RAISED).names} - runs.keys()),
        ),
        columns=1,
        panel_size=(5.2, 2.2),
    )


def _savings_notes(evidence: Evidence) -> tuple[str, ...]:
    """How much sooner than at fixed λ each configuration groks, and where λ rose too late to do anything."""
    found = {name: evidence.measure(saved(every_seed(name, "fixed"), name)) for name in RAISED}
    shown = [f"{name} {one.text} ({one.number('pairs'):g})" for name, one in found.items() if one.number("pairs") > 0]
    late = _late_note(one.parts.get(f"late in {name}") for name, one in found.items())
    saving = "Mean steps saved against fixed λ = 1, over the seeds (how many) at which both grok"
    return (*((f"{saving}: {', '.join(shown)}.",) if shown else ()), *((late,) if late else ()))


def _panel(evidence: Evidence, title: str, part: str) -> Panel:
    return Panel(
        title,
        "weight decay after the trigger",
        "steps to grokking",
        (*_fixed_line(evidence, part), *(one for trigger in TRIGGERS for one in _bars(evidence, trigger, part))),
        tuple((GROUP * i, f"λ → {high}") for i, high in enumerate(HIGHS)),
        x_range=(-0.5, 2.5),
    )


def _bars(evidence: Evidence, trigger: str, part: str) -> list[Series]:
    """Mean or median steps to grokking with one trigger, for each λ; none where it was not trained."""
    select = reported_seeds if part == "mean" else every_seed
    quantities = [grokking(select(f"{trigger}_x{high}")) for high in HIGHS]
    drawn = replace(
        series.medians((cell(evidence, quantity, part) for quantity in quantities), trigger, TRIGGERS[trigger]),
        kind="bars",
        source="run",
        x=tuple(GROUP * i + WIDTH * ([*TRIGGERS].index(trigger) - 2) for i in range(len(HIGHS))),
        texts=tuple(_count(evidence, quantity) for quantity in quantities),
        width=0.9 * WIDTH,
    )
    if not any(evidence.measure(quantity).n for quantity in quantities):
        return []
    return [replace(drawn, low=(), high=()) if part == "mean" else drawn]


def _fixed_line(evidence: Evidence, part: str) -> tuple[Series, ...]:
    """Fixed λ as a line, and the band that the paper reports for the trigger at FSD."""
    of_all = Quantity("grokking at the seeds of triggered runs", Selection(("accelerator",)), _fixed)
    quantity = grokking(reported_seeds("fixed")) if part == "mean" else of_all
    found = series.medians([cell(evidence, quantity, part)], "", "")
    x, (value,) = (-0.5, 2.5), found.y
    if isnan(value):
        return ()
    times = 0 if isnan(found.low[0]) or isnan(found.high[0]) else 2
    ends = found.low * times, found.high * times
    least, most = (value * (1 - share) for share in reversed(ACCELERATED))
    label = f"fixed λ = 1 ({_count(evidence, quantity)} grokked)"
    return (
        Series("paper, FSD trigger: 36–43 % sooner", "band", "fsd", "paper", x, (), (least,) * 2, (most,) * 2),
        Series(label, "line", "fixed", "run", x, found.y * 2, *ends, legend="fixed λ = 1", quantity=quantity.key),
    )


def _count(evidence: Evidence, quantity: Quantity) -> str:
    found = evidence.measure(quantity)
    return f"{found.number('grok'):g}/{found.n}" if found.parts else f"0/{found.n}"


SAVED = {f"λ = {high}": f"fsd_x{high}" for high in ("3", "5")}
SOONER = {"at memorisation": "mem_x3", "at step 300": "early_x3"}
STABLE, EARLY = ("fsd_x3", "fsd_x5"), ("mem_x10", "early_x10")
CLAIMS = (
    Claim(
        "accelerator-saves",
        "Raising λ at the FSD crossing saves 36 to 43 % of the steps to grokking.",
        "Abstract, §6, Figure 8",
        "36 to 43 %",
        savings(SAVED, is_reported=True),
        Rule(rule.every(rule.at_least(0.36), *SAVED), rule.every(rule.above(0), *SAVED)),
        "fig-accelerator",
        savings(SAVED, is_reported=False),
    ),
    Claim(
        "accelerator-stable",
        "The FSD-timed rise groks on three of three seeds up to λ = 5.",
        "§6",
        "3 of 3",
        counts(STABLE, is_reported=True),
        Rule(rule.more_than(1, "grok", operator="="), rule.more_than(1 / 2, "grok")),
        "fig-accelerator",
        counts(STABLE, is_reported=False),
        over="",
    ),
    Claim(
        "early-triggers-fail",
        "Raising λ to 10 at memorisation or at an early step prevents grokking.",
        "§6, Figure 8",
        "0 of 3",
        counts(EARLY, is_reported=True),
        Rule(rule.more_than(1, "never grok", operator="="), rule.more_than(1 / 2, "never grok")),
        "fig-accelerator",
        counts(EARLY, is_reported=False),
        over="",
    ),
    Claim(
        "early-triggers-faster",
        "At λ = 3 the triggers before circuit formation are faster than FSD's.",
        "Figure 8",
        "faster",
        savings(SOONER, is_reported=True, against="fsd_x3", suffix=" sooner"),
        Rule(rule.every(rule.above(0), *SOONER), rule.any_of(*(rule.above(0, label) for label in SOONER))),
        "fig-accelerator",
    ),
    Claim(
        "accelerator-safe-at-10",
        "The FSD trigger remains safe at λ = 10.",
        "§6, Figure 8",
        "safe (caption), safe up to 5 (text)",
        grokking(every_seed("fsd_x10")),
        Rule(contradiction="The caption calls the FSD trigger safe at λ = 10, the text up to 5 only."),
        "fig-accelerator",
    ),
)
FIGURES = (Item("fig-accelerator", ("accelerator",), _figure_8),)
