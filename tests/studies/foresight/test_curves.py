"""What is kept of each run, and that several processes and files change nothing."""

from math import nan
from pathlib import Path

import pytest

from grokscope.forecast.benchmark import score_forecaster
from grokscope.forecast.benchmark.asking import regular_step
from grokscope.forecast.cases import usable_cases
from grokscope.forecast.forecast import Forecast
from grokscope.runs import RunOutcome, Store
from grokscope.runs.packing import read_head, unpack_records
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies.foresight import curves
from grokscope.studies.foresight.curves import pack_curves, thinned

NOTHING = {name: [0.0] * 401 for name in ("train_accuracy", "validation_accuracy")}


def stored(store: Path, count: int) -> list[RunSpec]:
    """Runs that grok between two evaluations that would be left out."""
    specs = [RunSpec().with_seed(seed) for seed in range(count)]
    for seed, spec in enumerate(specs):
        run = Store(store).add(spec)
        for step in range(0, 6001, 50):
            accuracy = 0.9499999 if step < 4250 else 0.9500001
            row = {"step": step, "train_accuracy": 1.0, "validation_accuracy": accuracy, "rank": 3, "fingerprint": step}
            run.append({**row, "norm": 1.234567 + seed, "fsd": nan})
        run.finish(RunOutcome("grokked", grokked=4250))
    return specs


def test_the_step_of_grokking_is_that_of_all_evaluations_and_the_rule_says_which_are_kept(tmp_path: Path) -> None:
    [spec] = stored(tmp_path, 1)
    record = Store(tmp_path).locate(spec).record()
    found = thinned(record).evaluations
    assert [step for step in found["step"] if step > 3800] == [
        *(3900, 4000, 4200, 4250, 4400, 4600, 4800, 5000, 5200, 5400, 5600, 5800, 6000)
    ]
    place = found["step"].index(4250)
    assert found["validation_accuracy"][place - 1 : place + 1] == [0.9499999, 0.9500001]
    assert (found["norm"][0], found["rank"][0], "fingerprint" in found) == (1.235, 3, False)
    assert found["fsd"][0] != found["fsd"][0]


@pytest.mark.parametrize("processes", [1, 2])
def test_all_runs_are_in_files_of_a_limited_size(
    processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = stored(tmp_path / "runs", 5)
    monkeypatch.setattr(curves, "AT_ONCE", 2)
    one = pack_curves(str(tmp_path / "runs"), specs[:2], tmp_path / "one.records.gz", {})
    monkeypatch.setattr(curves, "LARGEST_FILE", 1.5 * next(iter(one)).stat().st_size)
    out = tmp_path / "all.records.gz"
    written = pack_curves(str(tmp_path / "runs"), specs, out, {"split": "test"}, processes)
    assert [path.name for path in written] == [f"all{end}.records.gz" for end in ("", "-2", "-3")]
    assert [*written.values()] == [2, 2, 1]
    assert [record.spec for path in written for record in unpack_records(path)] == specs
    head = read_head(out)
    assert (head["split"], head["finished"], head["rule"]) == ("test", 2, curves.RULE)
    assert unpack_records(out)[0].outcome == Store(tmp_path / "runs").locate(specs[0]).outcome


def test_nothing_is_a_file_too(tmp_path: Path) -> None:
    assert pack_curves(str(tmp_path), [], tmp_path / "none.records.gz", {}) == {tmp_path / "none.records.gz": 0}
    assert unpack_records(tmp_path / "none.records.gz") == []


class Reader:
    """Notes at which steps runs are cut, and whether the last evaluation is one that is kept beside an event alone."""

    name, tier = "reader", 5

    def __init__(self) -> None:
        self.cuts: set[int] = set()

    def predict(self, prefixes, horizon):
        self.cuts |= {run.step for run in prefixes}
        return [Forecast(run.step, 0.5, horizon, {0.5: 1000.0}, 5) for run in prefixes]


def test_what_is_kept_beside_an_event_is_never_the_last_that_a_forecaster_sees() -> None:
    """A run that groks at 4,350 keeps its evaluation at 4,300: whoever were cut there would know of the next one."""
    runs = []
    for seed, grokked in enumerate(range(4250, 5050, 50)):
        steps = [*range(0, 8001, 50)]
        log = {
            "step": steps,
            "train_accuracy": [float(step >= 300) for step in steps],
            "validation_accuracy": [float(step >= grokked) for step in steps],
        }
        spec = RunSpec().with_seed(seed)
        runs.append((spec, thinned(RunRecord(spec, RunOutcome("grokked", grokked=grokked), log, {})).evaluations))
    reader = Reader()
    cases = usable_cases(runs)
    assert any(step % 200 for case in cases for step in case.run.steps.tolist() if 4000 < step < case.end)
    score_forecaster(reader, cases)
    assert max(reader.cuts) > 4000
    assert all(step % 200 == 0 for step in reader.cuts if step > 4000)


def test_questions_are_asked_only_where_every_run_keeps_its_evaluation() -> None:
    asked = {regular_step(step) for step in range(1, 20_000, 7)}
    assert {*curves.kept_places({"step": [*range(0, 20_001, 50)], **NOTHING})} >= {step // 50 for step in asked}
