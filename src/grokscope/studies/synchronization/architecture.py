"""§5.7: what the lead becomes without layers, MLPs or attention (Table 8, Figure 5)."""

from collections.abc import Mapping

from grokscope.runs.records import RunRecord
from grokscope.studies import Claim, Evidence, Item, Measured, Quantity, Rule, Selection, cell, rule
from grokscope.studies.synchronization import readings, series
from grokscope.studies.synchronization.readings import grok_step, lead_over_grokking, sync_step
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.view.charts.figure import Figure, Panel
from grokscope.view.numbers import format_number
from grokscope.view.table import Column, Row, Table, not_trained, text

__all__ = ["CLAIMS", "FIGURES", "TABLES"]

VARIANTS = {  # name in tables, in the figure
    "two_layers": ("2-layer standard (baseline)", "2 layers"),
    "one_layer": ("1-layer standard", "1 layer"),
    "attention_only": ("2-layer attention-only", "attention\nonly"),
    "mlp_only": ("2-layer MLP-only", "MLP only"),
    "mlp_only_pooled": ("2-layer MLP-only that sees a and b", "MLP only,\nsees a, b"),
}
SITES = "FSD is read at block 0's MLP neurons, in attention-only models at its attention output."
BLIND = "MLP-only as written never sees a or b at the position that is read; the last one does."


def _reported(variant: str) -> Selection:
    return readings.one_run(f"{variant}_s42", "architecture")


def _seeds(variant: str) -> Selection:
    return Selection(("architecture",), configuration=variant)


REPORTED_RUNS = Selection(("architecture",), tuple(f"{variant}_s42" for variant in VARIANTS))
PAIR = Selection(("architecture",), ("two_layers_s42", "attention_only_s42"))


def _row(evidence: Evidence, title: str, runs: Selection, reported: str = "") -> Row:
    paper = {name: REPORTED["tab:arch_ablation"].get(reported, name) for name in ("grok", "sync", "lead", "precursor")}
    if reported == "mlp_only":
        paper["grok"] = "never"
    return (
        text(title),
        cell(evidence, grok_step(runs), reported=paper["grok"]),
        cell(evidence, sync_step(runs), reported=paper["sync"]),
        cell(evidence, lead_over_grokking(runs), reported=paper["lead"]),
        cell(evidence, lead_over_grokking(runs), "precursor", paper["precursor"]),
    )


def _tab_arch(evidence: Evidence) -> Table:
    """Table 8: events of every architecture."""
    runs = evidence.experiment("architecture")
    rows: list[Row] = []
    for variant, (title, _) in VARIANTS.items():
        rows.append(_row(evidence, title, _reported(variant), variant))
        if len(_seeds(variant).select(evidence.records)) > 1:
            rows.append(_row(evidence, f"{title}, all seeds", _seeds(variant)))
    columns = (
        *map(Column, ("Architecture", "Grok step", "FSD sync")),
        Column("Lead", signed=True),
        Column("FSD precursor?", digits=2),
    )
    notes = (
        readings.EVENTS,
        SITES,
        BLIND,
        *readings.doubtful_crossings(evidence, REPORTED_RUNS),
        *((readings.POOLED,) if len(runs) > len(VARIANTS) else ()),
        *not_trained(set(REPORTED_RUNS.names) - runs.keys()),
    )
    label = REPORTED["tab:arch_ablation"].label
    return Table("tab-arch", label, "Architecture ablation", columns, tuple(rows), notes)


