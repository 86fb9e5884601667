"""The page of a benchmark of forecasters: every score of every forecaster, as Markdown."""

from collections.abc import Sequence

from grokscope.forecast.benchmark import BASELINES, Scores
from grokscope.view.calibration import calibration_tables

__all__ = ["forecasters_page"]

TABLES = {
    "Which run of a cell groks sooner": (
        "Concordance within cells, cut at a share of the cell's median; 0.5 is chance.",
        [f"concordance at {share}" for share in ("10%", "25%", "50%", "75%")],
    ),
    "Whether a run groks within the next 2,000 steps": (
        "AUROC within cells, and between runs of all cells, cut at one step for all.",
        [f"AUROC {where} at {share}" for where in ("within", "across") for share in ("25%", "50%")],
    ),
    "Alarms": (
        "Share of runs announced in time, by thresholds that gave 1, 5 and 10 % false alarms on the other runs; the "
        "share of false alarms that they give on these, at matched exposure; mean steps from the alarm to grokking.",
        [f"{what} at {share}" for what in ("coverage", "false alarms", "lead") for share in ("1%", "5%", "10%")],
    ),
    "Probabilities and times": (
        "At steps 200, 400, 800, … of all runs. Floor: the error of the median of the other seeds.",
        ["Brier", "CRPS", "inside 80 %", "error", "error over floor"],
    ),
}


def forecasters_page(scores: Sequence[Scores], cells: int, split: str) -> str:
    """One table for each question; values with 95 % intervals over cells.

    >>> print(forecasters_page([Scores("mine", 5, {}, 40)], 4, "cell").splitlines()[2])
    40 runs in 4 cells. Baselines are fitted to runs of other folds, split by cell. The tier says what is read.
    """
    runs = max((one.runs for one in scores), default=0)
    lines = [
        "# Forecasters",
        "",
        f"{runs:,} runs in {cells:,} cells. Baselines are fitted to runs of other folds, split by {split}. "
        "The tier says what is read.",
    ]
    for title, (sentence, names) in TABLES.items():
        lines += [
            "",
            f"## {title}",
            "",
            sentence,
            "",
            _row(["forecaster", "tier", *names]),
            _row(["---"] * (len(names) + 2)),
        ]
        for one in scores:
            values = [str(one.values[name]) if name in one.values else "–" for name in names]
            lines.append(_row([one.name, str(one.tier), *values]))
    lines += [
        "",
        "## Calibration",
        "",
        "Of the forecasts at those steps: the share that grokked within the horizon, by the probability that was said, "
        "with the number of forecasts; then the share of times inside intervals that should hold 50, 80 and 90 %.",
        "",
        *calibration_tables(scores),
    ]
    shown = [one.name for one in scores if one.name in BASELINES]
    lines += ["", "## What they are", "", *(f"- `{name}`: {BASELINES[name].meaning}" for name in shown)]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
