"""`grokscope benchmark`: how well forecasters see grokking coming, scored on runs whose end is known."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from grokscope.cli.columns import print_columns
from grokscope.cli.options import File, Flag, Force, JsonFlag, reject
from grokscope.errors import InputError, did_you_mean, plural, require, shown
from grokscope.files import named, read_given, write_atomically
from grokscope.view import require_module

if TYPE_CHECKING:
    from grokscope.forecast import Forecaster
    from grokscope.forecast.benchmark import Scores, Seal
    from grokscope.forecast.benchmark.folds import Split
    from grokscope.forecast.benchmark.thresholds import Thresholds
    from grokscope.forecast.cases import Case
    from grokscope.runs.records import RunRecord
    from grokscope.specs import RunSpec

__all__ = ["benchmark"]

SHOWN = {
    "concordance 25 %": "concordance at 25%",
    "concordance 50 %": "concordance at 50%",
    "AUROC within 50 %": "AUROC within at 50%",
    "AUROC across 50 %": "AUROC across at 50%",
    "coverage 5 %": "coverage at 5%",
    "false 5 %": "false alarms at 5%",
    "CRPS": "CRPS",
    "inside 80 %": "inside 80 %",
    "error/floor": "error over floor",
}
Source = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUNS")]


def benchmark(
    runs: Source,
    forecasters: Annotated[
        tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FORECASTER ...", help_behavior_hint="")
    ] = (),
    split: Literal["cell", "family", "architecture"] = "cell",
    sealed: File = None,
    ledger: File = None,
    out: File = None,
    figure: File = None,
    force: Force = False,
    laws: Annotated[Flag, tyro.conf.arg(help_behavior_hint="")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Score forecasters on runs whose end is known.

    A forecaster is shown each run only up to an evaluation, and says how probable it is that the run groks within the
    next 2,000 steps, and quantiles of the steps left. Concordance is within cells (runs that differ in their seeds
    alone): 0.5 is chance. Coverage: runs announced in time, by a threshold that gave 5 % false alarms on other runs;
    false: how many it gives here. Error: of the median, over that of the median of the other seeds. Intervals are
    bootstraps over cells; --json prints all scores.

    Args:
        runs: A folder of runs, a folder with packed records, or one file of them.
        forecasters: FILE.py with predict(prefixes, horizon), FILE.json with fitted parameters, or names of baselines,
            which are fitted to the other folds; all baselines if not given.
        split: What is held out together when a baseline is fitted.
        sealed: A seal; only its test cells are scored, and every score is noted in the ledger.
        ledger: Where that is; LEDGER.jsonl beside the seal if not given.
        out: Write all scores as a page, FILE.md.
        figure: Draw calibration curves, with n of each bin and intervals over cells, of the first four forecasters:
            FILE.svg, with their numbers in FILE.csv.
        laws: Score timing laws instead, which say at the start when a run groks.

    Examples:
        grokscope benchmark results/bakeoff clock
        grokscope benchmark results/bakeoff mine.py
        grokscope benchmark results/bakeoff --laws
    """
    reject(
        {
            "--ledger has no effect without --sealed": ledger is not None and sealed is None,
            "--laws takes no forecasters, no seal, no --out and no --figure": laws
            and (forecasters or sealed or out or figure),
            f"--figure must end in .svg, got {figure}": figure is not None and figure.suffix != ".svg",
        }
        | {
            f"{path} exists already; nothing was overwritten (--force replaces it)": path.exists() and not force
            for path in (out, figure)
            if path is not None
        }
    )
    if figure is not None:
        require_module("matplotlib", "report")
    from grokscope.forecast.benchmark import BASELINES, Ledger, Seal
    from grokscope.forecast.cases import cell_key, usable_cases
    from grokscope.studies.sources import every_record, record_places

    for name in forecasters:
        is_file = name.endswith((".py", ".json"))
        if not is_file and name not in BASELINES:
            near = did_you_mean(name, BASELINES)
            raise InputError(f"there is no forecaster {shown(name)}{near or '; there are ' + ', '.join(BASELINES)}")
    records = every_record(runs)
    seal = Seal.load(sealed) if sealed else None
    _reject_unsealed(records, seal)
    cases = usable_cases([(record.spec, record.evaluations) for record in records])
    if laws:
        _print_laws(cases, split, as_json)
        return
    sealed_specs = [record.spec for record in records if seal is not None and seal.holds(record.spec)]
    sealed_cells = {cell_key(spec) for spec in sealed_specs}
    known = [case for case in cases if case.cell not in sealed_cells]
    scored = cases if seal is None else [case for case in cases if case.cell in sealed_cells]
    if not scored:
        raise InputError(f"none of the runs of {runs} can be scored: whole runs that memorised are needed")
    names = forecasters or _logged(tuple(BASELINES), cases)
    texts = [_parameters(name) for name in names]  # before anything of them is run
    book = None if seal is None or sealed is None else ledger or sealed.with_name("LEDGER.jsonl")
    if seal is not None and book is not None:
        Ledger(book).begin(seal, dict(zip(names, texts, strict=True)))
    hidden = record_places(runs)
    found = [_scores(*one, scored, known, split, seal is not None, hidden) for one in zip(names, texts, strict=True)]
    if seal is not None and book is not None:
        has_all = seal.has_all(sealed_specs, _searched(records) if seal.searched else ())
        _note(found, names, texts, seal, has_all, book)
    if out is not None:
        from grokscope.view.forecasters_page import forecasters_page

        write_atomically(out, forecasters_page(found, len({case.cell for case in scored}), split).encode())
    if figure is not None:
        _draw(found, figure, f"{'sealed' if seal else 'development'} cells, n beside the points")
    if as_json:
        print(json.dumps([_plain(asdict(one)) for one in found]))
        return
    print_columns(
        ["forecaster", "tier", *SHOWN],
        [[one.name, str(one.tier), *(str(one.values[key]) if key in one.values else "–" for key in SHOWN.values())]
         for one in found],
        right=frozenset({"tier"}), whole=frozenset({"forecaster"}),
    )  # fmt: skip
    cells = len({case.cell for case in scored})
    print(f"\n{plural(len(scored), 'run')} in {plural(cells, 'cell')}; baselines fitted without the {split} scored")
    for one, text in zip(found, texts, strict=True):
        if one.name.endswith(".py") and one.alarms and "ALARMS" not in text:
            print(f"thresholds of {one.name} on these runs, to be fixed before others: ALARMS = {_written(one.alarms)}")
        if seal is not None and not one.alarms and one.name.endswith((".py", ".json")):
            print(f"{one.name} has no thresholds of its own; on sealed cells its alarms are not scored")


