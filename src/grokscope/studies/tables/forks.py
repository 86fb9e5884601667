"""Tables of forked runs: the intervention on weight decay and the law Δt = C/λ."""

from collections.abc import Iterable, Mapping, Sequence
from math import isnan

import numpy as np

from grokscope.law import Ending, ForkedRun, LawFit, fit_each_draw, fit_law, forked_run
from grokscope.runs.records import RunRecord
from grokscope.stats import bootstrap, share
from grokscope.studies.evidence import Evidence
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.studies.tables.reading import REPORTED_LOOKS, SEED, came, number, pooled_steps, seen_every
from grokscope.view.table import Cell, Column, Row, Table, Value, estimated, not_trained, text

__all__ = ["law_of", "left_out", "pooled_wait", "tab_crossprime", "tab_timing", "tab_wd"]

DECAYS = ("1", "2", "3", "4", "5", "10")
PRINTED_RUN = "add_mod97_s42"
FITTED = 5.0  # λ = 10 is kept out of the printed fit
STABLE = 3.0
DRAWS = 5  # printed of each cell of Table 10
LOOKS = f"Seen every {PRINTED_LOOKS} steps, as in the paper; forked at step 1,000 with Adam's moments kept."


def tab_wd(evidence: Evidence) -> Table:
    """Table 4: how much sooner a run groks when λ is raised at step 1,000."""
    printed, study = REPORTED["tab:wd_intervention"], evidence.study("fork")
    runs = {name: seen_every(record) for name, record in study.items()}
    is_widened = any(not name.startswith(PRINTED_RUN + "_") for name in study)
    control = _forked(runs.get(f"{PRINTED_RUN}_x1"))
    rows: list[Row] = []
    for decay in DECAYS:
        paper = {column: printed.get(decay, column) for column in printed.columns}
        record = runs.get(f"{PRINTED_RUN}_x{decay}")
        found = _forked(record)
        never: Value = "never" if paper["grok"] is None else None
        cells = (
            Cell(came(record.timeline.grokked) if record else None, paper["grok"] or never),
            Cell(_wait(found), paper["wait"] or never),
            Cell(_speedup(control, found), paper["speedup"]),
            Cell(str(found.outcome) if found else None, paper["mark"]),
        )
        members = [forked_run(run.spec, run.timeline) for name, run in runs.items() if name.endswith(f"_x{decay}")]
        rows.append((text(decay), *cells, *(pooled_wait(members) if is_widened else ())))
    columns = [
        *map(Column, ("λ", "Grok step", "Δt from fork")),
        Column("Speedup vs. λ = 1", digits=2),
        Column("Outcome"),
    ]
    if is_widened:
        columns += [Column("Δt, all seeds"), Column("Grokked, all seeds", digits=2)]
    notes = (LOOKS, *_widened_note(is_widened), *not_trained(_missing(study)))
    title = "Intervention on weight decay"
    return Table("tab-wd", printed.label, title, tuple(columns), tuple(rows), notes)


def _missing(study: Mapping[str, RunRecord]) -> set[str]:
    return {f"{PRINTED_RUN}_x{decay}" for decay in DECAYS} - study.keys()


def _widened_note(is_widened: bool) -> tuple[str, ...]:
    sentence = (
        "All seeds: median Δt of the runs forked before grokking; one that did not grok is later than all others."
    )
    return (sentence,) if is_widened else ()


def _forked(record: RunRecord | None) -> ForkedRun | None:
    return None if record is None else forked_run(record.spec, record.timeline)


def _wait(run: ForkedRun | None) -> Value:
    """Δt; in words where there is none."""
    if run is None:
        return None
    words = {Ending.CENSORED: "never", Ending.FAILED: "never", Ending.BEFORE: "before the fork"}
    return words.get(run.ending, run.steps_to_grok)


def _speedup(control: ForkedRun | None, run: ForkedRun | None) -> Value:
    if control is None or run is None:
        return None
    if not (control.ending is run.ending is Ending.GROKKED) or not (control.steps_to_grok and run.steps_to_grok):
        return "n/a"
    return control.steps_to_grok / run.steps_to_grok


