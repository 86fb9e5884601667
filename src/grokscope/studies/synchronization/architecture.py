"""§5.7: what the lead becomes without layers, MLPs or attention (Table 8, Figure 5)."""

from collections.abc import Mapping
from math import isfinite

from grokscope.stats import known, mean_known
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
    Stratum,
    cell,
    rule,
)
from grokscope.studies.reduction import mean, median, total
from grokscope.studies.synchronization import readings, series
from grokscope.studies.synchronization.designs import one_run_of, read_lead
from grokscope.studies.synchronization.events import (
    EVERY_EVENT,
    POOLED,
    doubt_notes,
    median_events,
    run_events,
)
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


def _events(variant: str) -> Quantity:
    return run_events(f"{variant}_s42", "", "architecture")


def _lead(records: Records) -> Measured:
    """The lead of one run, or the median over those of many that grok; with how many lead and lag."""
    found = [record.timeline.sync.lead for record in records.values()]
    known = [lead for lead in found if lead.sign is not None]
    median = readings.median_lead(known)
    is_one = len(found) == 1
    bound = mean_known(lead.bound for lead in found) if is_one or median is None else median.value
    parts: dict[str, Part] = {
        "value": readings.lead_part(found[0]) if is_one else median,
        "precursor": readings.precursor_part(found[0]) if is_one else readings.precursor_share(known),
        "runs that grok": len(known),
        "runs that lead": sum(lead.sign == 1 for lead in known),
        "runs that lag": sum(lead.sign == -1 for lead in known),
    }
    below = "below " * (is_one and found[0].less_than is not None)
    shown = (
        f"{'' if is_one else 'median '}lead {below}{format_number(bound)}" if isfinite(bound) else "mostly no crossing"
    )
    order = f"{parts['runs that lead']} before grokking, {parts['runs that lag']} after"
    return Measured(parts, f"{shown}, {order}", len(found), f"{len(known)} of {len(found)} grok.")


def lead(runs: Selection) -> Quantity:
    """The lead of FSD over grokking of one run, or over seeds."""
    return Quantity("lead of FSD", runs, _lead, readings.CADENCE)


def _count_grokked(records: Records) -> Measured:
    """How many runs grok."""
    count = len(readings.grokked_runs(records.values()))
    best = mean_known(max(known(record.evaluations["train_accuracy"]), default=0.0) for record in records.values())
    return Measured(
        {"such runs": count},
        f"{count} of {len(records)} grok{'s' * (len(records) == 1)}",
        len(records),
        note=f"The best train accuracy is {format_number(best, 2)} on average.",
    )


def grokked_count(runs: Selection) -> Quantity:
    """How many runs grok."""
    return Quantity("runs that grok", runs, _count_grokked, readings.CADENCE)


def _tab_arch(evidence: Evidence) -> Table:
    """Table 8: events of every architecture."""
    reported, runs = REPORTED["tab:arch_ablation"], evidence.experiment("architecture")
    rows: list[Row] = []
    for variant, (title, _) in VARIANTS.items():
        never = "never" if variant == "mlp_only" else None  # the paper has a dash
        rows.append(
            (
                text(title),
                cell(evidence, _events(variant), "grok", never or reported.get(variant, "grok")),
                cell(evidence, _events(variant), "sync", reported.get(variant, "sync")),
                cell(evidence, lead(_reported(variant)), reported=reported.get(variant, "lead")),
                cell(evidence, lead(_reported(variant)), "precursor", reported.get(variant, "precursor")),
            )
        )
        seeds = _seeds(variant)
        if len(seeds.select(evidence.records)) > 1:
            medians = [cell(evidence, median_events(seeds), part) for part in ("grok", "sync")]
            leads = [cell(evidence, lead(seeds), part) for part in ("value", "precursor")]
            rows.append((text(f"{title}, all seeds"), *medians, *leads))
    return Table(
        "tab-arch",
        reported.label,
        "Architecture ablation",
        columns=(
            *map(Column, ("Architecture", "Grok step", "FSD sync")),
            Column("Lead", signed=True),
            Column("FSD precursor?", digits=2),
        ),
        rows=tuple(rows),
        notes=(
            EVERY_EVENT,
            SITES,
            BLIND,
            *doubt_notes(evidence, {f"{variant}_s42": _events(variant) for variant in VARIANTS}),
            *((POOLED,) if len(runs) > len(VARIANTS) else ()),
            *not_trained({f"{variant}_s42" for variant in VARIANTS} - runs.keys()),
        ),
    )


def _fig_arch(evidence: Evidence) -> Figure:
    """Figure 5: the lead of FSD in each architecture."""
    reported, runs = REPORTED["tab:arch_ablation"], evidence.experiment("architecture")
    counts = [evidence.measure(grokked_count(_seeds(variant))) for variant in VARIANTS]
    is_widened = max(count.n for count in counts) > 1
    own = [lead(_reported(variant)) for variant in VARIANTS]
    cells = [cell(evidence, lead(_seeds(variant))) for variant in VARIANTS]
    panel = Panel(
        "Lead of FSD; below each: runs that grokked",
        "architecture",
        "lead over grokking (steps)",
        series=(
            *((series.lead_bars(evidence, own, "value", "seed 42", "fsd", width=0.5),) if runs else ()),
            *((series.medians(cells, "validation", "median of all seeds that grokked"),) if is_widened else ()),
            series.reported_points({i: reported.get(name, "lead") for i, name in enumerate(VARIANTS)}),
        ),
        x_ticks=tuple(
            (place, f"{name}\n{count.number('such runs'):.0f}/{count.n}" if count.n else name)
            for place, ((_, name), count) in enumerate(zip(VARIANTS.values(), counts, strict=True))
        ),
    )
    return Figure(
        "fig-arch",
        "fig:arch_ablation",
        f"Lead of FSD by architecture{f', addition mod 97, {len(runs)} runs' if runs else ': no runs'}",
        (panel,),
        notes=(
            EVERY_EVENT,
            SITES,
            f"{BLIND} The paper has no such model.",
            *((series.MEDIANS, series.OPEN) if is_widened else ()),
            *not_trained({f"{variant}_s42" for variant in VARIANTS} - runs.keys()),
        ),
        columns=1,
        panel_size=(4.2, 2.5),
    )


