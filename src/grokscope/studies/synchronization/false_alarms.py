"""Whether FSD warns of grokking in runs that do not grok, and which measure warns best at equal false alarms."""

from collections import Counter
from dataclasses import replace

from grokscope.runs.records import RunRecord
from grokscope.specs import Architecture, Initialization
from grokscope.stats import clustered_share, share_that, sign_test
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
    cell,
    configuration,
    rule,
)
from grokscope.studies.reduction import count, mean, total
from grokscope.studies.synchronization import readings
from grokscope.studies.synchronization.alarms import CANDIDATES, LOGGED, Candidate, Reading, trace
from grokscope.studies.synchronization.designs import every_run, read_lead
from grokscope.studies.synchronization.experiments import EXPERIMENTS
from grokscope.studies.synchronization.sentences import quote
from grokscope.view.table import Column, Row, Table, text

__all__ = ["CLAIMS", "SUPPLEMENTS"]

TASK = "add_mod97"
RATES = (0.05, 0.0, 0.10)  # share of the runs that do not grok in which a measure may cross; the sentence has the first
ENOUGH = 10  # runs that did not grok, in each half, for thresholds to be judged on seeds they were not chosen on
MODEL = (Architecture(), Initialization())
ABSENT, NO_NEGATIVES = "not measured", "no runs that did not grok"
WATCHED = Selection(tuple(dict.fromkeys(("negatives", *EXPERIMENTS))), task=TASK, forks=False)


def _is_comparable(record: RunRecord) -> bool:
    """The same model from step 0 on, with a λ that nothing in the run has changed."""
    spec = record.spec
    is_whole = spec.trigger is None and not spec.training.weight_decay_schedule
    return is_whole and (spec.architecture, spec.initialization) == MODEL


def _read(candidate: Candidate, negatives: Records, grokked: Records, rate: float, is_cut: bool) -> Reading:
    positive = {key: found for key, record in grokked.items() if (found := trace(record, candidate))}
    until = max((run.grokked for run in positive.values() if run.grokked is not None), default=None) if is_cut else None
    traces = [found for record in negatives.values() if (found := trace(record, candidate))]
    halves = [[run for run in traces if run.seed % 2 == rest] for rest in (0, 1)]
    is_split = min(map(len, halves)) >= ENOUGH
    chosen, judged = (
        [cut for run in runs if (cut := run.until(until))] for runs in (halves if is_split else [traces] * 2)
    )
    return Reading(candidate, rate, chosen, judged if is_split else chosen, positive, until)


def _warnings(records: Records, rate: float, is_cut: bool) -> Measured:
    """Of every measure: its threshold at this rate of false alarms, and how its alarms stand to grokking.

    Where `is_cut`, runs that did not grok are evaluated no longer than until
    the last of the others had grokked. Sign tests are against validation accuracy at the same evaluations.
    """
    negatives = {name: run for name, run in records.items() if run.timeline.grokked is None and _is_comparable(run)}
    grokked = {
        name: run for name, run in records.items() if run.timeline.grokked is not None and configuration(name) == TASK
    }
    found = [_read(candidate, negatives, grokked, rate, is_cut) for candidate in CANDIDATES]
    rivals = {one.candidate.at_checkpoints: one for one in found if one.candidate.column == "validation_accuracy"}
    signs = {one.candidate.title: one.earlier(rivals[one.candidate.at_checkpoints]) for one in found}
    p_values = {title: sign_test(values).p_value if values else None for title, values in signs.items()}
    adjusted = readings.holm_parts(p_values)
    parts: dict[str, Part] = {}
    for one in found:
        title = one.candidate.title
        own = _reading_parts(one) | {
            "earlier": share_that(sign > 0 for sign in signs[title]),
            "p": p_values[title],
            "Holm": adjusted.get(title),
        }
        parts |= {f"{title}: {name}": part for name, part in own.items()}
    return Measured(parts, n=len(negatives) + len(grokked))


def _reading_parts(one: Reading) -> dict[str, Part]:
    if not one.chosen_on:
        return {"until": one.until, "alarm": NO_NEGATIVES if one.grokked else ABSENT}
    rises = one.candidate.rises
    return {
        "until": one.until,
        "alarm": "above" if rises else "below",
        "threshold": one.threshold if rises else -one.threshold,
        "chosen": len(one.chosen_on),
        "alarms": clustered_share(
            (run.crossing(one.threshold) is not None for run in one.judged_on), [run.seed for run in one.judged_on]
        ),
        "judged": "the same runs" if one.judged_on is one.chosen_on else "other seeds",
        "warned": readings.precursor_share(one.leads),
        "lead": readings.median_lead(one.leads),
    }


