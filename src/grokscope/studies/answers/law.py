"""The timing law with the runs that have not yet grokked."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from grokscope.errors import InputError
from grokscope.law import CensoredFit, Ending, ForkedRun, fit_censored, fit_law, forked_run
from grokscope.law.censored import CensoredForm
from grokscope.runs.records import RunRecord
from grokscope.studies.answers.reading import counted, empty_row, listed, said
from grokscope.studies.synchronization.experiments import DECAYS
from grokscope.studies.evidence import Evidence
from grokscope.studies.tables.reading import SEED, pooled_steps
from grokscope.view.table import Cell, Column, Row, Table, estimated, text

__all__ = ["ans_law", "law_sentence"]

TASKS = {
    "add_mod53": "crossprime",
    "add_mod97": "crossprime",
    "add_mod131": "crossprime",
    "sub_mod97": "open_questions",
}
RESAMPLES = 200  # of draws, for the interval of every censored fit
ANCHORS = ("from the fork", "from the FSD crossing")
CONSTANT, EXPONENT = "C, censored runs in", "α, censored runs in"
COLUMNS = (
    *map(Column, ("Runs", "Forks", "In the fit")),
    Column("Grokked after", digits=2),
    Column("Not yet grokked (censored)", digits=2),
    Column("Unstable (left out)", digits=2),
    Column("Grokked before"),
    Column("Δt (median steps)"),
    Column(CONSTANT),
    Column("C, censored runs dropped"),
    Column("C, the paper's mean(λΔt)"),
    Column(EXPONENT, digits=2),
    Column("α, censored runs dropped", digits=2),
    Column("a of a + C/λ (steps)", signed=True),
    Column("AICc of C λ^−α less C/λ", digits=1, signed=True),
    Column("AICc of a + C/λ less C/λ", digits=1, signed=True),
)
NOTES = (
    "Δt is seen every 100 steps, from the fork, or from the first look at or after it with FSD ≥ 0.80. A fork that "
    "never crossed has no second wait and is not counted there; one that crossed at its grok look or later has grokked "
    "before.",
    "Fits with censored runs are by maximum likelihood of log Δt, normal around the law: a grokked run counts as the "
    "interval between two looks, a stable one that had not grokked by its last look as longer. Unstable runs, a "
    "competing event, are left out of every fit and told as a share.",
    "Dropped is the same fit without the censored runs; where none is censored, it is the same. The paper's estimator "
    "is C = mean(λΔt) over the mean Δt of each λ, grokked runs only.",
    "α is the exponent of Δt = C λ^−α; the law says 1. AICc compares fits of the same runs with censored ones in: "
    "below 0 speaks against C/λ.",
    f"Intervals are 95 % percentile bootstraps over draws, taken whole with all their forks, {RESAMPLES} times for the "
    "likelihood fits; draws are seeds for p = 97, data orders for 53 and 131. a has none. Shares have Clopper–Pearson "
    "intervals. The intervals are for one task at a time and not corrected for their number.",
    "Rows of one λ have the median Δt from the fork; runs that did not grok are later, and Kaplan–Meier's median is "
    "given.",
)


def ans_law(evidence: Evidence) -> Table:
    """C, the exponent and the offset of the timing law of every task with forks, and the cells behind them."""
    rows: list[Row] = []
    for task, study in TASKS.items():
        records = [
            record
            for record in evidence.study(study).values()
            if record.spec.task == task and record.spec.fork and record.spec.training.weight_decay in DECAYS
        ]
        anchored = [forked_run(r.spec, r.timeline) for r in records], [r for r in map(_from_crossing, records) if r]
        for anchor, runs in zip(ANCHORS, anchored, strict=True):
            title = f"{task}, {anchor}"
            rows.append((text(title), *_counts(runs), *_fits(runs)) if runs else empty_row(title, len(COLUMNS)))
        rows += [_cell_row(task, decay, anchored[0]) for decay in DECAYS]
    title = "Does Δt = C/λ hold when runs that have not yet grokked are counted?"
    return Table("ans-law", "ans:law", title, COLUMNS, tuple(rows), NOTES)


def _from_crossing(record: RunRecord) -> ForkedRun | None:
    """The fork with its wait counted from the crossing; None where FSD never crossed."""
    run, crossed = forked_run(record.spec, record.timeline), record.timeline.sync.step
    if crossed is None:
        return None
    delay = crossed - record.timeline.first
    left = None if run.steps_to_grok is None else run.steps_to_grok - delay
    return replace(run, steps_to_grok=left, watched=run.watched - delay)


def _counts(runs: Sequence[ForkedRun]) -> Row:
    """How the waits ended, and how long they were."""
    endings = [run.ending for run in runs]
    waiting = [run for run in runs if run.ending is not Ending.BEFORE]
    if not waiting:
        return Cell(len(runs)), Cell(0), Cell(), Cell(), Cell(), Cell(len(runs)), Cell()
    shares = [counted(run.ending is kind for run in waiting) for kind in tuple(Ending)[:3]]
    fitted = sum(ending in (Ending.GROKKED, Ending.CENSORED) for ending in endings)
    # A run that fell apart will not grok: it stays at risk as long as any.
    longest = int(max(run.watched for run in waiting))
    steps = [None if run.steps_to_grok is None else int(run.steps_to_grok) for run in waiting]
    median = pooled_steps(steps, [longest] * len(steps))
    return Cell(len(runs)), Cell(fitted), *shares, Cell(endings.count(Ending.BEFORE)), median


def _cell_row(task: str, decay: float, runs: Sequence[ForkedRun]) -> Row:
    title, own = f"{task}, λ = {decay:g}", [run for run in runs if run.weight_decay == decay]
    blank = (Cell(),) * (len(COLUMNS) - 8)
    return (text(title), *_counts(own), *blank) if own else empty_row(title, len(COLUMNS))


def _fits(runs: Sequence[ForkedRun]) -> Row:
    """The fits' cells; empty where too few values of λ have grokked runs."""
    dropped = [run for run in runs if run.ending is Ending.GROKKED]
    is_whole = not any(run.ending is Ending.CENSORED for run in runs)
    inverse, power, offset = _fit(runs, "inverse"), _fit(runs, "power"), _fit(runs, "offset", 0)
    without = (inverse, power) if is_whole else (_fit(dropped, "inverse"), _fit(dropped, "power"))
    return (
        _parameter(inverse, "constant"),
        _parameter(without[0], "constant"),
        estimated(fit_law(runs, "mean", seed=SEED).parameters["constant"]) if dropped else Cell(),
        _parameter(power, "exponent"),
        _parameter(without[1], "exponent"),
        _parameter(offset, "offset"),
        _difference(power, inverse),
        _difference(offset, inverse),
    )