def pooled_wait(runs: Sequence[ForkedRun]) -> tuple[Cell, Cell]:
    """The median Δt of the runs that had not grokked at the fork, and the share of them that did."""
    waiting = [run for run in runs if run.ending is not Ending.BEFORE]
    if not waiting:
        return Cell(), Cell()
    # A run that became unstable will not grok: it stays at risk as long as any, and never leaves for its own reasons.
    longest = int(max(run.watched for run in waiting))
    steps = [None if run.steps_to_grok is None else int(run.steps_to_grok) for run in waiting]
    grokked = sum(step is not None for step in steps)
    return pooled_steps(steps, [longest] * len(steps)), estimated(share(grokked, len(steps)))


def tab_timing(evidence: Evidence) -> Table:
    """Table 9: Δt = C/λ fitted to one run's branches, C = mean(λΔt)."""
    printed, study = REPORTED["tab:timing_fit"], evidence.study("fork")
    runs = {name: forked_run(record.spec, seen_every(record).timeline) for name, record in study.items()}
    own = {decay: run for decay in DECAYS if (run := runs.get(f"{PRINTED_RUN}_x{decay}"))}
    fit = law_of(own.values(), FITTED)
    rows = [_timing_row(decay, own.get(decay), fit) for decay in DECAYS]
    rows.append(_fit_row("C, λ ≤ 5", fit, "all"))
    rows.append(_fit_row("C, λ ≤ 3", law_of(own.values(), STABLE), "stable"))
    if len(runs) > len(own):
        for title, highest in (("C, λ ≤ 5, all seeds", FITTED), ("C, λ ≤ 3, all seeds", STABLE)):
            rows.append(_fit_row(title, law_of(runs.values(), highest), None))
    headings = ("λ", "Δt observed", "Δt predicted", "Error", "Status", "C")
    notes = (
        LOOKS,
        "C = mean(λΔt) over the mean Δt of each λ, the paper's estimator; λ = 10 is not in the fit, as printed.",
        "Intervals of C are over seeds; runs that never grokked are not in the fit.",
        *not_trained(_missing(study)),
    )
    columns = (*map(Column, headings), Column("R²", digits=2))
    return Table("tab-timing", printed.label, "Fit of the timing law", columns, tuple(rows), notes)


def law_of(runs: Iterable[ForkedRun], highest: float) -> LawFit | None:
    """C/λ by the paper's estimator; None where no run grokked after its fork."""
    chosen = [run for run in runs if run.weight_decay <= highest]
    if not any(run.ending is Ending.GROKKED for run in chosen):
        return None
    return fit_law(chosen, "mean", seed=SEED)


def _timing_row(decay: str, run: ForkedRun | None, fit: LawFit | None) -> Row:
    printed = REPORTED["tab:timing_fit"]
    paper = {column: printed.get(decay, column) for column in printed.columns}
    observed, predicted = _wait(run), fit.predict(float(decay)) if fit else None
    known = predicted is not None and isinstance(observed, int | float)
    error = abs(observed - predicted) if known else None  # type: ignore[operator]
    return (
        text(decay),
        Cell(observed, paper["observed"] or "never"),
        Cell(predicted, paper["predicted"]),
        Cell(error, paper["error"]),
        Cell(str(run.outcome) if run else None, paper["status"]),
        Cell(),
        Cell(),
    )


def _fit_row(title: str, fit: LawFit | None, row: str | None) -> Row:
    printed = REPORTED["tab:timing_fit"]
    paper = {column: printed.get(row, column) if row else None for column in ("constant", "r_squared")}
    constant, r_squared = _fit_cells(fit, paper["constant"], paper["r_squared"])
    return (text(title), Cell(), Cell(), Cell(), Cell(), constant, r_squared)


def _fit_cells(fit: LawFit | None, constant: Value, r_squared: Value) -> tuple[Cell, Cell]:
    if fit is None:
        return Cell(None, constant), Cell(None, r_squared)
    return estimated(fit.parameters["constant"], constant), Cell(number(fit.r_squared), r_squared)


