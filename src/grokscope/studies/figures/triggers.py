"""The figure of the accelerator: steps to grokking by what raises weight decay, and how far."""

from collections.abc import Mapping, Sequence

from grokscope.runs.records import RunRecord
from grokscope.studies.claims.chosen import triggered_late
from grokscope.studies.claims.claim import number
from grokscope.studies.evidence import Evidence
from grokscope.studies.figures.captions import ACCELERATED
from grokscope.studies.figures.reading import OPEN, ends_of
from grokscope.studies.tables.reading import pooled_steps, span_of
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.table import Cell, not_trained

__all__ = ["fig_accelerator"]

SEEDS = (42, 0, 1)  # printed
HIGHS = ("3", "5", "10")
ARMS = {
    "fsd": "at FSD ≥ 0.80",
    "mem": "at memorisation",
    "early": "at step 300",
    "random": "at a random step",
    "restored": "at FSD ≥ 0.80, restored after grokking",
}
GROUP, WIDTH = 1.0, 0.155
Arm = Mapping[int, RunRecord]


def fig_accelerator(evidence: Evidence) -> Figure:
    """Figure 8: steps to grokking by trigger and λ_high."""
    study = evidence.study("accelerator")
    arms: dict[str, dict[int, RunRecord]] = {}
    for name, record in study.items():
        arm, _, seed = name.rpartition("_s")
        arms.setdefault(arm, {})[int(seed)] = record
    printed = {arm: {seed: runs[seed] for seed in SEEDS if seed in runs} for arm, runs in arms.items()}
    fixed, raised = arms.get("fixed", {}), {arm: runs for arm, runs in arms.items() if arm != "fixed"}
    seeds = span_of([len(runs) for runs in raised.values()])
    is_widened = any(len(runs) > len(SEEDS) for runs in raised.values())
    panels = [_panel("Mean of the printed seeds 42, 0 and 1 that grokked", printed, is_mean=True)]
    if is_widened:
        common = set().union(*raised.values())  # fixed λ has more seeds, as base runs
        paired = raised | {"fixed": {seed: run for seed, run in fixed.items() if seed in common}}
        panels.append(_panel(f"Median of all seeds, {seeds} a trigger, with 95 % intervals", paired, is_mean=False))
    counts = f"{len(study) - len(fixed)} runs, {seeds} seeds a trigger" if study else "no runs"
    title = f"Weight decay raised once, addition mod 97: {counts}"
    notes = (
        "Above each bar: runs that grokked, of those trained. Grokking is seen every 100 steps.",
        "The paper's band is 36 to 43 % below our mean at fixed λ = 1. It prints no steps, and says that none of three "
        "seeds groks where λ is raised to 10 at memorisation or at an early step.",
        "Means are of the runs that grokked, so an arm in which few did looks better than it is; medians count all.",
        *_savings(fixed, raised),
        *_idle(raised),
        *((OPEN,) if is_widened else ()),
        *not_trained({f"{arm}_s{seed}" for arm in _names() for seed in SEEDS} - study.keys()),
    )
    return Figure("fig-accelerator", "fig:accelerator", title, tuple(panels), notes, 1, (5.2, 2.2))


def _savings(fixed: Arm, arms: Mapping[str, Arm]) -> tuple[str, ...]:
    """How much sooner than at fixed λ each arm groks: 1 − ratio of the mean steps, seed by seed."""
    told = []
    for arm, runs in arms.items():
        pairs = [(run.timeline.grokked, fixed[seed].timeline.grokked) for seed, run in runs.items() if seed in fixed]
        both = [(own, other) for own, other in pairs if own is not None and other is not None]
        if both:
            share = 1 - sum(own for own, _ in both) / sum(other for _, other in both)
            told.append(f"{arm} {number(100 * share)} % ({len(both)})")
    if not told:
        return ()
    return (f"Mean steps saved against fixed λ = 1, over the seeds (how many) at which both grok: {', '.join(told)}.",)


def _idle(arms: Mapping[str, Arm]) -> tuple[str, ...]:
    """Where λ rose too late to do anything: such a run is one at fixed λ."""
    late = {arm: sum(map(triggered_late, runs.values())) for arm, runs in arms.items()}
    told = [f"{arm} {count} of {len(arms[arm])}" for arm, count in late.items() if count]
    return (f"λ rose only after grokking, or never, in: {', '.join(told)}.",) if told else ()


def _names() -> tuple[str, ...]:
    return ("fixed", *(f"{arm}_x{high}" for arm in ARMS for high in HIGHS))


def _panel(title: str, arms: Mapping[str, Arm], is_mean: bool) -> Panel:
    series: list[Series] = [*_fixed(arms.get("fixed", {}), is_mean)]
    for place, (arm, label) in enumerate(ARMS.items()):
        runs = [arms.get(f"{arm}_x{high}", {}) for high in HIGHS]
        if any(runs):
            cells = [_cell(one, is_mean) for one in runs]
            values, lows, highs = ends_of(cells)
            x = tuple(GROUP * i + WIDTH * (place - 2) for i in range(len(HIGHS)))
            ends = ((), ()) if is_mean else (lows, highs)
            counts = tuple(_count(one) for one in runs)
            series.append(Series(label, "bars", arm, "run", x, values, *ends, counts, width=0.9 * WIDTH))
    ticks = tuple((GROUP * i, f"λ → {high}") for i, high in enumerate(HIGHS))
    return Panel(
        title, "weight decay after the trigger", "steps to grokking", tuple(series), ticks, x_range=(-0.5, 2.5)
    )


def _fixed(runs: Arm, is_mean: bool) -> tuple[Series, ...]:
    """Fixed λ as a line, and where the paper says that the trigger at FSD comes to stand."""
    cell = _cell(runs, is_mean)
    if not isinstance(cell.ours, int | float):
        return ()
    ends, value = (-0.5, 2.5), float(cell.ours)
    _, lows, highs = ends_of([cell])
    interval = (lows * 2, highs * 2) if not is_mean and lows[0] == lows[0] and highs[0] == highs[0] else ((), ())
    least, most = (value * (1 - share) for share in reversed(ACCELERATED))
    return (
        Series("paper, FSD trigger: 36–43 % sooner", "band", "fsd", "paper", ends, (), (least,) * 2, (most,) * 2),
        Series(
            f"fixed λ = 1 ({_count(runs)} grokked)",
            "line",
            "fixed",
            "run",
            ends,
            (value, value),
            *interval,
            legend="fixed λ = 1",
        ),
    )


def _count(runs: Arm) -> str:
    return f"{sum(run.timeline.grokked is not None for run in runs.values())}/{len(runs)}"


def _cell(runs: Arm, is_mean: bool) -> Cell:
    events = [record.timeline for record in runs.values()]
    if not is_mean:
        longest = max((run.last for run in events), default=0)  # one that became unstable stays at risk
        return pooled_steps([run.grokked for run in events], [longest] * len(events))
    steps: Sequence[int] = [run.grokked for run in events if run.grokked is not None]
    return Cell(sum(steps) / len(steps)) if steps else Cell()
