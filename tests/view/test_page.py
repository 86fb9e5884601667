"""What the page is made of: sources, numbers, null bands, laws, and what is told while runs train."""

import base64
import json
import os
import shutil
import sys
import zlib
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.synthetic import synthetic_records  # noqa: E402

from grokscope.cli import run as command  # noqa: E402
from grokscope.errors import InputError  # noqa: E402
from grokscope.jobs import run_all  # noqa: E402
from grokscope.runs import RunOutcome, Store, run_name  # noqa: E402
from grokscope.runs.packing import save_records  # noqa: E402
from grokscope.specs import Architecture, Cadence, Fork, RunSpec, Training  # noqa: E402
from grokscope.studies.sources import records_at  # noqa: E402
from grokscope.view.page import ShownRun, live, numbers, source_of, sources, write_page  # noqa: E402
from grokscope.view.page.island import island_of  # noqa: E402
from grokscope.view.page.laws import forks_of  # noqa: E402
from grokscope.view.page.live import Watch  # noqa: E402
from grokscope.view.page.nulls import null_bands  # noqa: E402
from grokscope.view.page.numbers import packed_columns, rounded  # noqa: E402

TINY = RunSpec(
    task="add_mod7",
    train_fraction=0.6,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=4, batch_size=16),
    checkpoints=Cadence(every=4),
    measurements=Cadence(every=2),
)
LOOK = {"train_accuracy": 0.5, "validation_accuracy": 0.25, "fsd": 0.1, "norm": 9.0}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        run_all([TINY], Store(folder), compiled=False)
    return folder


@pytest.fixture
def store(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "runs"))


def facts(island: dict[str, str]) -> dict[str, Any]:
    return json.loads(zlib.decompress(base64.b64decode(island["facts"])))


def columns(island: dict[str, str]) -> dict[str, np.ndarray]:
    """The columns as the page's script reads them, written a second time."""
    told, content = facts(island), zlib.decompress(base64.b64decode(island["columns"]))
    total, size = sum(told["lengths"]), 8 if told["digits"] is None else 4
    found = {
        "step": np.frombuffer(content[: 4 * total], np.uint8).reshape(4, total).T.copy().view("<i4")[:, 0].cumsum()
    }
    for place, name in enumerate(told["columns"]):
        part = content[4 * total + place * total * size :][: total * size]
        found[name] = np.frombuffer(part, np.uint8).reshape(size, total).T.copy().view(f"<f{size}")[:, 0]
    return found


def test_a_run_in_several_files_is_shown_as_the_claims_judge_it(tmp_path: Path) -> None:
    first, again = synthetic_records(1, looks=20)[0], synthetic_records(1, looks=30)[0]
    save_records(tmp_path / "a.records.gz", [first])
    save_records(tmp_path / "b.records.gz", [replace(again, spec=first.spec)])
    (shown,) = source_of(tmp_path).runs
    (judged,) = records_at(tmp_path)
    assert shown.record.evaluations == judged.evaluations
    assert len(shown.record.evaluations["step"]) == len(again.evaluations["step"]) != len(first.evaluations["step"])


def test_columns_come_back_exactly_where_they_fit(tmp_path: Path) -> None:
    records = synthetic_records(4, looks=20)
    save_records(tmp_path / "a.records.gz", records)
    source = source_of(tmp_path)
    found = columns(island_of(source))
    for name, values in found.items():
        assert values.tolist() == [x for run in source.runs for x in run.record.evaluations[name]], name


@pytest.mark.parametrize("digits", [4, 5, 6])
def test_rounded_numbers_have_the_digits_that_were_stored(digits: int) -> None:
    generator = np.random.default_rng(0)
    values = generator.uniform(1, 10, 20_000) * 10.0 ** generator.integers(-12, 12, 20_000)
    values[:4] = 0, -values[3], nan, np.inf
    for stored, kept in zip(values.tolist(), rounded(values, digits).tolist(), strict=True):
        assert f"{kept:.{digits}g}" == f"{stored:.{digits}g}"


def test_many_runs_keep_to_the_budget_by_digits_and_then_by_looks() -> None:
    logs = [record.evaluations for record in synthetic_records(10)]
    names = [name for name in logs[0] if name != "step"]
    sizes = [
        (p.digits, p.stride, len(p.text)) for p in (packed_columns(logs, names, b) for b in (10**9, 60_000, 10**4))
    ]
    assert sizes[0][:2] == (None, 1)
    assert sizes[1][0] in (4, 5, 6)
    assert sizes[1][2] <= 60_000
    assert sizes[2][1] > 1
    assert sizes[2][2] <= 10**4
    thin = packed_columns(logs, names, 10**4)
    assert thin.lengths[0] == len({*range(0, 151, thin.stride), 150})


def test_five_hundred_runs_stayed_under_three_megabytes_and_two_seconds_when_last_measured() -> None:
    measured = json.loads((ROOT / "benchmarks" / "results" / "report.json").read_text())["measured"]
    assert measured["runs"] >= 500
    assert measured["bytes"] < 3_000_000
    assert all(found["median_ms"] < 2000 for found in measured["usable_after"].values())


