"""§5.3: weight decay raised at a fork, six branches from one checkpoint (Table 4, Figure 3)."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import isfinite, isnan, nan

from grokscope.law import Ending
from grokscope.stats import Estimate, kaplan_meier
from grokscope.studies import (
    Claim,
    Evidence,
    Item,
    Measured,
    Quantity,
    Records,
    Rule,
    Selection,
    Stratum,
    cell,
    rule,
)
from grokscope.studies.reduction import mean, total
from grokscope.studies.synchronization import readings, series
from grokscope.studies.synchronization.branches import at, branch_estimand, derive_law
from grokscope.studies.synchronization.forks import law, times_to_grok
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.numbers import format_range
from grokscope.view.table import Column, Row, Table, Value, not_trained, text

__all__ = ["CLAIMS", "DECAYS", "FIGURES", "SEEN", "TABLES", "all_branches", "branch", "branches", "untrained_branches"]

DECAYS = ("1", "2", "3", "4", "5", "10")
RUN = "add_mod97_s42"
THEORY_CONSTANT = 3000  # Figure 3: Δt = 3,000/λ
MEDIAN = "Δt, median of all seeds"
SEEN = f"Evaluated every {readings.CADENCE} steps, as in the paper; forked at step 1,000 with Adam's moments kept."
POOLED = "All seeds: median Δt of the runs forked before grokking; one that did not grok is later than all others."
WORDS = {str(Ending.CENSORED): "never", str(Ending.FAILED): "unstable", str(Ending.BEFORE): "before"}


def branches(*decays: str) -> Selection:
    """Branches of the reported run."""
    return Selection(("fork",), tuple(f"{RUN}_x{decay}" for decay in dict.fromkeys(decays)))


def all_branches(*decays: str) -> Selection:
    """Branches of all seeds."""
    return Selection(("fork",), weight_decays=tuple(map(float, decays)))


def branch(decay: str) -> Quantity:
    """Δt of the reported run's branch at one λ."""
    return times_to_grok(branches(decay), readings.CADENCE)


def pooled(decay: str) -> Quantity:
    """Δt of all seeds at one λ."""
    return times_to_grok(all_branches(decay), readings.CADENCE)


def untrained_branches(evidence: Evidence) -> tuple[str, ...]:
    """The note that names the reported branches that were not trained."""
    return not_trained({*branches(*DECAYS).names} - evidence.experiment("fork").keys())


def _speedup(found: Mapping[str, Measured]) -> Measured:
    """How many times sooner than at λ = 1."""
    control, own = found["control"], found["branch"]
    if control.missing or own.missing:
        return Measured.lacking(2 - bool(control.missing) - bool(own.missing), 2, "branches")
    steps = [one.number("Δt") for one in (control, own)]
    return Measured.of(steps[0] / steps[1] if not any(map(isnan, steps)) else "n/a", n=2)


def speedup(decay: str) -> Quantity:
    """Δt at λ = 1 over Δt at another λ."""
    return Quantity(
        "speedup",
        branches("1", decay),
        _speedup,
        readings.CADENCE,
        members={"control": branch("1"), "branch": branch(decay)},
    )


def _table_4(evidence: Evidence) -> Table:
    """How much sooner a run groks when λ is raised at step 1,000."""
    reported = REPORTED["tab:wd_intervention"]
    is_widened = _is_widened(evidence)
    rows: list[Row] = []
    for decay in DECAYS:
        paper = {column: reported.get(decay, column) for column in reported.columns}
        never: Value = "never" if paper["grok"] is None else None
        own, everyone = branch(decay), pooled(decay)
        cells = (
            cell(evidence, own, "grok step", paper["grok"] or never),
            cell(evidence, own, "Δt", paper["wait"] or never),
            cell(evidence, speedup(decay), reported=paper["speedup"]),
            cell(evidence, own, "outcome", paper["mark"]),
        )
        seeds = (cell(evidence, everyone, "median"), cell(evidence, everyone, str(Ending.GROKKED)))
        rows.append((text(decay), *cells, *(seeds if is_widened else ())))
    return Table(
        "tab-wd",
        reported.label,
        "Intervention on weight decay",
        columns=(
            *map(Column, ("λ", "Grok step", "Δt from fork")),
            Column("Speedup vs. λ = 1", digits=2),
            Column("Outcome"),
            *((Column("Δt, all seeds"), Column("Grokked, all seeds", digits=2)) if is_widened else ()),
        ),
        rows=tuple(rows),
        notes=(SEEN, *((POOLED,) if is_widened else ()), *untrained_branches(evidence)),
    )


def _is_widened(evidence: Evidence) -> bool:
    return len({name.rpartition("_x")[0] for name in evidence.experiment("fork")} | {RUN}) > 1