def _written(alarms: "Thresholds") -> str:
    return str({level: float(f"{threshold:.6g}") for level, threshold in alarms.items()})


def _draw(found: "list[Scores]", path: Path, of: str) -> None:
    from grokscope.view.calibration import calibration_figure
    from grokscope.view.charts.files import figure_csv, pictures_of

    figure = calibration_figure(found, of)
    write_atomically(path, pictures_of(figure, ["svg"])["svg"])
    write_atomically(path.with_suffix(".csv"), figure_csv(figure))


def _logged(names: tuple[str, ...], cases: "list[Case]") -> tuple[str, ...]:
    """The baselines of which some run has what they read; the others are named."""
    from grokscope.forecast.benchmark.baselines import unlogged_signals

    lacking = {name: found for name in names if (found := unlogged_signals(name, cases))}
    for name, found in lacking.items():
        print(f"{name} is not scored: no run has {', '.join(found)}", file=sys.stderr)
    return tuple(name for name in names if name not in lacking)


def _print_laws(cases: "list[Case]", split: "Split", as_json: bool) -> None:
    from grokscope.forecast.benchmark import LAWS, score_laws
    from grokscope.forecast.benchmark.folds import fold_of

    found = score_laws(cases, lambda case: fold_of(case, split))
    if as_json:
        print(json.dumps([_plain(asdict(one)) for one in found]))
        return
    rows = [[one.name, LAWS[one.name].formula, str(one.error), str(one.over_floor), f"{one.runs:,}"] for one in found]
    print_columns(["law", "T", "error", "over floor", "runs"], rows, right=frozenset({"runs"}))
    print(
        f"\nerror: mean of |forecast − T| / T, fitted without the {split} scored; floor: the median of the other seeds"
    )