def _fit(runs: Sequence[ForkedRun], form: CensoredForm, resamples: int = RESAMPLES) -> CensoredFit | None:
    try:
        return fit_censored(runs, form, seed=SEED, resamples=resamples)
    except InputError:  # fewer values of λ with grokked runs than the law has parameters
        return None


def _parameter(fit: CensoredFit | None, name: str) -> Cell:
    return Cell() if fit is None else estimated(fit.parameters[name])


def _difference(fit: CensoredFit | None, simple: CensoredFit | None) -> Cell:
    """How much higher the AICc of a fit is than that of C/λ; empty where one is not defined."""
    both = [_corrected(one) for one in (fit, simple) if one is not None]
    known = [value for value in both if value is not None]
    return Cell(known[0] - known[1]) if len(known) == 2 else Cell()


def _corrected(fit: CensoredFit) -> float | None:
    """AICc = AIC + 2k(k + 1)/(n − k − 1), with k parameters, σ among them (Hurvich and Tsai, 1989)."""
    size, k = fit.endings[Ending.GROKKED] + fit.endings[Ending.CENSORED], len(fit.parameters) + 1
    return fit.aic + 2 * k * (k + 1) / (size - k - 1) if size > k + 1 else None


def law_sentence(table: Table) -> str:
    """C and α of every task, from the fork."""
    found = [_said_fit(table, row) for row in _fork_rows(table.rows)]
    if not found:
        return "Whether Δt = C/λ holds with censored runs is not known: no fork has grokked."
    return f"With the runs that have not yet grokked counted as censored, {'; '.join(found)}."


def _fork_rows(rows: Iterable[Row]) -> list[Row]:
    place = [column.name for column in COLUMNS].index(CONSTANT)
    return [row for row in rows if str(row[0].ours).endswith(ANCHORS[0]) and row[place].ours is not None]


def _said_fit(table: Table, row: Row) -> str:
    parts = [f"C = {said(table, row, CONSTANT)}", f"α = {said(table, row, EXPONENT)}"]
    return f"{str(row[0].ours).partition(',')[0]} has {listed(parts)}"