def _share_grokked(records: Records) -> Measured:
    """The share that has grokked at each step at which one does, 1 − Kaplan–Meier; the parts are the steps."""
    runs = [record.timeline for record in records.values()]
    longest = max(run.last for run in runs)
    steps = [longest if run.grokked is None else run.grokked for run in runs]
    found = kaplan_meier(steps, [run.grokked is not None for run in runs])
    highs = [0.0 if isnan(high) else high for high in found.high.tolist()]
    rows = zip(found.times.tolist(), found.survival.tolist(), found.low.tolist(), highs, strict=True)
    return Measured(
        {str(int(time)): Estimate(1 - at, 1 - high, 1 - low, len(runs)) for time, at, low, high in rows}, n=len(runs)
    )


def _figure_3(evidence: Evidence) -> Figure:
    """Accuracy after the fork by λ, and Δt against 3,000/λ."""
    runs = evidence.experiment("fork")
    until = series.last_shown(branches(*DECAYS).select(evidence.records).values(), 6000)
    curves = tuple(
        series.line(
            evidence, series.curve(branches(decay), "validation_accuracy"), until, f"λ = {decay}", f"λ = {decay}"
        )
        for decay in reversed(DECAYS)  # the steady ones above the unstable
    )
    seeds = format_range(Counter(name.rpartition("_x")[2] for name in runs).values())
    shares = [_share_series(evidence, decay, until) for decay in DECAYS if all_branches(decay).select(evidence.records)]
    panels = [
        Panel("Seed 42 by λ", "step", "validation accuracy", curves),
        Panel(f"All seeds, {seeds} per λ, 95 % bands", "step", "share grokked", tuple(shares)),
    ][: 1 + _is_widened(evidence)]
    panels = [replace(panel, x_range=(1000, until), y_range=(-0.06, 1.08)) for panel in panels]
    panels.append(_times_panel(evidence))
    others = f" and all seeds, {seeds} per λ" if _is_widened(evidence) else ""
    return Figure(
        "fig-wd",
        "fig:wd_intervention",
        f"Weight decay raised at step 1,000: {f'seed 42{others}, {len(runs)} branches' if runs else 'no runs'}",
        tuple(panels),
        notes=(
            f"Δt is evaluated every {readings.CADENCE} steps, as in the paper, the curves every 100; Adam's moments "
            "are kept.",
            "All seeds: the share grokked is 1 − Kaplan–Meier, and unstable branches stay in the risk set; Δt is the "
            "median with its 95 % interval.",
            *((series.OPEN,) if _is_widened(evidence) else ()),
            *untrained_branches(evidence),
        ),
        columns=len(panels),
        panel_size=(3.3, 2.4) if len(panels) < 3 else (2.6, 2.2),
    )


def _share_series(evidence: Evidence, decay: str, until: int) -> Series:
    quantity = Quantity("share grokked", all_branches(decay), _share_grokked)
    parts = {int(step): at for step, at in evidence.measure(quantity).parts.items() if isinstance(at, Estimate)}
    kept = {step: at for step, at in parts.items() if step <= until}
    y, low, high = ((0.0, *(getattr(at, end) for at in kept.values())) for end in ("value", "low", "high"))
    x, y, low, high = (1000, *kept, until), (*y, y[-1]), (*low, low[-1]), (*high, high[-1])
    return Series(f"λ = {decay}", "step", f"λ = {decay}", "run", x, y, low, high, quantity=quantity.key)


def _times_panel(evidence: Evidence) -> Panel:
    """Δt by λ: observed, reported, and by the law."""
    reported, places = REPORTED["tab:wd_intervention"], tuple(range(len(DECAYS)))
    medians = series.medians((cell(evidence, pooled(decay), "median") for decay in DECAYS), "mem", MEDIAN)
    fit = law(branches(*DECAYS[:3]), readings.CADENCE)
    constant = evidence.measure(fit).number("C")
    ours, theory = (tuple(one / float(decay) for decay in DECAYS) for one in (constant, THEORY_CONSTANT))
    label = f"{constant:,.0f}/λ, our mean(λΔt) of λ ≤ 3"
    points = {place: reported.get(decay, "wait") for place, decay in enumerate(DECAYS)}
    return Panel(
        "Steps from fork to grokking",
        "λ after the fork",
        "Δt (steps)",
        series=(
            *((_bars(evidence),) if evidence.experiment("fork") else ()),
            *((medians,) if _is_widened(evidence) else ()),
            *(
                (Series(label, "line", "restored", "fit", places, ours, quantity=fit.key),)
                if isfinite(constant)
                else ()
            ),
            Series(f"{THEORY_CONSTANT:,}/λ, paper", "line", "theory", "paper", places, theory),
            series.reported_points(points, "Δt, paper"),
        ),
        x_ticks=tuple(enumerate(DECAYS)),
    )