def test_unfinished_and_planned_runs_are_shown_as_far_as_they_are(store: Path) -> None:
    waiting = Store(store).add(TINY.with_seed(1))
    begun = Store(store).add(TINY.with_seed(2))
    begun.append({"step": 0, **LOOK})
    begun.append({"step": 2, **LOOK, "validation_accuracy": 0.99})
    rows = {row["name"]: row for row in facts(island_of(source_of(store)))["rows"]}
    assert rows[waiting.name]["outcome"] == "unfinished"
    assert rows[waiting.name]["last"] is None
    assert rows[begun.name]["outcome"] == "unfinished, grokked"
    assert (rows[begun.name]["last"], rows[begun.name]["grokked"]) == (2, 2)


def test_runs_are_chosen_by_the_beginning_or_the_pattern_of_their_names(store: Path) -> None:
    for seed in (1, 12, 2):
        Store(store).add(TINY.with_seed(seed))
    (store / f".damaged-{run_name(TINY)}").mkdir()
    (store / f".damaged-{run_name(TINY)}" / "spec.json").write_text(TINY.to_json())

    def seeds(match: str) -> list[int]:
        return sorted(run.record.spec.seeds.split for run in source_of(store, match=match).runs)

    assert seeds("") == [0, 1, 2, 12], "what was set aside is hidden"
    assert seeds("add_mod7_s1") == [1, 12]
    assert seeds("*_s[02]-*") == [0, 2]
    with pytest.raises(InputError, match="no run has a name like 'mult'"):
        source_of(store, match="mult")


def test_more_runs_than_a_page_shows_are_refused_before_they_are_read(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MOST_RUNS", 3)
    save_records(tmp_path / "a.records.gz", synthetic_records(4, looks=20))
    for seed in (1, 2, 3):
        Store(store).add(TINY.with_seed(seed))
    assert len(source_of(store, match="add_mod7_s1").runs) == 1
    monkeypatch.setattr(sources, "stored_run", lambda folder: pytest.fail("it was read"))
    for folder in (store, tmp_path):
        with pytest.raises(InputError, match=r"has 4 runs to show, and a page shows at most 3: .*--match.*query"):
            source_of(folder)
    with pytest.raises(InputError, match="at most 3"):
        live.serve_live(store, 0, "", lambda address: None)


def test_a_guess_at_the_size_of_many_runs_changes_no_packing(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [record.evaluations for record in synthetic_records(40, looks=20)]
    names = [name for name in logs[0] if name != "step"]
    budgets = (10**9, 40_000, 30_000, 20_000, 5_000, 10)
    exact = [packed_columns(logs, names, budget) for budget in budgets]
    monkeypatch.setattr(numbers, "SAMPLE", 8)
    assert [packed_columns(logs, names, budget) for budget in budgets] == exact
    assert len({(one.digits, one.stride) for one in exact}) > 3


def test_what_is_damaged_is_left_out_and_named(store: Path) -> None:
    broken = store / "broken"
    broken.mkdir()
    (broken / "spec.json").write_text("{")
    source = source_of(store)
    assert [run.name for run in source.runs] == [run_name(TINY)]
    assert "'broken' is left out" in source.problems[0]
    assert facts(island_of(source))["method"]["problems"] == list(source.problems)


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({}, "there is nothing to show in"),
        ({"a.records.gz": b"no"}, "cannot be read"),
        ({"claims.json": b"{}"}, "must hold a list"),
        ({"claims.json": b"[" * 100_000}, "cannot be read"),
        ({"provenance.json": b"[]"}, "must hold a table"),
    ],
)
def test_folders_that_cannot_be_used_are_refused(files: dict[str, bytes], sentence: str, store: Path) -> None:
    folder = store if files and "records" not in next(iter(files)) else store.parent
    for name, content in files.items():
        (folder / name).write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        source_of(folder)


