"""§6, Figure 8: weight decay raised once, at the FSD crossing, at memorisation, early or at random."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isnan
from statistics import fmean
from typing import Any

from grokscope.studies import (
    Claim,
    Contradiction,
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
    configuration,
    rule,
)
from grokscope.studies.reduction import mean
from grokscope.studies.synchronization import readings, series
from grokscope.studies.synchronization.comparisons import grokking, measure_grokking
from grokscope.studies.synchronization.designs import as_flag, step_or_inf
from grokscope.timeline import Outcome, StabilityStatus
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.numbers import format_percent, format_range
from grokscope.view.table import not_trained

__all__ = ["CLAIMS", "CONTRADICTIONS", "FIGURES"]

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


def _late_note(late: Iterable[Part]) -> str:
    shown = [str(text) for text in late if text]
    return f"λ rose only after grokking, or never, in: {', '.join(shown)}." if shown else ""


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


def _read_arms(runs: Records, names: tuple[str, ...]) -> Mapping[str, float]:
    """Of one seed, for each configuration: when it groks, if it does, and whether it then falls apart or stays."""
    if any(name not in runs for name in names):
        return {}
    found: dict[str, float] = {}
    for name in names:
        events = runs[name].timeline
        groks, status = events.grokked is not None, events.stable.status
        found[f"grok {name}"] = step_or_inf(events.grokked)
        found[f"groks {name}"] = as_flag(groks)
        found[f"falls apart {name}"] = as_flag(groks and events.outcome is Outcome.UNSTABLE_AFTER)
        found[f"stays {name}"] = as_flag(status is StabilityStatus.STABLE)
    return found


def _derive_savings(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """1 − mean grok step of every configuration over that of the first; never is later than all."""
    steps = {name.removeprefix("grok "): value for name, value in parts.items() if name.startswith("grok ")}
    first, *others = steps
    return {f"saves {name}": 1 - steps[name] / steps[first] for name in others}


def _configurations(
    name: str, names: tuple[str, ...], text: str, effect: tuple[str | tuple[str, ...], str], of_all: bool = False
) -> Estimand:
    """Configurations at three seeds, or at all."""
    runs = every_seed(*names)
    own = tuple(f"s{seed}" for seed in SEEDS)
    stratum = Stratum("seeds of add_mod97", runs, None if of_all else len(SEEDS), () if of_all else own)
    parts = {
        f"{what} {one}": mean(f"{what} {one}") for one in names for what in ("grok", "groks", "falls apart", "stays")
    }
    return Estimand(
        name, (stratum,), _read_arms, parts, text, effect, "seed", options={"names": names}, derive=_derive_savings
    )


RAISED_AT_FSD = ("fsd_x3", "fsd_x5")
CLAIMS = (
    Claim(
        "accelerator-saves",
        "Raising λ to 3 and to 5 when FSD crosses saves 36 to 43 % of the mean steps to grokking, within 5 points.",
        "Abstract, §6, Figure 8",
        "36 to 43 %",
        _configurations(
            "steps saved against fixed λ",
            ("fixed", *RAISED_AT_FSD),
            "{saves fsd_x3:.0%} at λ = 3, {saves fsd_x5:.0%} at λ = 5",
            (("saves fsd_x3", "saves fsd_x5"), ".0%"),
        ),
        Rule(rule.every(rule.between(0.31, 0.48), "saves fsd_x3", "saves fsd_x5")),
        "fig-accelerator",
    ),
    Claim(
        "accelerator-beats-random",
        "Raising λ to 3 when FSD crosses saves at least 10 % of the mean steps against raising it at a random step.",
        "§6: FSD's timing carries information; tested here",
        "not tested",
        _configurations(
            "steps saved against a random trigger",
            ("random_x3", "fsd_x3"),
            "{saves fsd_x3:.0%}",
            ("saves fsd_x3", ".0%"),
            of_all=True,
        ),
        Rule.of_many(rule.at_least(0.1, "saves fsd_x3")),
        "fig-accelerator",
        "new",
    ),
    Claim(
        "accelerator-groks",
        "With λ raised to 3 and to 5 at the FSD crossing three of three seeds grok.",
        "§6",
        "3 of 3",
        _configurations(
            "grokking with λ raised at the FSD crossing",
            RAISED_AT_FSD,
            "λ = 3: {groks fsd_x3:.0%}, λ = 5: {groks fsd_x5:.0%}",
            (tuple(f"groks {name}" for name in RAISED_AT_FSD), ".0%"),
        ),
        Rule(rule.every(rule.equals(1), *(f"groks {name}" for name in RAISED_AT_FSD))),
        "fig-accelerator",
    ),
    Claim(
        "accelerator-stays-stable",
        "With λ raised to 3 or 5 at the FSD crossing no run of three seeds falls apart after grokking.",
        "Abstract, §6",
        "stable",
        _configurations(
            "runs that fall apart after grokking",
            RAISED_AT_FSD,
            "λ = 3: {falls apart fsd_x3:.0%}, λ = 5: {falls apart fsd_x5:.0%}",
            (tuple(f"falls apart {name}" for name in RAISED_AT_FSD), ".0%"),
        ),
        Rule(rule.every(rule.equals(0), *(f"falls apart {name}" for name in RAISED_AT_FSD))),
        "fig-accelerator",
    ),
    Claim(
        "restoring-stabilises",
        "Restoring λ after grokking keeps more runs at 0.95 for the next 2,000 steps than leaving it at 5.",
        "§6",
        "proposed",
        _configurations(
            "runs that stay grokked",
            ("restored_x5", "fsd_x5"),
            "restored {stays restored_x5:.0%}, left {stays fsd_x5:.0%}",
            (("stays restored_x5", "stays fsd_x5"), ".0%"),
            of_all=True,
        ),
        Rule.of_many(rule.falling("stays restored_x5", "stays fsd_x5")),
        "fig-accelerator",
    ),
    Claim(
        "early-triggers-fail",
        "Raising λ to 10 at memorisation or at step 300 prevents grokking in three of three seeds.",
        "§6, Figure 8",
        "0 of 3",
        _configurations(
            "grokking with λ raised to 10 early",
            ("mem_x10", "early_x10"),
            "at memorisation {groks mem_x10:.0%}, at step 300 {groks early_x10:.0%}",
            (("groks mem_x10", "groks early_x10"), ".0%"),
        ),
        Rule(rule.every(rule.equals(0), "groks mem_x10", "groks early_x10")),
        "fig-accelerator",
    ),
    Claim(
        "early-triggers-faster",
        "At λ = 3 raising it at memorisation or at step 300 is faster than at the FSD crossing.",
        "Figure 8",
        "faster",
        _configurations(
            "steps saved against the FSD trigger",
            ("fsd_x3", "mem_x3", "early_x3"),
            "at memorisation {saves mem_x3:.0%}, at step 300 {saves early_x3:.0%}",
            (("saves mem_x3", "saves early_x3"), ".0%"),
        ),
        Rule(rule.every(rule.above(0), "saves mem_x3", "saves early_x3")),
        "fig-accelerator",
    ),
    Claim(
        "accelerator-safe-at-10",
        "Raised to 10 at the FSD crossing, three of three seeds grok.",
        "Figure 8, caption",
        "safe",
        _configurations("grokking with λ raised to 10", ("fsd_x10",), "{groks fsd_x10:.0%}", ("groks fsd_x10", ".0%")),
        Rule(rule.equals(1, "groks fsd_x10")),
        "fig-accelerator",
    ),
)
CONTRADICTIONS = (
    Contradiction(
        "accelerator-safe-at-10",
        "§6, Figure 8",
        "The caption calls the FSD trigger safe at λ = 10, the text up to 5 only.",
        ("accelerator-safe-at-10", "accelerator-groks"),
    ),
)
FIGURES = (Item("fig-accelerator", ("accelerator",), _figure_8),)