def _scores(
    name: str,
    text: str,
    scored: "list[Case]",
    known: "list[Case]",
    split: "Split",
    is_sealed: bool,
    hidden: Sequence[Path],
) -> "Scores":
    from grokscope.forecast.benchmark import BASELINES, fit_baseline, score_folds, score_forecaster
    from grokscope.forecast.benchmark.folds import fold_of
    from grokscope.forecast.benchmark.thresholds import fit_thresholds
    from grokscope.forecast.hazard import HazardForecaster
    from grokscope.forecast.own_process import ForecasterApart

    def fit(cases: "Sequence[Case]") -> "Forecaster":
        return fit_baseline(name, cases)

    if name.endswith(".py"):
        with ForecasterApart(Path(name), text, hidden) as own:
            return score_forecaster(own, scored, own.alarms if is_sealed else None)
    if name.endswith(".json"):
        fitted = HazardForecaster.from_json(text, Path(name).name)
        return score_forecaster(fitted, scored, fitted.alarms if is_sealed else None)
    if is_sealed:
        return score_forecaster(fit(known), scored, fit_thresholds(fit, known))
    if len({fold_of(case, split) for case in scored}) < 2:
        raise InputError(f"baselines are fitted to other folds than they are scored on, and the {split} makes only one")
    return score_folds(fit, scored, lambda case: fold_of(case, split), name, BASELINES[name].tier)


def _parameters(name: str) -> str:
    """What a forecaster's sha256 is of: the text of its file, or the name of a baseline."""
    if not name.endswith((".py", ".json")):
        return name
    require(Path(name).is_file(), f"there is no file {named(Path(name))}")
    return read_given(Path(name), f"the forecaster {named(Path(name))}").decode(errors="replace")


def _note(
    found: "list[Scores]", names: Sequence[str], texts: Sequence[str], seal: "Seal", has_all: bool, path: Path
) -> None:
    from grokscope.forecast.benchmark import Ledger

    if not has_all:
        print("these are not all of the runs that were sealed, or not they alone; the ledger says so")
    for scores, name, text in zip(found, names, texts, strict=True):
        values = {key: (one.value, one.low, one.high) for key, one in scores.values.items() if not isnan(one.low)}
        times = Ledger(path).add(seal, name, text, values, has_all)
        if times > 1:
            print(f"{name} was scored {times} times on these sealed cells; the first score is the one that counts")


def _reject_unsealed(records: "list[RunRecord]", seal: "Seal | None") -> None:
    """Test runs of the collection are scored, and fitted to, by their seal alone: it is what notes each scoring."""
    from grokscope.studies.foresight.sealing import is_test_run

    cells = {record.spec.with_seed(0) for record in records}
    if any(is_test_run(spec) and not (seal is not None and seal.holds(spec)) for spec in cells):
        raise InputError(
            "there are test runs of `foresight` among these: --sealed SEAL.json scores them, and notes it in the ledger"
        )


def _searched(records: "list[RunRecord]") -> "list[RunSpec]":
    """The runs of cells on the boundary that there must be; only the collection has such cells."""
    from grokscope.studies.foresight.progress import searched_runs

    return [*searched_runs(records)]


def _plain(value: Any) -> Any:
    """Without NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and isnan(value) else value