def _bars(evidence: Evidence) -> Series:
    """Δt of the reported run's branches; in words where there is none."""
    found = [evidence.measure(branch(decay)) for decay in DECAYS]
    words = tuple("no run" if one.missing else WORDS.get(str(one.parts["ending"]), "") for one in found)
    values = tuple(nan if word else one.number("Δt") for one, word in zip(found, words, strict=True))
    keys, places = "; ".join(branch(decay).key for decay in DECAYS), tuple(range(len(DECAYS)))
    return Series("Δt, seed 42", "bars", "restored", "run", places, values, (), (), words, 0.6, quantity=keys)


ONE_PARENT = (Stratum("parents of add_mod97", all_branches(*DECAYS), 1, (RUN,)),)
STABLE, FITTED, EVERY = (tuple(map(float, DECAYS[:count])) for count in (3, 5, 6))
IN_ORDER = "{Δt (λ = 1):,.0f}, {Δt (λ = 2):,.0f}, {Δt (λ = 3):,.0f}"
FALLS = {"falls": total("falls"), "share that falls": mean("falls")}


def _law_claim(
    name: str, statement: str, where: str, reported: str, decays: tuple[float, ...], c: int, least: float
) -> Claim:
    """Δt = C/λ on the branches of one parent, with the reported C within 20 %, and R²."""
    estimand = branch_estimand(
        f"C = mean(λΔt), λ ≤ {decays[-1]:g}",
        ONE_PARENT,
        decays,
        {"Δt": "mean"},
        "C = {C:,.0f}, R² = {R²:.2f}",
        ("C", ",.0f"),
        derive_law,
        readings.CADENCE,
    )
    return Claim(
        name,
        statement,
        where,
        reported,
        estimand,
        Rule(rule.all_of(rule.within(0.2, c, "C"), rule.at_least(least, "R²"))),
        "tab-timing",
    )


CLAIMS = (
    Claim(
        "fork-order",
        "More weight decay at the fork gives strictly earlier grokking at λ = 1, 2, 3.",
        "§5.3, Table 4, Figure 3",
        "3,000, 1,500, 1,000",
        branch_estimand(
            "order of Δt",
            ONE_PARENT,
            STABLE,
            {"Δt": "mean"},
            IN_ORDER,
            ("share that falls", ".0%"),
            cadence=readings.CADENCE,
            whole=FALLS,
        ),
        Rule(rule.more_than(1, "falls", operator="=")),
        "tab-wd",
    ),
    Claim(
        "fork-10-fails",
        "The branch with λ = 10 does not grok by step 8,000.",
        "§5.3, Table 4",
        "‡",
        branch_estimand(
            "branches at λ = 10 that never grok",
            ONE_PARENT,
            (10.0,),
            {"never": "mean"},
            "{never (λ = 10):.0f} of {n:.0f} never grok",
            (at("never", 10), ".0%"),
            cadence=readings.CADENCE,
        ),
        Rule(rule.equals(1, at("never", 10))),
        "tab-wd",
    ),
    Claim(
        "fork-4-5-unstable",
        "The branches with λ = 4 and 5 grok, and then fall below a validation accuracy of one half, by step 8,000.",
        "§5.3, Table 4",
        "†, †",
        branch_estimand(
            "branches at λ = 4 and 5 that fail after grokking",
            ONE_PARENT,
            (4.0, 5.0),
            {"unstable after": "mean"},
            "λ = 4: {unstable after (λ = 4):.0f}, λ = 5: {unstable after (λ = 5):.0f} of {n:.0f}",
            ((at("unstable after", 4), at("unstable after", 5)), ".0%"),
            cadence=readings.CADENCE,
        ),
        Rule(rule.every(rule.equals(1), at("unstable after", 4), at("unstable after", 5))),
        "tab-wd",
    ),
    _law_claim(
        "fork-constant-stable",
        "The stable branches, λ = 1 to 3, follow Δt = C/λ with C within 20 % of 3,000 and R² of at least 0.95.",
        "§5.3, §6, Table 9",
        "C = 3,000, R² = 1.00",
        STABLE,
        3000,
        0.95,
    ),
    _law_claim(
        "fork-constant-all",
        "All branches that grok, λ = 1 to 5, follow Δt = C/λ with C within 20 % of 3,600 and R² of at least 0.71.",
        "§6, Table 9",
        "C = 3,600, R² = 0.81",
        FITTED,
        3600,
        0.71,
    ),
)
TABLES = (Item("tab-wd", ("fork",), _table_4),)
FIGURES = (Item("fig-wd", ("fork",), _figure_3),)
