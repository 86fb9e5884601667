"""`grokscope measure`: a run measured at its checkpoints."""

import csv
import importlib
import io
import json
import os
import shutil
import sys
from dataclasses import replace
from math import isnan
from pathlib import Path

import pytest
import torch
from small_commands import rejected, words

import grokscope
from grokscope.cli import run
from grokscope.cli.measure_names import measure_names
from grokscope.jobs import run_all
from grokscope.measures import MEASURES, fsd_null
from grokscope.runs import (
    Reading,
    Run,
    Store,
    measure_checkpoints,
    measuring,
    run_name,
)
from grokscope.specs import Architecture, Cadence, ReadingSpec, RunSpec, Training
from grokscope.training.checkpoint import save_tensors

MODULE = importlib.import_module("grokscope.cli.measure_table")
TINY = RunSpec(
    task="add_mod7",
    train_fraction=0.6,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=8, batch_size=16),
    checkpoints=Cadence(every=4),
    measurements=Cadence(every=4),
)
S3 = replace(TINY, task="S3")
WAITING = TINY.with_seed(5)
NAME = run_name(TINY)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        run_all([TINY, S3], Store(folder), compiled=False)
    Store(folder).add(WAITING)  # planned, and not begun
    return folder


@pytest.fixture(autouse=True)
def here(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every command runs in a folder with three runs in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fsd_null, "NULL_DRAWS", 4)
    shutil.copytree(trained, tmp_path / "runs")
    return tmp_path


def contents(path: Path) -> dict[str, bytes | None]:
    return {str(file): file.read_bytes() if file.is_file() else None for file in path.rglob("*")}


def expected(names: list[str], reading: Reading | None = None, spec: RunSpec = TINY) -> list[dict[str, float | str]]:
    return [row for part in measure_checkpoints(grokscope.open("runs")[run_name(spec)], names, reading) for row in part]


