"""Figures of leads: FSD against the restricted loss, and the architectures."""

from collections.abc import Iterable, Mapping, Sequence

from grokscope.studies.evidence import Evidence
from grokscope.studies.figures.reading import OPEN, ends_of, lead_of, paper_points
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.studies.tables.leads import LOOKS, widened
from grokscope.studies.tables.reading import pooled_leads, seen_every
from grokscope.timeline import Lead, Timeline
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.table import Cell, not_trained

__all__ = ["fig_arch", "fig_exloss"]

PAIR = {"fsd": -0.2, "restricted": 0.2}  # bars of one experiment stand side by side
NAMES = {"fsd": "FSD", "restricted": "restricted loss"}
VARIANTS = {
    "two_layers": "2 layers",
    "one_layer": "1 layer",
    "attention_only": "attention\nonly",
    "mlp_only": "MLP only",
    "mlp_only_pooled": "MLP only,\nsees a, b",
}
MEDIANS = (
    "Of many seeds: the median lead with its 95 % interval; where some never synchronised it is Kaplan–Meier's, and "
    "those that did not grok have no lead."
)
LEAD = "lead over grokking (steps)"


def fig_exloss(evidence: Evidence) -> Figure:
    """Figure 1: leads of FSD and of the restricted loss, nine additions."""
    printed, base = REPORTED["tab:exloss"], evidence.study("base")
    names = [name for name in printed.rows if name != "mean"]
    found = {name: seen_every(base[name]).timeline for name in names if name in base}
    ticks = tuple((place, _tick(name)) for place, name in enumerate(names))
    series = (
        *(_lead_bars([_lead(found.get(name), which) for name in names], which) for which in PAIR),
        *(_printed_leads(names, which) for which in PAIR),
    )
    panels = [
        Panel("The printed runs (p above, seed below)", "experiment", LEAD, series if found else series[2:], ticks)
    ]
    pooled = {task: runs for task, runs in widened(base, printed).items() if task.startswith("add")}
    if pooled:
        panels.append(_by_prime(pooled))
    title = f"How long before grokking: FSD and the restricted loss, {len(found)} of {len(names)} printed additions"
    if pooled:
        title += f" and all {sum(map(len, pooled.values()))} runs of {len(pooled)} primes"
    notes = (
        f"{LOOKS} A lead of 0 is a tie; below 0 the crossing came after grokking.",
        *((MEDIANS, OPEN) if pooled else ()),
        *not_trained(set(names) - base.keys()),
    )
    return Figure("fig-exloss", "fig:fsd_exloss", title, tuple(panels), notes, len(panels), (3.6, 2.5))


def _tick(name: str) -> str:
    task, _, seed = name.rpartition("_s")
    return f"{task.rpartition('mod')[2]}\n{seed}"


def _lead(events: Timeline | None, which: str) -> Lead | None:
    if events is None:
        return None
    return events.sync.lead if which == "fsd" else events.restricted.lead


def _lead_bars(leads: Sequence[Lead | None], which: str) -> Series:
    read = [lead_of(lead) for lead in leads]
    places = tuple(place + PAIR[which] for place in range(len(leads)))
    values, words = (tuple(part) for part in zip(*read, strict=True))
    return Series(NAMES[which], "bars", which, "run", places, values, (), (), words, width=0.38)


def _printed_leads(names: Sequence[str], which: str) -> Series:
    column = "lead" if which == "fsd" else "restricted_lead"
    values = {place + PAIR[which]: REPORTED["tab:exloss"].get(name, column) for place, name in enumerate(names)}
    return paper_points(values)


def _by_prime(pooled: Mapping[str, Sequence[Timeline]]) -> Panel:
    """Medians over all seeds of each prime."""
    tasks = sorted(pooled, key=lambda task: int(task.rpartition("mod")[2]))
    ticks = tuple((i, f"{task.rpartition('mod')[2]}\nn = {len(pooled[task])}") for i, task in enumerate(tasks))
    series = []
    for which in PAIR:
        cells = [pooled_leads(filter(None, (_lead(run, which) for run in pooled[task]))) for task in tasks]
        series.append(_medians(cells, which, f"{NAMES[which]}, median of all seeds", PAIR[which]))
    zero = Series("", "horizontal", "null", "null", (), (0,))
    return Panel("All seeds of each prime", "p", LEAD, (zero, *series), ticks, x_range=(-0.6, len(tasks) - 0.4))


def _medians(cells: Iterable[Cell], role: str, label: str, offset: float = 0.0) -> Series:
    found = list(cells)
    values, lows, highs = ends_of(found)
    words = tuple("never" if cell.ours == "never" else "" for cell in found)
    places = tuple(place + offset for place in range(len(found)))
    return Series(label, "points", role, "seeds", places, values, lows, highs, words)


def fig_arch(evidence: Evidence) -> Figure:
    """Figure 5: the lead of FSD in each architecture."""
    printed, study = REPORTED["tab:arch_ablation"], evidence.study("architecture")
    found = {name: seen_every(record).timeline for name, record in study.items()}
    own = [found.get(f"{variant}_s42") for variant in VARIANTS]
    values, words = (
        tuple(part) for part in zip(*(lead_of(run.sync.lead if run else None) for run in own), strict=True)
    )
    groups = [[found[name] for name in study if name.rpartition("_s")[0] == variant] for variant in VARIANTS]
    series: list[Series] = []
    if found:
        series.append(Series("seed 42", "bars", "fsd", "run", tuple(range(len(own))), values, (), (), words, width=0.5))
    if max(map(len, groups)) > 1:
        cells = [pooled_leads(run.sync.lead for run in runs) for runs in groups]
        series.append(_medians(cells, "validation", "median of all seeds that grokked"))
    series.append(paper_points({place: printed.get(name, "lead") for place, name in enumerate(VARIANTS)}))
    counts = [f"{sum(run.grokked is not None for run in runs)}/{len(runs)}" for runs in groups]
    ticks = tuple((i, f"{text}\n{counts[i]}" if groups[i] else text) for i, text in enumerate(VARIANTS.values()))
    panel = Panel("Lead of FSD; below each: runs that grokked", "architecture", LEAD, tuple(series), ticks)
    title = (
        f"Lead of FSD by architecture, addition mod 97, {len(found)} runs"
        if found
        else "Lead of FSD by architecture: no runs"
    )
    notes = (
        LOOKS,
        "FSD is read at block 0's MLP neurons, in attention-only models at its attention output.",
        "MLP-only as written never sees a or b at the position that is read; the last does. The paper has no such.",
        *((MEDIANS, OPEN) if max(map(len, groups)) > 1 else ()),
        *not_trained({f"{variant}_s42" for variant in VARIANTS} - study.keys()),
    )
    return Figure("fig-arch", "fig:arch_ablation", title, (panel,), notes, 1, (4.2, 2.5))
