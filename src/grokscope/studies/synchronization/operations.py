"""§5.6: subtraction and multiplication, and multiplication in its own basis at large n."""

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

from grokscope.stats import share_that, sign_test
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
from grokscope.studies.synchronization import readings
from grokscope.studies.synchronization.designs import (
    as_flag,
    every_run,
    lead_estimand,
    one_run_of,
    read_lead,
    reported_of,
)
from grokscope.studies.synchronization.formulas import last_frequency
from grokscope.studies.synchronization.lead_share import LEADS, MEANS
from grokscope.studies.synchronization.sentences import empty_row, enumerate_parts, quote
from grokscope.timeline import LeadStatus, Timeline
from grokscope.view.numbers import format_number
from grokscope.view.table import Column, Row, Table, text

__all__ = ["CLAIMS", "SUPPLEMENTS"]

SEEDS = readings.all_seeds("mult_mod97")
LONG = readings.one_run("mult_mod97_s42_long", "multiplication")
READINGS = {  # how FSD is read → measured column; none is that of the evaluations
    "own basis, every evaluation": "",
    "own basis, checkpoints": "fsd",
    "additive basis, checkpoints": "fsd@additive",
    "by a + b, checkpoints": "fsd@sum",
}


def _timelines(records: Records, column: str) -> list[Timeline]:
    """The runs with this measured column as their FSD; without one, as they were evaluated."""
    read = [record.with_fsd(column) if column else record for record in records.values()]
    return [record.timeline for record in read if record is not None]


def _leads(records: Records, column: str, fewest: int, about: int, tolerance: float) -> Measured:
    """Crossings and leads of multiplication in one reading, and how many leads are near a number."""
    runs = _timelines(records, column)
    leads = [run.sync.lead for run in runs if run.sync.lead.sign is not None]
    n, positive = len(leads), sum(lead.is_precursor for lead in leads)
    median = readings.median_lead(leads)
    parts: dict[str, Part] = {
        "value": readings.precursor_share(leads),
        "seeds": len(runs),
        "grokked": share_that(run.grokked is not None for run in runs),
        "crossing": readings.median_steps([run.sync.step for run in runs], [run.last for run in runs]),
        "mean lead": readings.mean_lead(leads),
        "median lead": median,
        "runs that lag or never cross": sum(lead.sign == -1 for lead in leads),
        "leads as reported": sum(
            lead.steps is not None and abs(lead.steps - about) <= tolerance * abs(about) for lead in leads
        ),
    }
    if n < fewest or median is None:
        what = "grokked multiplication runs in this reading"
        return replace(Measured.lacking(n, fewest, what), parts=parts if runs else {})
    statuses = {"ties": LeadStatus.TIES, "never": LeadStatus.NEVER}
    parts |= {
        name: readings.counted(sum(lead.status is status for lead in leads), n) for name, status in statuses.items()
    }
    shown = f"{'median ' * (n > 1)}lead {format_number(median.value)}"
    if not isfinite(median.value):
        shown = f"never crosses in {format_number(runs[0].last)} steps" if n == 1 else "most never cross"
    late, close = (parts[name] for name in ("runs that lag or never cross", "leads as reported"))
    return Measured(
        parts,
        f"{positive} of {n} lead{'s' * (n == 1)}, {shown}",
        n,
        note=f"{late} of {n} lag or never cross, {close} by about {format_number(-about)} steps.",
    )


def leads(column: str, runs: Selection, fewest: int = 5) -> Quantity:
    """Crossings and leads of multiplication in the reading of a column."""
    how = next(how for how, own in READINGS.items() if own == column)
    return Quantity(
        f"share of positive leads ({how}; as reported: −10,000 ± 20 %; at least {fewest} runs)",
        runs,
        _leads,
        options={"column": column, "fewest": fewest, "about": -10_000, "tolerance": 0.2},
    )


def _sign_tests(records: Records, columns: tuple[str, ...]) -> Measured:
    """The sign test's p in each reading, and adjusted for their number by Holm's rule."""
    signs = {
        column: [sign for run in _timelines(records, column) if (sign := run.sync.lead.sign) is not None]
        for column in columns
    }
    found = {column: sign_test(values).p_value if values else None for column, values in signs.items()}
    adjusted = readings.holm_parts(found)
    return Measured(
        {f"p {name}": p for name, p in found.items()} | {f"Holm {name}": p for name, p in adjusted.items()},
        n=len(records),
    )


SIGNS = Quantity("sign tests of multiplication", SEEDS, _sign_tests, options={"columns": tuple(READINGS.values())})


def _multiplication(evidence: Evidence) -> Table:
    """Leads of multiplication in its own basis and in the two that it does not have."""
    rows = [_reading_row(evidence, how, leads(column, SEEDS), column) for how, column in READINGS.items()]
    rows += [
        _reading_row(evidence, f"{how}, one seed to the reported 55,000 steps", leads(column, LONG, 1), None)
        for how, column in READINGS.items()
    ]
    return Table(
        "sup-multiplication",
        "sup:multiplication",
        "Does multiplication have a precursor in its own basis?",
        columns=(
            *map(Column, ("Basis and cadence", "Seeds")),
            Column("Grokked", digits=2),
            Column("First crossing (median step)"),
            Column("Positive lead", digits=2),
            *map(Column, ("Ties", "Never crossed")),
            *(Column(name, signed=True) for name in ("Mean lead (steps)", "Median lead (steps)")),
            *(Column(name, digits=4) for name in ("Sign-test p", "Holm-adjusted p")),
        ),
        rows=tuple(rows),
        notes=(
            "FSD ≥ 0.80 of the same activations in three readings. The own basis is the characters of the "
            "multiplicative group, over the nonzero answers in the order of their discrete logarithms: the basis in "
            "which every run of multiplication is evaluated. The additive one has the answers in the order of the "
            "integers; by a + b is as in the paper.",
            "At checkpoints, every 500 steps, grokking is seen at the same checkpoints. Runs that were not so measured "
            "are not counted.",
            LEADS,
            MEANS,
            "A crossing that was not reached is later than the last evaluation: such medians are Kaplan–Meier's.",
            "Sign tests are exact and two-sided; Holm correction over the readings of all seeds.",
        ),
    )


