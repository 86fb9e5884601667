"""Reading makes nothing: no run, no folder, no file but the index, and that only where there are many runs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import grokscope
from grokscope.jobs import Stopped, reject_impossible, run_all, state_at
from grokscope.runs import Measuring, Run, Store, kept_plans, measure_checkpoints, open_store, run_name
from grokscope.runs import index as indexing
from grokscope.runs.damage import damaged_runs
from grokscope.runs.doctor import examine
from grokscope.runs.following import Follower
from grokscope.runs.packing import finished_records
from grokscope.specs import Architecture, Cadence, Fork, Plan, RunSpec, Training
from grokscope.view.data import tables_of
from grokscope.view.page.sources import source_of
from grokscope.view.summary import summarize, summarize_run

SPEC = RunSpec(
    task="add_mod5",
    train_fraction=0.6,
    architecture=Architecture(layers=1, width=8, heads=2, mlp_width=8),
    training=Training(steps=8, batch_size=8),
    checkpoints=Cadence(every=4),
    measurements=Cadence(every=2),
)
OTHER, ABSENT = SPEC.with_seed(1), SPEC.with_seed(2)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, calls = tmp_path_factory.mktemp("runs"), iter(range(100))
    run_all([SPEC], Store(folder), compiled=False, measuring=Measuring(("fsd",)))
    with pytest.raises(Stopped):
        run_all([OTHER], Store(folder), compiled=False, should_stop=lambda: next(calls) == 2)
    (folder / run_name(OTHER) / ".half.1.partial").touch()  # of a writer that was killed
    return folder


def everything(path: Path) -> dict[str, tuple[int, ...]]:
    stats = {str(p.relative_to(path)): p.lstat() for p in path.rglob("*")}
    return {name: (s.st_ino, s.st_size, s.st_mtime_ns, s.st_mode) for name, s in stats.items()}


def followed(path: Path) -> None:
    follower = Follower(path, sparing=True)
    for run in follower.update():
        _ = run.timeline
    follower.update()


READERS: dict[str, Callable[[Path], object]] = {
    "open": lambda path: [(run.record, run.facts(), run.summary(), run.log()) for run in grokscope.open(path)],
    "table": lambda path: (grokscope.open(path).table(), grokscope.open(path).facts()),
    "weights": lambda path: grokscope.open(path)[run_name(SPEC)].module(8),
    "measures": lambda path: list(measure_checkpoints(grokscope.open(path)[run_name(SPEC)], ["fsd"])),
    "follower": followed,
    "store": lambda path: (list(Store(path)), Store(path).is_finished(ABSENT), Store(path).has_begun(ABSENT)),
    "what is not there": lambda path: (
        Run(Store(path).locate(ABSENT)).record,
        summarize_run(Run(Store(path).locate(ABSENT))),
    ),
    "plans": lambda path: kept_plans(open_store(str(path))),
    "records": lambda path: finished_records(Plan(str(path), (SPEC, OTHER, ABSENT))),
    "doctor": lambda path: (list(examine(Store(path))), damaged_runs(Store(path))),
    "a stored state": lambda path: state_at(Store(path).find(run_name(SPEC)), 8, Store(path), compiled=False),
    "a state trained again": lambda path: state_at(Store(path).find(run_name(SPEC)), 5, Store(path), compiled=False),
    "checks": lambda path: reject_impossible(
        [ABSENT, replace(SPEC, fork=Fork(SPEC.content_hash, 4))], Store(path), "cpu"
    ),
    "tables": lambda path: tables_of(grokscope.open(path)),
    "page": source_of,
    "summary": lambda path: summarize(list(grokscope.open(path))),
}


@pytest.mark.parametrize("reader", READERS)
def test_reading_writes_nothing(reader: str, path: Path) -> None:
    if reader == "tables":
        pytest.importorskip("pyarrow")
    before = everything(path)
    READERS[reader](path)
    assert everything(path) == before


def test_what_is_not_there_is_not_made(tmp_path: Path) -> None:
    for read in (list, Store.names, kept_plans, lambda store: list(examine(store)), lambda store: store.get("x")):
        read(Store(tmp_path / "none"))
    assert Follower(tmp_path / "none").update() == []
    assert list(tmp_path.iterdir()) == []


def test_many_runs_get_an_index_and_nothing_else(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "PAYS_FROM", 2)
    before = everything(path)
    READERS["table"](path)
    followed(path)
    assert everything(path).keys() - before.keys() == {indexing.INDEX}
    (path / indexing.INDEX).unlink()
    assert everything(path) == before