@pytest.mark.parametrize("line", ["measure", "measure --measures logits", "measure runs S3 --measures fsd --out x.csv"])
def test_a_terminal_that_knows_only_ascii_is_no_error(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert run(words(line)) == 0
    sys.stdout.flush()
    assert "fsd" in written.getvalue().decode("ascii") or "logit_share" in written.getvalue().decode("ascii")


# Tables.


def read_csv(path: Path | str) -> list[dict[str, str]]:
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_table_has_a_row_for_every_checkpoint_and_reads_back_exactly(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words("measure runs add_mod7_s0 --measures fsd rank --out one.csv")) == 0
    assert run(words("measure runs add_mod7_s0 --measures fsd rank --out one.json")) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert [line for line in shown.out.splitlines() if line.startswith("wrote")] == ["wrote one.csv", "wrote one.json"]
    rows = expected(["fsd", "rank"])
    assert [row["step"] for row in rows] == [0, 4, 8]
    table = read_csv("one.csv")
    assert list(table[0]) == list(rows[0])
    assert [row["run"] for row in table] == [NAME] * 3
    text = ("run", "undefined")
    assert [{k: v if k in text else float(v) for k, v in row.items()} for row in table] == rows
    assert json.loads(Path("one.json").read_text()) == rows


def test_without_a_file_nothing_is_written_and_measuring_again_prints_the_same(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(here)
    printed = []
    for _ in range(2):
        assert run(words("measure runs add_mod7_s0")) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "wrote" not in printed[0]
    assert contents(here) == before


def test_a_file_is_replaced_only_if_that_is_asked_for(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "measure runs add_mod7_s0 --measures norms --out x.csv"
    Path("x.csv").write_text("mine")
    rejected(words(line), "'x.csv' exists already; nothing was overwritten (--force replaces it)", here, capsys)
    assert run(words(f"{line} --force")) == 0
    assert list(read_csv("x.csv")[0]) == list(expected(["norms"])[0])


def test_each_measure_has_one_main_column_and_fsd_is_held_against_the_null_that_decides(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    names = ["fsd", "fsd_null", "rank", "paper_restricted", "ablation", "memorization"]
    assert run(["measure", "runs", "add_mod7_s0", "--measures", *names]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    main = ["fsd", "p_untrained", "rank", "paper_restricted", "drop_mlp0_mean", "validation_accuracy"]
    assert header.split() == ["step", *main]
    for line, row in zip(lines, expected(names), strict=False):
        assert [float(cell) for cell in line.split()[1:]] == pytest.approx([row[name] for name in main], rel=1e-3)
    assert lines[3] == f"{len(expected(names)[0]) - 9} more columns: --all prints them, --out FILE.csv writes them"


def test_every_measure_has_a_main_column() -> None:
    names = [name for name in MEASURES if name not in ("hidden_restricted", "hidden_excluded", "fourier_kan")]
    found = expected(names, Reading(steps=(8,)))[0]
    assert all(MEASURES[name].headline_of(found) in found for name in names)
    assert all(one.headline in ("", one.headline_of(found)) for one in map(MEASURES.get, names) if one)


def test_the_names_of_measures_are_known_without_them() -> None:
    assert sorted(measure_names()) == sorted(MEASURES)


def test_what_is_printed_is_what_is_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run(words("measure runs add_mod7_s0 --measures fsd rank --all")) == 0
    shown = capsys.readouterr().out
    names = ["step", "fsd", "fsd_mode", "constant_share", "answer_share", "rank", "rank_one_share", "r2_rank_1"]
    header, *lines = [line.split() for line in shown.splitlines()[:4]]
    assert header == names
    for cells, row in zip(lines, expected(["fsd", "rank"]), strict=True):
        assert [float(cell) for cell in cells] == pytest.approx([row[name] for name in names], rel=1e-3)
    assert "more columns" not in shown


@pytest.mark.parametrize("width", [20, 60, 80, 150])
def test_all_columns_are_printed_in_tables_that_fit(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(words("measure runs add_mod7_s0 --measures fsd rank memorization norms --all")) == 0
    lines = capsys.readouterr().out.splitlines()
    every = [
        column for column in expected(["fsd", "rank", "memorization", "norms"])[0] if column not in ("run", "undefined")
    ]
    headers = lines[::4]  # a table for each part, with three checkpoints
    assert all(header.split()[0] == "step" for header in headers)
    assert [name for header in headers for name in header.split()[1:]] == every[1:], "each once, in their order"
    assert all(len(line) <= width or len(line.split()) == 2 for line in lines)
    for place, header in enumerate(headers[1:], 1):
        next_column = max(len(line.split()[1]) for line in lines[4 * place : 4 * place + 4])
        assert len(headers[place - 1]) + next_column + 2 > width, f"{header} would fit above"


@pytest.mark.parametrize(
    ("options", "names", "reading"),
    [
        ("", ["fsd"], Reading()),
        ("--at 8 0", ["fsd"], Reading(steps=(8, 0))),
        ("--condition sum --basis additive", ["fsd"], Reading(by="sum", basis="additive")),
        ("--reference 8", ["trig", "paper_restricted"], Reading(reference=8)),
        ("--seed 7", ["fsd_null"], Reading(seed=7)),
        (
            "--reading r.json",
            ["fsd", "paper_restricted"],
            Reading(spec=ReadingSpec(fsd_site="attention", restricted_modes=1)),
        ),
    ],
)
def test_every_option_reaches_the_measures(
    options: str, names: list[str], reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("r.json").write_text(reading.spec.to_json())
    seen = []
    monkeypatch.setattr(
        MODULE,
        "measure_checkpoints",
        lambda *arguments: seen.append(arguments) or measure_checkpoints(*arguments),
    )
    assert run(words(f"measure runs add_mod7_s0 --measures {' '.join(names)} {options} --out x.json")) == 0
    assert [arguments[1:] for arguments in seen] == [(tuple(names), reading)]
    assert json.loads(Path("x.json").read_text()) == expected(names, reading)


def test_a_run_is_found_by_any_name(here: Path) -> None:
    for i, name in enumerate((NAME, "S3", TINY.content_hash, TINY.content_hash[:9])):
        assert run(["measure", "runs", name, "--measures", "norms", "--out", f"{i}.json"]) == 0
    assert json.loads(Path("2.json").read_text()) == json.loads(Path("0.json").read_text())
    assert {row["run"] for row in json.loads(Path("1.json").read_text())} == {run_name(S3)}


def test_measuring_changes_no_file_of_the_run(here: Path) -> None:
    before = contents(here / "runs")
    times = {path: path.stat().st_mtime_ns for path in (here / "runs").rglob("*")}
    assert run(words("measure runs add_mod7_s0 --measures fsd ablation paper_restricted removal --out x.csv")) == 0
    assert contents(here / "runs") == before
    assert {path: path.stat().st_mtime_ns for path in (here / "runs").rglob("*")} == times


def test_stacks_of_any_size_write_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1, 2, 3):
        monkeypatch.setitem(measuring.STEPS_AT_ONCE, "cpu", size)
        assert run(words(f"measure runs S3 --measures fsd memorization norms --out {size}.json")) == 0
    first, second, third = (json.loads(Path(f"{size}.json").read_text()) for size in (1, 2, 3))
    for row, *others in zip(first, second, third, strict=True):
        for other in others:
            assert list(other) == list(row)
            assert [other[word] for word in ("run", "step", "undefined")] == [run_name(S3), row["step"], ""]
            numbers = {column: value for column, value in row.items() if column not in ("run", "undefined")}
            assert {column: other[column] for column in numbers} == pytest.approx(numbers, rel=1e-6)


def without_numbers(step: int, spec: RunSpec = TINY) -> None:
    """NaN in the place of the stored weights."""
    tensors = grokscope.open("runs")[run_name(spec)].at(step).tensors
    broken = {k: torch.full_like(v, torch.nan) if v.is_floating_point() else v for k, v in tensors.items()}
    folder = grokscope.open("runs")[run_name(spec)].folder
    save_tensors(folder.path / f"weights-{step:08d}.safetensors", broken)
    folder.finish(folder.outcome)  # as if it had ended with them


def test_undefined_is_nan_in_csv_and_null_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    without_numbers(4)
    for name in ("x.csv", "x.json"):
        assert run(["measure", "runs", "add_mod7_s0", "--measures", "fsd", "norms", "--out", name]) == 0
    shown = capsys.readouterr().out
    assert " nan " in shown
    assert "undefined at step 4: weights in embed.W_E are not numbers\n" in shown
    table, rows = read_csv("x.csv"), json.loads(Path("x.json").read_text(), parse_constant=pytest.fail)
    assert [row["fsd"] == "nan" for row in table] == [False, True, False]
    assert [row["fsd"] is None for row in rows] == [False, True, False]
    for row, read in zip(table, rows, strict=True):
        for column in ("fsd", "norm"):
            assert isnan(float(row[column])) == (read[column] is None)
    reasons = ["", "weights in embed.W_E are not numbers", ""]
    assert [row["undefined"] for row in table] == [row["undefined"] for row in rows] == reasons


def test_a_single_checkpoint_that_is_not_a_number_is_rejected(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    without_numbers(8)
    sentence = f"{NAME} at step 8 has activations at blocks.0.mlp.hook_post that are not numbers"
    rejected(words("measure runs add_mod7_s0 --measures fsd --at 8 --out x.csv"), sentence, here, capsys)


# Bad input.


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("add_mod7_s0 --measures fsd rnk", "there is no measure 'rnk'; did you mean 'rank'?"),
        ("add_mod7_s0 --measures ''", "there is no measure ''"),
        ("add_mod7_s0 --measures fsd;rank", "there is no measure 'fsd;rank'"),
        ("add_mod7_s0 --at 0 3", f"{NAME} has no weights at step 3; stored steps: 0, 4, 8"),
        ("add_mod7_s0 --at -1", f"{NAME} has no weights at step -1; stored steps: 0, 4, 8"),
        ("add_mod7_s0 --reference 3", f"{NAME} has no weights at step 3; stored steps: 0, 4, 8"),
        ("add_mod7_s5", f"{run_name(WAITING)} has no stored weights"),
        ("S3 --condition sum", "S3 has no sums a + b to condition on: its symbols are not numbers"),
        ("S3 --condition sum --measures norms", "S3 has no sums a + b"),
        ("S3 --measures fourier_kan", "FourierKAN fits cosines and sines, and the modes of this isotypic basis"),
        ("S3 --basis isotpic", "S3 has no basis 'isotpic'; did you mean 'isotypic'?"),
        ("add_mod7_s0 --seed -1", "the seed must lie in [0, 2^63), got -1"),
        ("add_mod7_s0 --device cuda", "device cuda is not available; use cpu"),
        ("add_mod7_s0 --measures fsd rnk --out mine.csv", "there is no measure 'rnk'; did you mean 'rank'?"),
        ("add_mod7_s0 --condition product", "--condition takes one of answer, sum, input, got 'product'"),
        ("add_mod7_s0 --at many", "--at takes a whole number, got 'many'"),
        ("add_mod7_s0 --force", "--force has no effect without --out"),
        ("add_mod7_s0 --out folder.csv --force", "'folder.csv' exists already; nothing was overwritten"),
        ("add_mod7_s0 --out x.txt", "a table is written as .csv or .json, got 'x.txt'"),
        ("add_mod7_s0 --out x", "a table is written as .csv or .json, got 'x'"),
        ("add_mod7_s0 --out .csv", "a table is written as .csv or .json, got '.csv'"),
        ("add_mod7_s0 --out mine.csv", "'mine.csv' exists already; nothing was overwritten"),
        ("add_mod7_s0 --out folder.csv", "'folder.csv' exists already; nothing was overwritten"),
        ("add_mod7_s0 --out no/x.csv", "there is no folder 'no' to write 'x.csv' in"),
        ("add_mod7_s0 --out mine.csv/x.csv", "there is no folder 'mine.csv' to write 'x.csv' in"),
        ("add_mod7_s0 --reading none.json", "the reading 'none.json' cannot be read"),
        ("add_mod7_s0 --reading bad.json", "ReadingSpec has no field 'fsd_syn'; did you mean 'fsd_sync'?"),
        ("add_mod7_s0 --reading mine.csv", "ReadingSpec is not valid JSON"),
        ("add_mod7_s9", "there is no run 'add_mod7_s9' in 'runs'; did you mean 'add_mod7_s"),
        ("add_mod7", "'add_mod7' names 2 runs, such as"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    line: str, sentence: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    (here / "mine.csv").write_text("mine")
    (here / "folder.csv").mkdir()
    (here / "bad.json").write_text('{"fsd_syn": 0.5}')
    if "fourier_kan" not in line:  # whether the basis is Fourier's is found when it is read
        monkeypatch.setattr(Run, "subject", lambda *_: pytest.fail("weights were loaded"))
    rejected(["measure", "runs", *words(line)], sentence, here, capsys)


@pytest.mark.parametrize("name", ["a\nb.csv", "a\0b.csv", "\ud800.csv", f"{'x' * 300}.csv"])
def test_a_name_that_no_file_can_have_is_rejected(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rejected(["measure", "runs", "add_mod7_s0", "--out", name], "", here, capsys)


@pytest.mark.parametrize("arguments", ["measure a b c", "measure a b --at 1 -- c d"])
def test_words_that_make_no_command_exit_with_status_2(
    arguments: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rejected(words(arguments), "a command such as `grokscope measure [DIR] [RUN]` is expected, got", here, capsys)


@pytest.mark.parametrize("name", ["[red]x", "[bold", "=1+1", "a b,c", '"quoted"', "..", "ein Gruß 😀", "-x"])
def test_a_hostile_run_name_harms_nothing(
    name: str, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What begins with a dot is hidden, and no run; the end of the name says which run it is.
    name = f"{'a' if name == '..' else ''}{name}-{TINY.content_hash}"
    shutil.copytree(here / "runs" / NAME, here / "others" / name)
    before = contents(here / "others")
    told = []
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a terminal, where there is a bar
    monkeypatch.setattr(MODULE, "Progress", _recorded(MODULE.Progress, told))
    assert run(["measure", "--measures", "fsd", "--out", "x.csv", "--", "others", name]) == 0
    assert contents(here / "others") == before
    assert {row["run"] for row in read_csv("x.csv")} == {name}
    assert told == [f"measuring {name}"], "the name is shown as it is, not read as markup"


def _recorded(progress: type, told: list[str]) -> type:
    """The progress bar, which also notes what its lines say once their markup is read."""
    from rich.text import Text

    class Recorded(progress):
        def add_task(self, description: str, *arguments: object, **options: object) -> int:
            told.append(Text.from_markup(description).plain)
            return super().add_task(description, *arguments, **options)

    return Recorded


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("measure rns x", "there is no folder 'rns'; did you mean 'runs'?"),
        ("measure runs", "name a run, as `grokscope list runs` lists them"),
        ("measure --at 4", "--at has no effect without a run; name one as in: grokscope measure DIR RUN"),
        ("measure --seed 0 --json", "--seed has no effect without a run"),
        ("measure --out x.csv", "--out has no effect without a run"),
    ],
)
def test_without_a_run_nothing_is_measured(
    line: str, sentence: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rejected(words(line), sentence, here, capsys)


def test_the_table_can_be_printed_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words("measure runs add_mod7_s0 --measures fsd --json --out x.json")) == 0
    assert capsys.readouterr().out == Path("x.json").read_text() + "\n"


def test_a_damaged_checkpoint_is_named_and_nothing_is_written(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = here / "runs" / NAME / "weights-00000008.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    rejected(words("measure runs add_mod7_s0 --measures fsd --out x.csv"), "weights-00000008.safetensors", here, capsys)