def test_a_report_replaces_a_report_and_nothing_else(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    source = source_of(store)
    write_page(path, source)
    before = path.read_bytes()
    write_page(path, source)
    assert path.read_bytes() == before
    path.write_text("<html>my thesis</html>")
    with pytest.raises(InputError, match="is no report; nothing was overwritten"):
        write_page(path, source)
    assert path.read_text() == "<html>my thesis</html>"


def test_the_null_band_of_independent_neurons_is_that_of_drawn_ones() -> None:
    from grokscope.measures.nulls import uniform_null

    record = next(record for record in synthetic_records(1))
    (band,) = null_bands([ShownRun("one", record)]).values()
    drawn = uniform_null(512, 48, 4000)
    assert [band["low"], band["high"]] == pytest.approx([float(end) for end in drawn.band], abs=1.5 / 512)


def test_the_null_band_is_made_of_untrained_networks_where_there_are_enough() -> None:
    records = synthetic_records(20, looks=5, tasks=("S5",))
    bands = null_bands([ShownRun(str(i), record) for i, record in enumerate(records)])
    starts = [record.evaluations["fsd"][0] for record in records]
    assert bands["0"]["high"] == pytest.approx(np.quantile(starts, 0.95))
    assert bands["0"]["of"].startswith(f"{len(records)} untrained networks")


def test_the_laws_constant_is_the_mean_of_decay_times_wait() -> None:
    records = synthetic_records(25, tasks=("add_mod97",))
    told = forks_of([ShownRun(str(i), record) for i, record in enumerate(records)])
    fit = next(fit for fit in told["fits"] if fit["form"] == "mean")
    value, low, high = fit["parameters"]["constant"]
    waits: dict[float, list[float]] = {}
    for record in records:
        if record.spec.fork:
            grokked = next(
                s
                for s, x in zip(record.evaluations["step"], record.evaluations["validation_accuracy"], strict=True)
                if x >= 0.95
            )
            waits.setdefault(record.spec.training.weight_decay, []).append(grokked - 1000)
    assert value == pytest.approx(np.mean([decay * np.mean(steps) for decay, steps in waits.items()]))
    assert low < value < high
    assert len(told["waits"]) == sum(record.spec.fork is not None for record in records)
    assert all(told["families"][0]["parent"] is not None for _ in told["families"])


def test_branches_of_an_earlier_making_of_their_parent_are_counted() -> None:
    parent = next(record for record in synthetic_records(10) if not record.spec.fork)
    fork = Fork(parent.spec.content_hash, 1000)
    branch = replace(parent, spec=replace(parent.spec, fork=fork))

    def grown(scale: float) -> dict[str, list[float]]:
        return {**parent.evaluations, "norm": [scale * value for value in parent.evaluations["norm"]]}

    other = replace(branch, spec=branch.spec.with_seed(7), evaluations=grown(1.1))
    scaled = replace(branch, spec=replace(branch.spec, fork=replace(fork, scale=2.0)), evaluations=grown(2.0))
    shown = [ShownRun(str(place), record) for place, record in enumerate((parent, branch, other, scaled))]
    (family,) = forks_of(shown)["families"]
    assert (family["runs"], family["remade"]) == ([1, 2, 3], 1)
    (alone,) = forks_of(shown[1:])["families"]
    assert alone["remade"] == 0


def test_a_scaled_fork_is_a_branch_and_not_in_the_law() -> None:
    record = next(record for record in synthetic_records(10) if record.spec.fork)
    scaled = replace(record, spec=replace(record.spec, fork=replace(record.spec.fork, scale=2.0)))
    told = forks_of([ShownRun("scaled", scaled)])
    assert told["waits"] == []
    assert told["families"][0]["runs"] == [0]


def told(watch: Watch, name: str) -> list[Any]:
    watch.wait_until = 0.0
    found = [json.loads(content) for event, content in watch.news() if event == name]
    return found[0] if found else []


def test_a_watcher_tells_everything_once_and_then_what_is_new(store: Path) -> None:
    run = Store(store).add(TINY.with_seed(1))
    run.append({"step": 0, **LOOK})
    watch = Watch(store)
    assert len(facts(told(watch, "all"))["rows"]) == 2  # type: ignore[arg-type]
    assert watch.news() == []
    run.append({"step": 2, **LOOK, "fsd": nan})
    (news,) = told(watch, "more")
    assert (news["keep"], news["looks"]["step"], news["looks"]["fsd"]) == (1, [2], [None])
    assert news["row"]["last"] == 2
    run.rewind(-1)
    assert told(watch, "more")[0]["keep"] == 0
    run.append({"step": 0, **LOOK, "fsd": 0.7})
    assert told(watch, "more")[0]["looks"]["fsd"] == [0.7]
    run.finish(RunOutcome("never"))
    assert facts(told(watch, "all"))["rows"][1]["finished"]  # type: ignore[arg-type]


def test_a_watcher_of_an_empty_folder_waits(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    assert watch.news() == []
    Store(tmp_path).add(TINY)
    assert facts(told(watch, "all"))["lengths"] == [0]  # type: ignore[arg-type]


def test_report_writes_a_page_and_says_so(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    assert command(["report", str(store), "--out", str(out), "--detail", "add_mod7"]) == 0
    assert f"wrote {out}: 1 runs" in capsys.readouterr().out
    assert out.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["report", "nowhere"], "there is no folder 'nowhere'"),
        (["report", "runs", "--detail", "nobody"], "--detail 'nobody' names 0 runs"),
        (["report", "runs", "--out", "no/report.html"], "could not be written"),
        (["serve", "nowhere"], "there is no folder 'nowhere'"),
        (["serve", "runs", "--port", "99999"], "a port lies between 0 and 65535, got 99999"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str],
    sentence: str,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(store.parent)
    assert command(arguments) == 2
    shown = capsys.readouterr()
    assert sentence in shown.err
    assert shown.err.strip().count("\n") == 0


def test_weights_that_are_gone_cannot_be_looked_into(tmp_path: Path) -> None:
    save_records(tmp_path / "a.records.gz", synthetic_records(1))
    source = source_of(tmp_path)
    with pytest.raises(InputError, match="--detail needs stored weights"):
        island_of(source, [source.runs[0].name])