def tab_crossprime(evidence: Evidence) -> Table:
    """Table 10: mean ± std of Δt over draws, C_p and R², for three primes."""
    printed, study = REPORTED["tab:crossprime"], evidence.study("crossprime")
    runs = [forked_run(record.spec, record.timeline) for record in study.values() if record.spec.fork]
    decays = ("1", "2", "3", "5")
    rows: list[Row] = []
    for modulus in printed.rows:
        own = [run for run in runs if run.task == f"add_mod{modulus}"]
        cells: list[Cell] = []
        for decay in decays:
            members = [run for run in own if run.weight_decay == float(decay)]
            cells += _mean_and_spread(
                members, printed.get(modulus, f"mean {decay}"), printed.get(modulus, f"std {decay}")
            )
        fit = law_of(own, FITTED)
        cells += _fit_cells(fit, printed.get(modulus, "constant"), printed.get(modulus, "r_squared"))
        rows.append((text(modulus), *cells, *_each_draw(own if fit else [], modulus)))
    waits = (column for decay in decays for column in (Column(f"Δt(λ = {decay})"), Column(f"std(λ = {decay})")))
    ends = (Column(f"{end} R² of a draw", digits=2) for end in ("Lowest", "Highest"))
    columns = (Column("p"), *waits, Column("C_p"), Column("R²", digits=2), *ends)
    notes = (
        "Δt is seen every 100 steps; mean and population standard deviation of the draws that grokked after the fork.",
        "Draws are seeds for p = 97, data orders for p = 53 and 131; intervals are percentile bootstraps over draws.",
        *left_out(runs),
        *not_trained(_missing_draws(study)),
    )
    title = "The timing law across primes"
    return Table("tab-crossprime", printed.label, title, columns, tuple(rows), notes)


def _mean_and_spread(runs: Sequence[ForkedRun], mean: Value, spread: Value) -> tuple[Cell, Cell]:
    waits = [float(run.steps_to_grok) for run in runs if run.steps_to_grok and run.ending is Ending.GROKKED]
    if not waits:
        ending = next((_wait(run) for run in sorted(runs, key=_is_before)), None)  # "never" if any waited in vain
        return Cell(ending, mean, n=len(runs) or None), Cell(None, spread)
    found = estimated(bootstrap(waits, seed=SEED, resamples=10_000), mean)
    if len(runs) <= DRAWS:
        found = Cell(found.ours, mean, n=found.n)
    return found, Cell(float(np.std(waits)), spread)


def _is_before(run: ForkedRun) -> bool:
    return run.ending is Ending.BEFORE


def _each_draw(runs: Sequence[ForkedRun], modulus: str) -> tuple[Cell, Cell]:
    printed = REPORTED["tab:crossprime"]
    found = [fit.r_squared for fit in fit_each_draw(runs).values() if not isnan(fit.r_squared)] if runs else []
    low, high = (min(found), max(found)) if found else (None, None)
    n = len(found) or None
    return Cell(low, printed.get(modulus, "low"), n=n), Cell(high, printed.get(modulus, "high"), n=n)


def left_out(runs: Sequence[ForkedRun]) -> tuple[str, ...]:
    """How many runs are not in the means, and why."""
    counts = {ending: sum(run.ending is ending for run in runs) for ending in Ending if ending is not Ending.GROKKED}
    said = [f"{count} {ending}" for ending, count in counts.items() if count]
    return (f"Of {len(runs)} forks, not in the means: {', '.join(said)}.",) if said else ()


def _missing_draws(study: Mapping[str, RunRecord]) -> set[str]:
    moduli, draws = REPORTED["tab:crossprime"].rows, (42, 123, 0, 1, 2)
    wanted = {f"add_mod{modulus}_d{draw}_x{decay}" for modulus in moduli for draw in draws for decay in (1, 2, 3, 5)}
    return wanted - study.keys()
