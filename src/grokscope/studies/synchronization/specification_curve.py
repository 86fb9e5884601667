"""Beyond the paper: how near any reading, in any set-up, comes to Tables 5 and 2, and in how many the claims hold."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from grokscope.measures.readings import CONDITIONS, POSITIONS, RANKS, SITES, VOTES
from grokscope.runs.records import RunRecord
from grokscope.stats import Estimate
from grokscope.studies import Evidence, Item, Measured, Part, Quantity, Records, Selection, cell
from grokscope.studies.synchronization.multiverse import CLAIMS as HEADLINES
from grokscope.studies.synchronization.multiverse import SetUp, Universe, read_set_ups, universes
from grokscope.studies.synchronization.sensitivity import CHANGES
from grokscope.view.charts.figure import Figure, Panel, Series, Source
from grokscope.view.table import Column, Row, Table, text

__all__ = ["FIGURES", "SEARCH", "SUPPLEMENTS"]

RUNS = Selection(("readings",))
OWN = "post0.read.answer.one.power90"  # the paper's reading, as we understand it
DEFAULT = "default"
UNREADABLE = (
    "With a LayerNorm in place of the MLP there are no neurons and 432 readings, elsewhere 720. A reading that is "
    "undefined, as where a causal mask leaves the first position its own symbol alone, counts as never crossing and as "
    "white noise, and holds no claim."
)
DRAWS, SEED = 200, 19  # of the bootstrap over seeds
SHOWN = 10  # closest universes in the table
POINTS = 2000  # of a curve
BINS = 60  # of the curve, where the choices behind it are shown
BLOCKS = ("0", "1")
LABELS = {
    "precedes": "share of runs in which FSD leads",
    "early": "median FSD at step 1,000",
    "rank one": "share with rank 1 before grokking",
    "lead": "mean lead (steps)",
}
THRESHOLDS = {"precedes": (0.9,), "early": (0.8,), "rank one": (0.5,), "lead": (1111.0, 2333.0)}


def _search(records: Records) -> Measured:
    """The closest universe, the paper's own, the untrained baseline, and the share of universes where a claim holds."""
    every = _universes(records)
    if not every:
        return Measured.lacking(0, 1, "runs that were read in every way")
    closest = every[0]
    own = next((one for one in every if _is_own(one)), None)
    untrained = [one.untrained for one in every if np.isfinite(one.untrained)]  # infinite where no run grokked
    parts: dict[str, Part] = {
        "value": closest.distance,
        "universes": len(every),
        "readings": len({one.reading for one in every}),
        "set-ups": len({one.set_up for one in every}),
        "own": own.distance if own else None,
        "untrained": float(np.median(untrained)) if untrained else None,
        "closer than untrained": float(np.mean([one.distance < one.untrained for one in every])),
    }
    words = (
        f"the closest is {closest.reading.name} with {CHANGES.get(closest.set_up, closest.set_up)}: distance "
        f"{closest.distance:.2f}, untrained {closest.untrained:.2f}"
    )
    return Measured(parts | _shares(records), words, len(records), _describe(closest))


def _describe(one: Universe) -> str:
    return f"Rank: {one.rank_distance:.2f} doublings away; leads: {one.lead_distance * 1000:,.0f} steps."


@lru_cache(maxsize=2)  # cells of the table, the figure and the quantity ask for the same runs
def _read(records: tuple[tuple[str, RunRecord], ...]) -> tuple[tuple[SetUp, ...], tuple[Universe, ...]]:
    """The set-ups, and all universes, the closest first."""
    set_ups = tuple(read_set_ups(dict(records)))
    every = [one for set_up in set_ups for one in universes(set_up)]
    return set_ups, tuple(sorted(every, key=lambda one: (one.distance, one.reading.name, one.set_up)))


def _universes(records: Records) -> tuple[Universe, ...]:
    return _read(tuple(records.items()))[1]


def _shares(records: Records) -> dict[str, Part]:
    """In which share of the universes each claim holds, with a percentile bootstrap over seeds."""
    set_ups, every = _read(tuple(records.items()))
    generator = np.random.default_rng(SEED)
    drawn: dict[str, list[float]] = {name: [] for name in HEADLINES}
    for _ in range(DRAWS):
        holds = [one.holding(generator.integers(len(one.grok), size=len(one.grok))) for one in set_ups]
        for name in HEADLINES:
            drawn[name].append(float(np.concatenate([one[name] for one in holds]).mean()))
    n = max(len(set_up.grok) for set_up in set_ups)
    return {name: _estimate([one.holds[name] for one in every], drawn[name], n) for name in HEADLINES}


