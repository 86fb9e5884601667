"""How often FSD leads grokking when there are many seeds of every task and group."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from grokscope.stats import share, share_that, sign_test
from grokscope.studies import (
    Claim,
    Estimand,
    Evidence,
    Item,
    Measured,
    Quantity,
    Records,
    Rule,
    Selection,
    cell,
    configuration,
    rule,
)
from grokscope.studies.reduction import Reduction, mean, rank_correlation, share_beyond_chance
from grokscope.studies.synchronization import readings
from grokscope.studies.synchronization.designs import EVERY_ADDITION, read_lead
from grokscope.studies.synchronization.events import lead_signs, mean_lead, median_events
from grokscope.studies.synchronization.sentences import empty_row, enumerate_parts, quote
from grokscope.view.numbers import format_estimate
from grokscope.view.table import Column, Row, Table, text

__all__ = ["ADDITION_TASKS", "CLAIMS", "LEADS", "MEANS", "SUPPLEMENTS", "shares_by_prime"]

ADDITION_TASKS = ("add_mod53", "add_mod71", "add_mod97", "add_mod113", "add_mod131")
CONFIGURATIONS = {  # configuration → experiment
    **dict.fromkeys(ADDITION_TASKS, "base"),
    **dict.fromkeys(("sub_mod97", "mult_mod97"), "base"),
    **dict.fromkeys(("S5_f0.7", "S5_f0.5", "S5_f0.3"), "symmetric"),
    **dict.fromkeys(("A5", "Aff11", "D59"), "open_questions"),
}
LEADS = (
    "A lead is the grok step less the step of the crossing, each the first evaluation; runs that did not grok have "
    "none. Shares are of all grokked runs, with 95 % Clopper–Pearson intervals: ties and runs that never crossed are "
    "not positive."
)
MEANS = (
    "Over seeds, means have 95 % t intervals, medians those of order statistics; where a run never crossed, the mean "
    "is a bound and the median Kaplan–Meier's."
)


def _shares_by_prime(records: Records, runs_each: int) -> Measured:
    """The share of grokked runs with a positive lead, for each prime and over all."""
    leads = {task: [r.timeline.sync.lead for r in records.values() if r.spec.task == task] for task in ADDITION_TASKS}
    shares = {task: readings.precursor_share(found) for task, found in leads.items()}
    known = [found for found in shares.values() if found is not None]
    n = sum(found.items for found in known)
    pooled = share(sum(lead.is_precursor for found in leads.values() for lead in found), n)
    parts = {"value": pooled, **shares}
    if len(known) < len(ADDITION_TASKS) or min(found.items for found in known) < runs_each:
        what = f"grokked addition runs, {runs_each} for each of {len(ADDITION_TASKS)} primes,"
        return replace(Measured.lacking(n, runs_each * len(ADDITION_TASKS), what), parts=parts if n else {})
    named = zip((task.removeprefix("add_mod") for task in ADDITION_TASKS), known, strict=True)
    return Measured(
        parts,
        text=", ".join(f"p = {prime}: {format_estimate(found, 2)}" for prime, found in named),
        n=n,
        note=f"Pooled {format_estimate(pooled, 2)}.",
    )


def shares_by_prime(cadence: int | None) -> Quantity:
    """The share of positive leads of every prime: as Table 2 is evaluated, or at every evaluation."""
    return Quantity(
        "share of positive leads by prime", readings.ADDITIONS, _shares_by_prime, cadence, {"runs_each": 10}
    )


def _random_pairs(records: Records) -> Measured:
    """How runs of one configuration grokked and crossed, and how often crossings of other runs would lead.

    A crossing that comes early in every run leads grokking whether or not it predicts it: the share over all pairs of
    a run's grokking with another run's crossing says how often.
    """
    runs = [record.timeline for record in records.values()]
    known = [run for run in runs if run.sync.lead.sign is not None]
    parts = {"seeds": len(runs), "grokked": share_that(run.grokked is not None for run in runs)}
    if known:
        parts["doubtful"] = readings.counted(sum(bool(run.sync.flags) for run in known), len(known))
    if len(known) > 1:
        grokked = np.array([run.grokked for run in known], dtype=np.float64)
        crossed = np.array([np.inf if run.sync.step is None else run.sync.step for run in known])
        leads = (crossed[None, :] < grokked[:, None])[~np.eye(len(known), dtype=bool)]
        parts["paired at random"] = readings.counted(float(leads.mean()), len(known))
    return Measured(parts, n=len(runs))


def _holm(records: Records, configurations: Sequence[str]) -> Measured:
    """The sign test's p of each configuration, adjusted for their number by Holm's rule."""
    known = [(name, sign) for name, one in records.items() if (sign := one.timeline.sync.lead.sign) is not None]
    signs = {kind: [sign for name, sign in known if configuration(name) == kind] for kind in configurations}
    found = {name: sign_test(values).p_value if values else None for name, values in signs.items()}
    return Measured(readings.holm_parts(found), n=len(records))


HOLM = Quantity(
    "Holm-adjusted p of the signs",
    Selection(tuple(dict.fromkeys(CONFIGURATIONS.values())), forks=False),
    _holm,
    None,
    {"configurations": tuple(CONFIGURATIONS)},
)


def _lead_shares(evidence: Evidence) -> Table:
    """How often the crossing comes before grokking, task by task, over all seeds."""
    columns = (
        *map(Column, ("Runs", "Seeds")),
        Column("Grokked", digits=2),
        Column("Positive lead", digits=2),
        *map(Column, ("Ties", "Never crossed")),
        Column("Mean lead (steps)", signed=True),
        Column("Median lead (steps)", signed=True),
        Column("Doubtful crossings"),
        Column("Positive if paired at random", digits=2),
        *(Column(name, digits=4) for name in ("Sign-test p", "Holm-adjusted p")),
    )
    rows = [_share_row(evidence, name, len(columns)) for name in CONFIGURATIONS]
    return Table(
        "sup-lead-share",
        "sup:lead-share",
        "How often does FSD lead grokking when there are many seeds?",
        columns,
        tuple(rows),
        notes=(
            "FSD ≥ 0.80, of groups FSD_gen ≥ 0.50, against validation accuracy ≥ 0.95, evaluated every 100 steps.",
            LEADS,
            MEANS,
            "A crossing is doubtful if it occurs at the first evaluation or before memorisation.",
            "The alternative is a crossing that does not depend on its run's grokking and only tends to come early. "
            "'Paired at random' is the share of positive leads when each run's grok step is paired with the crossing "
            "of another seed, over all such pairs. A share no higher than that shows order, not prediction.",
            "Sign tests are exact and two-sided, ties left out; Holm correction over the rows of this table.",
            "S5 is trained on the share of pairs in its name; the other groups on 0.5, everything else on 0.3.",
        ),
    )


def _share_row(evidence: Evidence, name: str, columns: int) -> Row:
    runs = Selection((CONFIGURATIONS[name],), configuration=name)
    own, signs = Quantity("crossings paired at random", runs, _random_pairs), lead_signs(runs, None)
    if evidence.measure(own).missing:
        return empty_row(name, columns)
    return (
        text(name),
        *(cell(evidence, own, part) for part in ("seeds", "grokked")),
        *(cell(evidence, signs, part) for part in ("share", "ties", "never")),
        cell(evidence, mean_lead(runs, cadence=None)),
        cell(evidence, median_events(runs, None), "lead"),
        *(cell(evidence, own, part) for part in ("doubtful", "paired at random")),
        replace(cell(evidence, signs, "p"), n=None),
        cell(evidence, HOLM, name),
    )


def _lead_share_sentence(table: Table) -> str:
    """The share of positive leads of every prime, and the lowest and the highest of the other tasks and groups."""
    rows = [row for row in table.rows if row[3].ours is not None]
    if not rows:
        return "How often FSD leads grokking is not known: no run of these tasks has grokked."
    primes = [row for row in rows if str(row[0].ours).startswith("add_mod")]
    others = sorted((row for row in rows if row not in primes), key=lambda row: float(row[3].ours or 0))
    parts = [enumerate_parts([_quoted_share(table, row) for row in primes])] if primes else []
    if others:
        high = next(row for row in others if row[3].ours == others[-1][3].ours)
        ends = [others[0]] if high is others[0] else [others[0], high]
        shown = " to ".join(_quoted_share(table, row) + _quoted_doubt(table, row) for row in ends)
        parts.append(f"other tasks{' range from' if len(ends) > 1 else ':'} {shown}")
    what = "Share of grokked runs in which FSD crosses its threshold before grokking"
    return f"{what} (in parentheses: if crossings and grok steps are paired at random): {'; '.join(parts)}."


def _quoted_share(table: Table, row: Row) -> str:
    positive, by_chance = (quote(table, row, name) for name in ("Positive lead", "Positive if paired at random"))
    return f"{row[0].ours} {positive} ({by_chance})"


def _quoted_doubt(table: Table, row: Row) -> str:
    doubtful = quote(table, row, "Doubtful crossings")
    return "" if doubtful.startswith("0") else f", with doubtful crossings in {doubtful}"


def _lead_parts() -> dict[str, Reduction]:
    return {
        "share": mean("first"),
        **{f"share {task}": mean("first", task) for task in ADDITION_TASKS},
        "correlation": rank_correlation("crossing", "grok step"),
        "beyond chance": share_beyond_chance("crossing", "grok step"),
    }


def _every_addition(name: str, text: str, effect: tuple[str | tuple[str, ...], str]) -> Estimand:
    return Estimand(name, EVERY_ADDITION, read_lead, _lead_parts(), text, effect)


CLAIMS = (
    Claim(
        "lead-share-by-prime",
        "Of every prime FSD crosses its threshold before grokking in most of the runs that grok.",
        "§5.1, tested here on many seeds",
        "all seeds",
        _every_addition(
            "share of positive leads by prime",
            "{share:.0%}",
            (tuple(f"share {task}" for task in ADDITION_TASKS), ".0%"),
        ),
        Rule.of_many(rule.every(rule.above(0.5), *(f"share {task}" for task in ADDITION_TASKS))),
        "sup-lead-share",
        "new",
    ),
    Claim(
        "crossing-says-when",
        "Of runs of one prime, those whose FSD crosses early grok early: rank correlation of at least 0.5, in the mean "
        "over five primes.",
        "asked here",
        "—",
        _every_addition("correlation of crossing and grokking", "{correlation:.2f}", ("correlation", ".2f")),
        Rule.of_many(rule.at_least(0.5, "correlation")),
        "sup-lead-share",
        "new",
    ),
    Claim(
        "lead-beyond-chance",
        "FSD crosses before its own run's grokking at least 10 points more often than before that of another run of "
        "the same prime.",
        "asked here",
        "—",
        _every_addition("positive leads beyond random pairs", "{beyond chance:+.0%}", ("beyond chance", "+.1%")),
        Rule.of_many(rule.at_least(0.1, "beyond chance")),
        "sup-lead-share",
        "new",
    ),
)
SUPPLEMENTS = (Item("sup-lead-share", ("base", "symmetric", "open_questions"), _lead_shares, _lead_share_sentence),)