def _table(evidence: Evidence) -> Table:
    """Leads of every measure at thresholds that raise equally many false alarms, and of validation accuracy itself."""
    blocks = [(rate, False) for rate in RATES] + [(RATES[0], True)]
    rows = [_row(evidence, one, rate, is_cut) for rate, is_cut in blocks for one in CANDIDATES]
    return Table(
        "sup-false-alarms",
        "sup:false-alarms",
        "Which measure warns of grokking when all may raise equally many false alarms?",
        columns=(
            *map(Column, ("Measure, false alarms allowed", "Alarm")),
            Column("Threshold", digits=5),
            Column("Chosen on (runs)"),
            Column("False alarms", digits=2),
            Column("Judged on"),
            Column("Warned before grokking", digits=2),
            Column("Median lead (steps)", signed=True),
            Column("Earlier than validation accuracy", digits=2),
            Column("Sign-test p", digits=4),
            Column("Holm-adjusted p", digits=4),
        ),
        rows=tuple(rows),
        notes=(*NOTES, _composition(evidence)),
    )


def _row(evidence: Evidence, candidate: Candidate, rate: float, is_cut: bool) -> Row:
    quantity = Quantity("warnings", WATCHED, _warnings, None, {"rate": rate, "is_cut": is_cut})
    until = evidence.measure(quantity).parts.get(f"{candidate.title}: until")
    title = _title(candidate, rate) + (f" by step {until:,}" if isinstance(until, int) else "")
    names = ("alarm", "threshold", "chosen", "alarms", "judged", "warned", "lead", "earlier", "p", "Holm")
    alarm, *others = (cell(evidence, quantity, f"{candidate.title}: {name}") for name in names)
    return (text(title), alarm if alarm.ours else text(ABSENT), *others)


def _title(candidate: Candidate, rate: float = RATES[0]) -> str:
    return f"{candidate.title}, at most {rate:.0%}"


NOTES = (
    f"A false alarm is a run of {TASK} that did not grok by its budget and at any evaluation exceeds the threshold. "
    "Of n runs at most ⌊rate · n⌋ may: the threshold is the most lenient that this allows, so with few runs the rates "
    "above 0% allow no alarm either.",
    "Thresholds are chosen on even seeds and judged on odd ones, of which the false alarms are reported; with fewer "
    f"than {ENOUGH} runs in a half, they are chosen and judged on the same runs, and the false alarms are no test. "
    "Configurations share their seeds: for the interval of the false alarms each seed's runs are one cluster, and n is "
    "the number of seeds.",
    f"Leads are those of the grokked runs of {TASK} in the experiment base, at the same evaluations as the measure: "
    "every 100 steps, or the checkpoints every 500. Warned before grokking is the share with an alarm at an earlier "
    "evaluation; an alarm that was never raised makes the median Kaplan–Meier's.",
    "Validation accuracy itself is the trivial baseline, with the lowest threshold that raises no more false alarms "
    "than allowed. 'Earlier than validation accuracy' is the share of grokked runs in which the measure's alarm comes "
    "at an earlier evaluation, ties not counted as earlier, with an exact two-sided sign test; Holm correction over "
    "the measures of one rate.",
    "Runs that did not grok go on to their budget, several times as long as the others need to grok, so they have more "
    f"evaluations at which to raise an alarm. The last rows, at most {RATES[0]:.0%} by a step, evaluate them no longer "
    "than until the last of the others had grokked.",
    "Runs that did not grok differ from those that did in λ, labels or data too: a measure that only tells these "
    "apart, as the norm tells λ, warns here of the configuration and not of grokking.",
    "Intervals are 95 %: Clopper–Pearson for shares, order statistics for medians.",
    "Not counted: forks, which begin in another run's middle; runs whose λ a signal has changed, for there the alarm "
    "makes the outcome; other models and initial weights, whose norms and spectra are of another scale.",
)