def _estimate(holds: Sequence[bool], drawn: Sequence[float], n: int) -> Estimate:
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Estimate(float(np.mean(holds)), float(low), float(high), n)


SEARCH = Quantity("search over readings and set-ups", RUNS, _search)
COLUMNS = (
    Column("Reading"),
    Column("Set-up"),
    Column("Distance", digits=2),
    Column("Rank (doublings)", digits=2),
    Column("Leads (1,000 steps)", digits=2),
    Column("Untrained networks", digits=2),
    Column("Claims that hold (of 4)"),
)


def _place(records: Records, place: int, part: str) -> Measured:
    """A part of the universe at a place in the order of distances; −1 is the paper's reading with default settings."""
    every = _universes(records)
    chosen = [one for one in every if place >= 0 or _is_own(one)]
    if len(chosen) <= max(place, 0):
        return Measured.lacking(0, 1, "runs that were read in every way")
    one = chosen[max(place, 0)]
    values: dict[str, Part] = {
        "reading": one.reading.name,
        "set-up": CHANGES.get(one.set_up, one.set_up),
        "distance": one.distance,
        "rank": one.rank_distance,
        "leads": one.lead_distance,
        "untrained": one.untrained,
        "claims": sum(one.holds.values()),
    }
    return Measured.of(values[part], n=len(records))


def _row(evidence: Evidence, place: int) -> Row:
    def one(part: str) -> Quantity:
        return Quantity("a reading", RUNS, _place, options={"place": place, "part": part})

    return tuple(
        cell(evidence, one(part)) for part in ("reading", "set-up", "distance", "rank", "leads", "untrained", "claims")
    )


def _supplement(evidence: Evidence) -> Table:
    """The closest universes, and the paper's own reading."""
    has_runs = bool(RUNS.select(evidence.records))
    rows = [_row(evidence, place) for place in (*range(SHOWN), -1)] if has_runs else []
    return Table(
        "sup-readings",
        "sup:readings",
        "Does any reading, in any set-up, give Tables 5 and 2?",
        COLUMNS,
        rows=tuple(rows) or ((text("no run was read"), *(text(None) for _ in COLUMNS[1:])),),
        notes=(
            "A reading is a site with its block, a position, what activations are averaged over, a way of voting for "
            "the dominant mode, and a way of counting the rank; a set-up is one change of what the paper leaves open. "
            "The last row is the paper's reading, as we understand it, with the default settings.",
            "Distance: √((D₅² + D₂²)/2). D₅: mean over seeds of the root mean square over the rows of Table 5 of "
            "log₂(rank / reported rank). D₂: Wasserstein distance between our leads and the five of Table 2 at p = 97, "
            "in thousands of steps. Untrained networks: the reading's value at step 0 in place of every later one.",
            UNREADABLE,
            *(f"Claim {name}: {sentence}." for name, sentence in HEADLINES.items()),
        ),
    )


def _sentence(table: Table) -> str:
    """How close anything comes."""
    first, last = table.rows[0], table.rows[-1]
    if first[1].ours is None:
        return "Whether another reading gives Tables 5 and 2 is not known: no run was read in every way."
    return (
        f"Of all readings and set-ups {first[0].ours} with {first[1].ours} comes closest to Tables 5 and 2, at a "
        f"distance of {float(first[2].ours or 0):.2f} (untrained networks {float(first[5].ours or 0):.2f}, the "
        f"paper's reading {float(last[2].ours or 0):.2f})."
    )


def _figure(evidence: Evidence) -> Figure:
    """The specification curve: distances in order with the choices behind them, and the four claims in order."""
    records = RUNS.select(evidence.records)
    every = _universes(records) if records else []
    found = evidence.measure(SEARCH)
    title = f"{len(every):,} universes: readings × set-ups, {len(records)} runs" if every else "no run was read"
    return Figure(
        "fig-readings",
        "fig:readings",
        f"Does any reading give Tables 5 and 2? {title}",
        panels=(_distances(every), _choices(every), *(_effects(every, name) for name in HEADLINES)),
        notes=(
            *([found.text[:1].upper() + found.text[1:] + f". {found.note}"] if every else []),
            f"Choices: how often each is made among the universes of one of {BINS} equal parts of the curve, beside "
            "how often it is made overall: black is twice as often or more.",
            *(f"Claim {name}: {sentence}." for name, sentence in HEADLINES.items()),
        ),
        columns=2,
        panel_size=(4.4, 3.8),
    )


