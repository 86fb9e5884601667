"""`grokscope benchmark`: how well forecasters see grokking coming, scored on runs whose end is known."""

import hashlib
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
    from grokscope.forecast.benchmark import Scores, Seal
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
    "CRPS": "CRPS",
    "inside 80 %": "inside 80 %",
    "error/floor": "error over floor",
}
FOLDS = 5
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
    alone): 0.5 is chance. Coverage: runs announced in time at 5 % false alarms. Error: of the median, over that of the
    median of the other seeds. Intervals are bootstraps over cells; --json prints all scores.

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
    from grokscope.forecast.benchmark import BASELINES, Seal
    from grokscope.forecast.cases import cell_key, usable_cases
    from grokscope.runs.record_files import records_at

    for name in forecasters:
        is_file = name.endswith((".py", ".json"))
        if not is_file and name not in BASELINES:
            near = did_you_mean(name, BASELINES)
            raise InputError(f"there is no forecaster {shown(name)}{near or '; there are ' + ', '.join(BASELINES)}")
    records = records_at(runs)
    cases = usable_cases([(record.spec, record.evaluations) for record in records])
    if laws:
        _print_laws(cases, split, as_json)
        return
    seal = Seal.load(sealed) if sealed else None
    sealed_specs = [record.spec for record in records if seal is not None and seal.holds(record.spec)]
    sealed_cells = {cell_key(spec) for spec in sealed_specs}
    known = [case for case in cases if case.cell not in sealed_cells]
    scored = cases if seal is None else [case for case in cases if case.cell in sealed_cells]
    if not scored:
        raise InputError(f"none of the runs of {runs} can be scored: whole runs that memorised are needed")
    names = forecasters or _logged(tuple(BASELINES), cases)
    texts = [_parameters(name) for name in names]  # before anything of them is run
    found = [_scores(*one, scored, known, split, seal is not None) for one in zip(names, texts, strict=True)]
    if seal is not None and sealed is not None:
        has_all = seal.has_all(sealed_specs, _searched(records) if seal.searched else ())
        _note(found, names, texts, seal, has_all, ledger or sealed.with_name("LEDGER.jsonl"))
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


def _print_laws(cases: "list[Case]", split: str, as_json: bool) -> None:
    from grokscope.forecast.benchmark import LAWS, score_laws

    found = score_laws(cases, lambda case: _fold(case, split))
    if as_json:
        print(json.dumps([_plain(asdict(one)) for one in found]))
        return
    rows = [[one.name, LAWS[one.name].formula, str(one.error), str(one.over_floor), f"{one.runs:,}"] for one in found]
    print_columns(["law", "T", "error", "over floor", "runs"], rows, right=frozenset({"runs"}))
    print(
        f"\nerror: mean of |forecast − T| / T, fitted without the {split} scored; floor: the median of the other seeds"
    )


def _scores(name: str, text: str, scored: "list[Case]", known: "list[Case]", split: str, is_sealed: bool) -> "Scores":
    from grokscope.forecast.benchmark import BASELINES, fit_baseline, score_folds, score_forecaster
    from grokscope.forecast.hazard import HazardForecaster
    from grokscope.forecast.own_process import ForecasterApart

    if name.endswith(".py"):
        with ForecasterApart(Path(name), text) as own:
            return score_forecaster(own, scored)
    if name.endswith(".json"):
        return score_forecaster(HazardForecaster.from_json(text, Path(name).name), scored)
    if not is_sealed and len({_fold(case, split) for case in scored}) < 2:
        raise InputError(f"baselines are fitted to other folds than they are scored on, and the {split} makes only one")
    if is_sealed:
        return score_forecaster(fit_baseline(name, known), scored)
    return score_folds(
        lambda cases: fit_baseline(name, cases), scored, lambda case: _fold(case, split), name, BASELINES[name].tier
    )


def _fold(case: "Case", split: str) -> str:
    """Cells are dealt to five folds by a digest of their key; families and architectures are folds of their own."""
    if split == "cell":
        return str(int(hashlib.sha256(case.cell.encode()).hexdigest(), 16) % FOLDS)
    return case.family if split == "family" else case.architecture


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