def _composition(evidence: Evidence) -> str:
    """The note that says which runs are the ones that did not grok."""
    found: dict[str, str] = {}
    for experiment in WATCHED.experiments:
        for name, record in replace(WATCHED, experiments=(experiment,)).select(evidence.records).items():
            if record.timeline.grokked is None and _is_comparable(record):
                found.setdefault(record.spec.content_hash, f"{experiment}/{configuration(name)}")
    counts = [f"{count} of {which}" for which, count in Counter(found.values()).items()]
    return f"Runs that did not grok, each once: {', '.join(counts) or 'none'}."


def _sentence(table: Table) -> str:
    """FSD, validation accuracy, and the measure that warns earliest, at the first rate."""
    rows = [row for row in table.rows[: len(CANDIDATES)] if row[7].ours is not None]
    if not rows:
        return "Which measure warns of grokking is not known: there are no grokked runs, or none that did not grok."
    titles = tuple(map(_title, LOGGED[:2]))
    wanted = [row for row in rows if row[0].ours in titles]
    numbered = [row for row in rows if isinstance(row[7].ours, float | int)]
    best = max(numbered, key=lambda row: float(row[7].ours or 0), default=None)
    parts = [_warning(table, row) for row in [*wanted, *([] if best is None or best in wanted else [best])]]
    chosen, judged = (quote(table, rows[0], column) for column in ("Chosen on (runs)", "Judged on"))
    basis = f"thresholds chosen on {chosen} runs that did not grok and judged on {judged}"
    cut = tuple(f"{title} by step " for title in titles)
    late = [
        row for row in table.rows[-len(CANDIDATES) :] if str(row[0].ours).startswith(cut) and row[7].ours is not None
    ]
    last = ", ".join(dict.fromkeys(str(row[0].ours).rpartition(" by step ")[2] for row in late))
    watched = "; ".join(_warning(table, row) for row in late)
    also = f" If runs that did not grok are evaluated only up to step {last}, where the last of the others had grokked"
    return (
        f"At an equal false-alarm rate of at most {100 * RATES[0]:g} % ({basis}), the share of grokked runs with an "
        f"alarm before grokking is: {'; '.join(parts)}.{f'{also}: {watched}.' if late else ''}"
    )


def _warning(table: Table, row: Row) -> str:
    warned, steps = (quote(table, row, column) for column in ("Warned before grokking", "Median lead (steps)"))
    return f"{str(row[0].ours).partition(', at most')[0]} {warned}, median lead {steps}"


def _alarms(name: str, configurations: tuple[str, ...], experiment: str, **options: object) -> Estimand:
    return Estimand(
        name,
        every_run(*configurations, experiment=experiment),
        read_lead,
        {
            "crosses": total("does not grok, but crosses"),
            "did not grok": count("does not grok, but crosses"),
            "share": mean("does not grok, but crosses"),
        },
        "{crosses:.0f} of {did not grok:.0f}",
        ("share", ".0%"),
        options=options,
    )


CLAIMS = (
    Claim(
        "no-false-alarms",
        "FSD crosses its threshold in at most 5 % of the runs that cannot grok because their labels are shuffled.",
        "Abstract, §5.2: FSD predicts grokking; tested here",
        "not tested",
        _alarms("crossings with shuffled labels", ("shuffled",), "negatives"),
        Rule.of_many(rule.at_most(0.05, "share")),
        "sup-false-alarms",
        "new",
    ),
    Claim(
        "no-false-alarms-without-structure",
        "FSD, read over the order of the symbols every 500 steps, crosses its threshold in at most 5 % of the runs on "
        "a random table or a random Latin square, where nothing can be found.",
        "Abstract, §5.2: FSD predicts grokking; tested here",
        "not tested",
        # These tables have no basis of their own; of an addition this column is FSD itself.
        _alarms("crossings without structure", ("latin97", "random97"), "structureless", column="control_fsd"),
        Rule.of_many(rule.at_most(0.05, "share")),
        "sup-false-alarms",
        "new",
    ),
    Claim(
        "late-grokking-leads",
        "With 15 % of the pairs, where runs grok late if at all, FSD crosses before grokking in most that grok.",
        "asked here",
        "—",
        Estimand(
            "leads with little data",
            every_run("little_data", experiment="long"),
            read_lead,
            {"share": mean("first"), "groks": mean("groks")},
            "{share:.0%} of those that grok",
            ("share", ".0%"),
        ),
        Rule.of_many(rule.above(0.5, "share")),
        "sup-false-alarms",
        "new",
    ),
)
SUPPLEMENTS = (Item("sup-false-alarms", ("base", "negatives"), _table, _sentence),)