def _one(variant: str) -> tuple[Stratum, ...]:
    return one_run_of(variant, "architecture", variant)


def _leads(name: str, variant: str, text: str, effect: tuple[str | tuple[str, ...], str]) -> Estimand:
    parts = {"positive": total("positive"), "negative": total("negative"), "groks": mean("groks")}
    parts |= {"share": mean("first"), "lead": mean("lead"), "grok": median("grok"), "middle": median("lead")}
    return Estimand(name, _one(variant), read_lead, parts, text, effect, cadence=readings.CADENCE)


def _read_two_leads(runs: Records, names: tuple[str, str]) -> Mapping[str, float]:
    """Of one seed, how far apart the leads of two models are."""
    if any(name not in runs for name in names):
        return {}
    one, other = (runs[name].timeline.sync.lead.bound for name in names)
    return {"difference": one - other}


CLAIMS = (
    Claim(
        "attention-only-leads",
        "A model of attention alone groks, and FSD crosses before it does.",
        "§5.7, Table 8",
        "+3,000",
        _leads("lead of FSD, attention only", "attention_only", "{lead:+,.0f}", ("share", ".0%")),
        Rule(rule.more_than(1, "positive", operator="=")),
        "tab-arch",
    ),
    Claim(
        "attention-only-magnitude",
        "The lead of the model of attention alone has the same magnitude as the two-layer model's, within 500 steps.",
        "§5.7",
        "the same (+3,000 and +1,500)",
        Estimand(
            "lead with attention alone less that of two layers",
            (
                Stratum(
                    "seeds",
                    Selection(("architecture",), configuration="attention_only|two_layers"),
                    1,
                    ("s42",),
                ),
            ),
            _read_two_leads,
            {"difference": mean("difference"), "middle": median("difference")},
            "{difference:+,.0f}",
            ("middle", "+,.0f"),
            "seed",
            readings.CADENCE,
            {"names": ("attention_only", "two_layers")},
        ),
        Rule(rule.between(-500, 500, "difference")),
        "fig-arch",
    ),
    Claim(
        "attention-only-grok-step",
        "A model of attention alone groks at step 4,000, within 25 %.",
        "§5.7, Table 8",
        "4,000",
        _leads("grok step, attention only", "attention_only", "{grok:,.0f}", ("grok", ",.0f")),
        Rule(rule.within(0.25, 4000, "grok")),
        "tab-arch",
    ),
    Claim(
        "one-layer-lags",
        "A one-layer model groks, and FSD crosses after it does or never.",
        "§5.7, Table 8",
        "−1,000",
        _leads("lead of FSD, one layer", "one_layer", "{lead:+,.0f}", ("share", ".0%")),
        Rule(rule.more_than(1, "negative", operator="=")),
        "tab-arch",
    ),
    Claim(
        "one-layer-grok-step",
        "A one-layer model groks at step 4,500, within 25 %.",
        "§5.7, Table 8",
        "4,500",
        _leads("grok step, one layer", "one_layer", "{grok:,.0f}", ("grok", ",.0f")),
        Rule(rule.within(0.25, 4500, "grok")),
        "tab-arch",
    ),
    Claim(
        "mlp-only-never",
        "A model of MLPs alone does not grok within 15,000 steps.",
        "§5.7, Table 8",
        "never",
        _leads("grokking, MLP only", "mlp_only", "{groks:.0%} grok", ("groks", ".0%")),
        Rule(
            untestable="Without attention the last position never sees a or b, so that no run could grok; whether "
            "attention is necessary is asked of a model that sees them."
        ),
        "fig-arch",
    ),
    Claim(
        "attention-is-necessary",
        "Attention is necessary: a model of MLPs alone does not grok within 15,000 steps, even if it sees both "
        "summands.",
        "§5.7, tested here with a model that sees them",
        "necessary",
        _leads("grokking, MLP only that sees a and b", "mlp_only_pooled", "{groks:.0%} grok", ("groks", ".0%")),
        Rule(rule.equals(0, "groks")),
        "fig-arch",
    ),
    Claim(
        "mlp-only-sync",
        "FSD of the model of MLPs alone crosses at step 500.",
        "§5.7, Table 8",
        "500",
        _leads("crossing of FSD, MLP only", "mlp_only", "{n:.0f}", ("groks", ".0%")),
        Rule(
            untestable="Without attention the last position never sees a or b, "
            "and neurons that do not vary have no frequency."
        ),
        "tab-arch",
    ),
)
TABLES = (Item("tab-arch", ("architecture",), _tab_arch),)
FIGURES = (Item("fig-arch", ("architecture",), _fig_arch),)