def _fig_arch(evidence: Evidence) -> Figure:
    """Figure 5: the lead of FSD in each architecture."""
    reported, runs = REPORTED["tab:arch_ablation"], evidence.experiment("architecture")
    counts = {variant: len(_seeds(variant).select(evidence.records)) for variant in VARIANTS}
    is_widened = max(counts.values()) > 1
    drawn = []
    if runs:
        own = [lead_over_grokking(_reported(variant)) for variant in VARIANTS]
        drawn.append(series.lead_bars(evidence, own, "value", "seed 42", "fsd", width=0.5))
    if is_widened:
        cells = [cell(evidence, lead_over_grokking(_seeds(variant))) for variant in VARIANTS]
        drawn.append(series.medians(cells, "validation", "median of all seeds that grokked"))
    drawn.append(series.reported_points({i: reported.get(name, "lead") for i, name in enumerate(VARIANTS)}))
    ticks = []
    for place, (variant, (_, name)) in enumerate(VARIANTS.items()):
        grokked = evidence.measure(grok_step(_seeds(variant))).number("grokked")
        ticks.append((place, f"{name}\n{grokked:.0f}/{counts[variant]}" if counts[variant] else name))
    title = "Lead of FSD; below each: runs that grokked"
    panel = Panel(title, "architecture", "lead over grokking (steps)", tuple(drawn), tuple(ticks))
    notes = (
        readings.EVENTS,
        SITES,
        f"{BLIND} The paper has no such model.",
        *((series.MEDIANS, series.OPEN) if is_widened else ()),
        *not_trained(set(REPORTED_RUNS.names) - runs.keys()),
    )
    shown = f", addition mod 97, {len(runs)} runs" if runs else ": no runs"
    title = f"Lead of FSD by architecture{shown}"
    return Figure("fig-arch", "fig:arch_ablation", title, (panel,), notes, 1, (4.2, 2.5))


def _magnitudes(records: Mapping[str, RunRecord]) -> Measured:
    """The leads of two models side by side."""
    leads = {name: readings.lead_bound(record) for name, record in records.items()}
    shown = ", ".join(f"{name.removesuffix('_s42')} {format_number(lead)}" for name, lead in leads.items())
    return Measured(leads, shown, len(readings.known(leads.values())))


NEVER = Rule(rule.equals(0, "grokked"), rule.more_than(1 / 2, "grokked", operator="<"))
CLAIMS = (
    Claim(
        "attention-only-leads",
        "An attention-only model groks with an FSD precursor.",
        "§5.7, Table 8",
        "+3,000",
        lead_over_grokking(_reported("attention_only")),
        Rule(rule.more_than(1 / 2, "before"), rule.more_than(1 / 2, "grokked")),
        "tab-arch",
        lead_over_grokking(_seeds("attention_only")),
    ),
    Claim(
        "attention-only-magnitude",
        "The attention-only lead has the same magnitude as the baseline's.",
        "§5.7, Table 8",
        "+3,000 and +1,500",
        Quantity("leads of two models", PAIR, _magnitudes, readings.CADENCE),
        Rule(contradiction="+3,000 is twice the +1,500 that it is called the same magnitude as."),
        "fig-arch",
    ),
    Claim(
        "one-layer-lags",
        "A one-layer model groks, and its FSD lags.",
        "§5.7, Table 8",
        "−1,000",
        lead_over_grokking(_reported("one_layer")),
        Rule(rule.more_than(1 / 2, "after"), rule.more_than(1 / 2, "grokked")),
        "tab-arch",
        lead_over_grokking(_seeds("one_layer")),
    ),
    Claim(
        "mlp-only-never",
        "An MLP-only model does not grok within 15,000 steps.",
        "§5.7, Table 8",
        "never",
        grok_step(_reported("mlp_only")),
        NEVER,
        "tab-arch",
        grok_step(_seeds("mlp_only")),
    ),
    Claim(
        "attention-is-necessary",
        "Attention is necessary for the Fourier algorithm.",
        "§5.7",
        "necessary",
        grok_step(_reported("mlp_only_pooled")),
        NEVER,
        "tab-arch",
        grok_step(_seeds("mlp_only_pooled")),
    ),
    Claim(
        "mlp-only-sync",
        "FSD of the MLP-only model synchronises at step 500.",
        "§5.7, Table 8",
        "500",
        sync_step(_reported("mlp_only")),
        Rule(
            untestable="Without attention the last position never sees a or b, "
            "and neurons that do not vary have no frequency."
        ),
        "tab-arch",
        sync_step(_seeds("mlp_only")),
    ),
)
TABLES = (Item("tab-arch", ("architecture",), _tab_arch),)
FIGURES = (Item("fig-arch", ("architecture",), _fig_arch),)