def _reading_row(evidence: Evidence, title: str, quantity: Quantity, tested: str | None) -> Row:
    names = ("seeds", "grokked", "crossing", "value", "ties", "never", "mean lead", "median lead")
    cells = [cell(evidence, quantity, part) for part in names]
    if cells[0].ours is None:
        return empty_row(title, len(cells) + 3)
    return (text(title), *cells, *(cell(evidence, SIGNS, f"{name} {tested}") for name in ("p", "Holm")))


def _multiplication_sentence(table: Table) -> str:
    """The share of positive leads in every reading of all seeds."""
    rows = [row for row in table.rows[: len(READINGS)] if row[4].ours is not None]
    if not rows:
        return "Whether multiplication has a precursor is not known: no run of it has grokked."
    found = [f"{quote(table, row, 'Positive lead')} ({row[0].ours})" for row in rows]
    return f"Multiplication crosses before it groks in these shares of its grokked runs: {enumerate_parts(found)}."


def _read_pair(runs: Records) -> Mapping[str, float]:
    """Of one seed, whether subtraction and addition end with the same dominant frequency."""
    if not {"sub_mod97", "add_mod97"} <= runs.keys():
        return {}
    one, other = (last_frequency(runs[task]) for task in ("sub_mod97", "add_mod97"))
    return {} if one != one or other != other else {"same": as_flag(one == other)}


def _derive_delay(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"delay": parts["subtraction"] - parts["addition"]}


def _multiplied(
    name: str, strata: tuple[Stratum, ...], text: str, effect: tuple[str | tuple[str, ...], str], **options: Any
) -> Estimand:
    parts = {"share": mean("first"), "lead": mean("lead"), "crossed": mean("crossed"), "middle": median("lead")}
    return Estimand(name, strata, read_lead, parts, text, effect, options=options)


SUBTRACTION = (reported_of("sub_mod97"),)
EVERY_PRODUCT = every_run("mult_mod97", experiment="base")
CLAIMS = (
    Claim(
        "subtraction-leads",
        "In modular subtraction FSD crosses before grokking on both seeds.",
        "§5.1, §5.6",
        "+1,000 and +2,000",
        lead_estimand("leads of FSD in subtraction", SUBTRACTION, "{positive:.0f} of {n:.0f}", ("share first", ".0%")),
        Rule(rule.more_than(1, "positive", operator="=")),
        "tab-cross",
    ),
    Claim(
        "subtraction-delay",
        "Subtraction groks about 1,500 steps later than addition in the mean: 1,000 to 2,000.",
        "§5.6",
        "1,500",
        Estimand(
            "mean grok step of subtraction less that of addition",
            (*SUBTRACTION, reported_of("add_mod97")),
            read_lead,
            {"subtraction": mean("grok step", "sub_mod97"), "addition": mean("grok step", "add_mod97")},
            "{delay:+,.0f}",
            ("delay", "+,.0f"),
            cadence=readings.CADENCE,
            derive=_derive_delay,
        ),
        Rule(rule.between(1000, 2000, "delay")),
        "tab-cross",
    ),
    Claim(
        "subtraction-frequency",
        "Subtraction synchronises on the same dominant frequency as addition with the same seed.",
        "§5.6",
        "predicted",
        Estimand(
            "seeds with one dominant frequency",
            (Stratum("seeds", Selection(("base",), configuration="add_mod97|sub_mod97"), 2, ("s42", "s123")),),
            _read_pair,
            {"same": total("same"), "share": mean("same")},
            "{same:.0f} of {n:.0f}",
            ("share", ".0%"),
            "seed",
        ),
        Rule(rule.more_than(1, "same", operator="=")),
        "tab-cross",
    ),
    Claim(
        "multiplication-lags",
        "In modular multiplication FSD, read by a + b, crosses 10,000 steps after grokking, within 20 %.",
        "§5.1, §5.6, Table 2",
        "−10,000",
        _multiplied(
            "lead of FSD by a + b", one_run_of("mult_mod97"), "{lead:+,.0f}", ("crossed", ".0%"), column="fsd@sum"
        ),
        Rule(rule.all_of(rule.within(0.2, -10_000, "lead"), rule.equals(1, "crossed"))),
        "sup-multiplication",
    ),
    Claim(
        "multiplication-has-no-precursor",
        "The precursor is specific to addition: in multiplication, read in its own basis, FSD leads in fewer than 30 "
        "% of the runs that grok.",
        "§5.6, tested here in its own basis",
        "no precursor",
        _multiplied("lead of FSD in the basis of multiplication", EVERY_PRODUCT, "{share:.0%} lead", ("share", ".0%")),
        Rule.of_many(rule.below(0.3, "share")),
        "sup-multiplication",
        "new",
    ),
)
SUPPLEMENTS = (Item("sup-multiplication", ("base", "multiplication"), _multiplication, _multiplication_sentence),)
