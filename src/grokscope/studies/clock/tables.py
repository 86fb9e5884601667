"""The tables: every dose, the temperatures, the controls, and the laws."""

from collections.abc import Callable, Iterable
from math import isfinite

from grokscope.stats import estimate_median, kaplan_meier, share_that
from grokscope.studies import Evidence, Item, Measured, Part, Quantity, Records, cell
from grokscope.studies.clock.cells import MODELS
from grokscope.studies.clock.experiments import DOSES, RANDOM, TEMPERATURES, dose
from grokscope.studies.clock.laws import LAWS, rate_cells, score_laws
from grokscope.studies.clock.norms import norm_at_grokking_of
from grokscope.studies.clock.reading import cells_of, held_level, logits_at_grokking
from grokscope.view.table import Column, Row, Table, text

__all__ = ["TABLES", "outcome"]

COLUMNS = (
    Column("Model"),
    Column("Cell"),
    Column("n"),
    Column("ρ held", digits=2),
    Column("Grokked", digits=2),
    Column("Median grok step"),
    Column("Norm at grokking", digits=1),
    Column("Scale of the logits at grokking", digits=1),
)
METHOD = (
    "Grokked: validation accuracy ≥ 0.95, by the last step of the cell. Medians of steps by Kaplan–Meier with 95 % "
    "intervals: a run that had not grokked counts as later than its last evaluation. Shares by Clopper–Pearson. ρ is "
    "the held norm over the median norm at which the free runs grok."
)
NONE = "None of its runs is there."


def outcome(model: str, name: str) -> Quantity:
    """Of a cell: runs, ρ, the share that groks, the median step, and norm and scale of the logits at grokking."""
    return Quantity("outcome", cells_of(model, "free", name), _outcome, options={"cell": f"{model}-{name}"})


def _median(values: Iterable[float]) -> Part:
    known = [value for value in values if isfinite(value)]
    return estimate_median(known) if known else None


def _outcome(records: Records, cell: str) -> Measured:
    own = [record for name, record in records.items() if name.rpartition("_s")[0] == cell]
    if not own:
        return Measured.lacking(0, 1, f"runs of {cell}")
    free = _median(norm_at_grokking_of(r) for name, r in records.items() if name.rpartition("_s")[0].endswith("-free"))
    events = [record.timeline for record in own]
    times = [one.last if one.grokked is None else one.grokked for one in events]
    levels = [level for record in own if isfinite(level := held_level(record))]
    base = getattr(free, "value", None)
    parts: dict[str, Part] = {
        "runs": len(own),
        "ρ": sum(levels) / len(levels) / base if levels and base else None,
        "grokked": share_that(one.grokked is not None for one in events),
        "step": kaplan_meier(times, [one.grokked is not None for one in events]).median,
        "last": max(one.last for one in events),
        "norm": _median(map(norm_at_grokking_of, own)),
        "logits": _median(map(logits_at_grokking, own)),
    }
    return Measured(parts, n=len(own))


def _row(evidence: Evidence, model: str, name: str) -> Row:
    parts = ("runs", "ρ", "grokked", "step", "norm", "logits")
    return (
        text(MODELS[model].title),
        text(name),
        *(cell(evidence, outcome(model, name), part) for part in parts),
    )


def _table(name: str, title: str, cells: Callable[[], Iterable[tuple[str, str]]]) -> Callable[[Evidence], Table]:
    def build(evidence: Evidence) -> Table:
        rows = tuple(
            _row(evidence, model, one) for model, one in cells() if cells_of(model, one).select(evidence.records)
        )
        notes = (METHOD,) if rows else (NONE, METHOD)
        return Table(name, name.replace("tab-", "tab:", 1), title, COLUMNS, rows, notes)

    return build


def _doses() -> Iterable[tuple[str, str]]:
    return ((model, one) for model in MODELS for one in ("free", *map(dose, DOSES[model])))


def _temperatures() -> Iterable[tuple[str, str]]:
    for model, cells in TEMPERATURES.items():
        levels = dict.fromkeys((1.0, *(rho for rho, _ in cells)))
        yield from ((model, dose(rho)) for rho in levels)
        yield from ((model, dose(rho, temperature)) for rho, temperature in cells)


def _controls() -> Iterable[tuple[str, str]]:
    for model in ("mlp", "none", "both"):
        clamps = [one for rho in RANDOM.get(model, {}) for one in (dose(rho), dose(rho, along="random"))]
        yield from ((model, one) for one in ("free", *clamps, "matched", "frozen", "nodecay", "nodecay-matched"))


def tab_laws(evidence: Evidence) -> Table:
    """The mean error of each law out of its cell."""
    columns = (Column("Model"), Column("Law"), Column("T̂"), Column("Mean error out of cell", digits=3), Column("n"))
    rows = tuple(
        (text(MODELS[model].title), text(law), text(form), cell(evidence, score_laws(model), law), text(found.n))
        for model in ("mlp", "both")
        if not (found := evidence.measure(score_laws(model))).missing
        for law, (form, _) in LAWS.items()
    )
    notes = (
        "Constants are medians over the runs at λ = 1 and η = 0.001; errors |T̂ − T|/T are averaged over the runs at "
        "other λ and η, with percentile intervals over bootstraps of both. Of a run that had not grokked, only what T̂ "
        "falls short of its last evaluation counts. V_post is known only after grokking: that law is scored with "
        "hindsight.",
    )
    return Table("tab-laws", "tab:laws", "Which clock", columns, rows, notes if rows else (NONE, *notes))


def _rates() -> Iterable[tuple[str, str]]:
    return ((model, one) for model in ("mlp", "both") for one in ("free", *rate_cells(model)))


TABLES = (
    Item("tab-doses", ("parents", "doses"), _table("tab-doses", "When runs grok whose norm is held", _doses)),
    Item(
        "tab-temperatures",
        ("parents", "doses", "temperatures"),
        _table("tab-temperatures", "The same norm with other scales of the logits", _temperatures),
    ),
    Item(
        "tab-controls",
        ("parents", "doses", "controls", "stops"),
        _table("tab-controls", "Controls, and what stops at memorisation", _controls),
    ),
    Item("tab-rates", ("parents", "rates"), _table("tab-rates", "Free runs at other λ and η", _rates)),
    Item("tab-laws", ("parents", "rates"), tab_laws),
)