def _distances(every: Sequence[Universe]) -> Panel:
    own = [(i, one.distance) for i, one in enumerate(every) if _is_own(one)]
    series = (
        _line("untrained networks", "null", "null", [one.untrained for one in every]),
        _line("universes", "fsd", "seeds", [one.distance for one in every]),
        _mark(own),
    )
    return Panel("Distance to Tables 5 and 2", "universes in order of distance", "distance", series)


def _is_own(one: Universe) -> bool:
    """Whether it is the paper's reading with the default settings."""
    return one.reading.name == OWN and one.set_up == DEFAULT


def _line(label: str, role: str, source: Source, y: Sequence[float]) -> Series:
    """A curve over the universes in their order, of so many points as can be seen."""
    step = max(1, len(y) // POINTS)
    shown = [(float(i), value) for i, value in enumerate(y) if i % step == 0 and np.isfinite(value)]
    x, values = (tuple(one[part] for one in shown) for part in (0, 1))
    return Series(label, "line", role, source, x, values, quantity=SEARCH.key)


def _mark(values: Sequence[tuple[int, float]]) -> Series:
    """The paper's reading with the default settings, if it is there."""
    known = [(i, value) for i, value in values if np.isfinite(value)]
    x, y = (tuple(one[part] for one in known) for part in (0, 1))
    return Series("the paper's reading, default settings", "points", "grokked", "seeds", x, y, quantity=SEARCH.key)


def _choices(every: Sequence[Universe]) -> Panel:
    """How often each choice is made along the curve."""
    options = _options()
    x, y, depth = list[float](), list[float](), list[float]()
    bins = np.array_split(np.arange(len(every)), BINS) if every else []
    for row, (kind, value) in enumerate(options.values()):
        made = np.array([_choice(one)[kind] == value for one in every], dtype=float)
        for column, places in enumerate(bins):
            if len(places) and made.any():
                x.append(column)
                y.append(row)
                depth.append(float(min(1.0, made[places].mean() / made.mean() / 2)))
    cells = Series("choices", "cells", "fsd", "seeds", tuple(x), tuple(y), depth=tuple(depth), quantity=SEARCH.key)
    ticks = tuple((row, name) for row, name in enumerate(options))
    return Panel("Choices behind it", "part of the curve", "", (cells,) if every else (), y_ticks=ticks)


def _options() -> dict[str, tuple[str, str]]:
    """Every choice by its label: its kind and value."""
    kinds = {
        "site": [f"{site}{block}" for block in BLOCKS for site in SITES],
        "position": list(POSITIONS),
        "condition": list(CONDITIONS),
        "vote": list(VOTES),
        "rank": list(RANKS),
        "set-up": list(CHANGES),
    }
    return {f"{kind}: {value}": (kind, value) for kind, values in kinds.items() for value in values}


def _choice(one: Universe) -> dict[str, str]:
    reading = one.reading
    return {
        "site": reading.site,
        "position": reading.position,
        "condition": reading.condition,
        "vote": reading.vote,
        "rank": reading.rank,
        "set-up": one.set_up,
    }


def _effects(every: Sequence[Universe], name: str) -> Panel:
    """A claim's effect in every universe, in order, with the values between which it holds."""
    known = sorted((one for one in every if not np.isnan(one.effects[name])), key=lambda one: one.effects[name])
    share = float(np.mean([one.holds[name] for one in every])) if every else 0.0
    series = (
        _line("universes", "fsd", "seeds", [one.effects[name] for one in known]),
        _mark([(i, one.effects[name]) for i, one in enumerate(known) if _is_own(one)]),
        *(Series("holds", "horizontal", "theory", "paper", y=(value,), legend="") for value in THRESHOLDS[name]),
    )
    title = f"{LABELS[name][:1].upper()}{LABELS[name][1:]}: the claim holds in {share:.1%}"
    return Panel(title, "universes in order", LABELS[name], series)


SUPPLEMENTS = (Item("sup-readings", ("readings",), _supplement, _sentence),)
FIGURES = (Item("fig-readings", ("readings",), _figure),)
