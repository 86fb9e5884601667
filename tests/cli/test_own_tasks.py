"""Tasks of every kind through the command line: bad ones in one sentence, good ones wherever runs are shown."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from small_commands import rejected, words

from grokscope.cli import run
from grokscope.runs import open_runs
from grokscope.tasks import named_task, own_rows
from grokscope.view.page.rows import task_or_none

pytestmark = pytest.mark.usefixtures("here", "in_process")

TOKENS = np.array([[a, b] for a in range(6) for b in range(6)])
ANSWERS = TOKENS.sum(axis=1) % 6
VECTORS = TOKENS @ np.array([[0.5, -1.0, 0.25], [1.0, 0.5, -0.5]])
FAR = TOKENS[:, 0] == 5
SIGN = 'with open("ran", "a") as file:\n    file.write("once ")\n'
FUNCTION = f"""{SIGN}
def rows():
    pairs = [[a, b] for a in range(6) for b in range(6)]
    return {{"tokens": pairs, "answers": [a * b % 6 for a, b in pairs]}}
"""
SHORT = "--steps 8 --evaluate-every 4 --checkpoint-every 4 --fork-points 4 --batch-size 8 --device cpu --out runs"
SEQUENCE = f"--layers 1 --width 16 --heads 2 --mlp-width 16 {SHORT}"
PLAIN = f"--kind mlp --layers 1 --mlp-width 16 {SHORT}"


def files() -> None:
    np.savez("mine.npz", tokens=TOKENS, answers=ANSWERS, held_out_far=FAR)
    np.savez("real.npz", vectors=VECTORS, answers=TOKENS.astype(float), success=0.2, held_out_far=FAR)
    Path("mine.py").write_text(FUNCTION)


BAD: dict[str, tuple[Callable[[str], object], str]] = {
    "ragged": (
        lambda name: np.savez(name, tokens=np.array([[0, 1], [1]], dtype=object), answers=[0, 1]),
        "is pickled, and no pickle is loaded: save plain numbers",
    ),
    "out of range": (
        lambda name: np.savez(name, tokens=TOKENS, answers=ANSWERS, classes=4),
        "each answer of bad.npz must lie in 0 … 3, got 4 in row 4",
    ),
    "overlapping": (
        lambda name: np.savez(name, tokens=TOKENS, answers=ANSWERS, train=FAR, held_out_far=FAR),
        "the groups of rows of bad.npz must not overlap, got row 30 in 'train' and 'far'",
    ),
    "not a number": (
        lambda name: np.savez(name, vectors=VECTORS / 0.0, answers=ANSWERS),
        "each input of bad.npz must be a finite number below 1e+18, got nan in row 0",
    ),
    "no validation": (
        lambda name: np.savez(name, tokens=TOKENS, answers=ANSWERS, train=~FAR, held_out_far=FAR),
        "bad.npz has no row for validation",
    ),
    "empty": (lambda name: Path(name).write_bytes(b""), "is not a plain .npz file"),
    "texts": (
        lambda name: np.savez(name, tokens=TOKENS.astype(str), answers=ANSWERS),
        "must hold numbers, got '<U",
    ),
    "no variance": (
        lambda name: np.savez(name, vectors=VECTORS, answers=np.full(36, 0.1), success=0.1),
        "the answers of bad.npz must vary, for success is a share of their variance",
    ),
    "too large for a square": (
        lambda name: np.savez(name, vectors=VECTORS, answers=VECTORS * 1e30, success=0.1),
        "each answer of bad.npz must be a finite number below 1e+18, got ",
    ),
    "too long": (
        lambda name: np.savez_compressed(name, tokens=np.zeros((4, 2**21), dtype=np.int8), answers=[0, 1, 0, 1]),
        "bad.npz may have at most 4,096 tokens in a sequence, got 2097152",
    ),
    "too many classes": (
        lambda name: np.savez(name, tokens=TOKENS, answers=ANSWERS, classes=10**12),
        "bad.npz may have at most 1,048,576 classes or outputs, got 1000000000000",
    ),
    "another packing": (
        lambda name: zipfile.ZipFile(name, "w", zipfile.ZIP_LZMA).writestr("tokens.npy", b"x"),
        "must be stored or deflated, as numpy does, got method 14",
    ),
    "no success": (
        lambda name: np.savez(name, vectors=VECTORS, answers=VECTORS),
        "bad.npz has real answers: it needs success",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", BAD)
@pytest.mark.parametrize(
    "command", ["tasks bad.npz", f"train bad.npz {PLAIN} --loss mse", f"train bad.npz {PLAIN} --dry-run"]
)
def test_a_bad_file_is_one_sentence_and_status_2(
    fault: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write, sentence = BAD[fault]
    with np.errstate(divide="ignore", invalid="ignore"):
        write("bad.npz")
    rejected(words(command), sentence, tmp_path, capsys)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (f"train real.npz {PLAIN}", "real.npz has real answers: loss must be mse (--loss mse), got cross_entropy"),
        (f"train real.npz {SEQUENCE} --loss mse", "real.npz has vectors: kind must be mlp (--kind mlp), got"),
        ("train real.npz --write-spec one.json", "real.npz has vectors and real answers: kind must be mlp"),
        (f"train parity_n6_k2 {SEQUENCE}", "parity_n6_k2 has vectors: kind must be mlp (--kind mlp), got transformer"),
        (f"train mine.npz --layers 9 {SHORT}", "layers must be at most 8, got 9"),
        (f"train mine.npz {PLAIN} --width 32", "width has no meaning for kind mlp and must be left out, got 32"),
        (f"train mine.npz {SEQUENCE} --embedded True", "embedded has no meaning for kind transformer"),
        (f"train mine.npz {PLAIN} --embedded yes", "--embedded takes one of True, False, got 'yes'"),
        (f"train real.npz {PLAIN} --loss mse --embedded True", "an MLP that reads vectors has none"),
        (f"train real.npz --kind mlp --loss mse --mlp-width {10**12} --device cpu --out runs", "one run of real.npz"),
        (f"train mine.npz {PLAIN} --initial-scale 0", "scale must be positive, got 0"),
        (f"train mine.npz {PLAIN} --train-fraction 0.01", "of the 30 rows of mine.npz leaves no training row"),
        (f"train mine.npz#0123456789abcdef {PLAIN}", "'mine.npz' has changed: expected sha256 0123456789abcdef…, got"),
        ("tasks mine.py", "a function that gives rows is named as FILE.py:FUNCTION"),
        ("tasks mine.py:nope", "'mine.py' has no function 'nope'"),
        ("tasks parity_n6", "did you mean 'parity_n40_k3'?"),
        ("tasks lattin7", "did you mean 'latin7'?"),
    ],
)  # fmt: skip
def test_what_a_task_needs_is_said_before_anything_is_written(
    command: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files()
    Path("ran").touch()
    if ":nope" in command:  # to look for a function, its file is run
        Path("mine.py").write_text(FUNCTION.replace(SIGN, ""))
    rejected(words(command), sentence, tmp_path, capsys)


def answered(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert run(words(line)) == 0
    return capsys.readouterr().out


def test_a_function_is_run_by_nothing_that_only_reads_runs(capsys: pytest.CaptureFixture[str]) -> None:
    files()
    assert run(words(f"train mine.py:rows {PLAIN}")) == 0
    assert Path("ran").exists()

    def forget() -> None:
        """As in a new process."""
        Path("ran").unlink(missing_ok=True)
        for made in (own_rows._task, task_or_none):
            made.cache_clear()

    reading = [
        *("list runs", "list runs --json", "show runs", "show runs mine", "show runs mine --json", "status runs"),
        *("report runs --out page.html", "report runs --detail mine --out two.html", "doctor runs"),
        *("export runs mine", "export runs --format parquet", "plot runs mine --out one.svg", "resume runs"),
        *("watch runs --once", 'query runs "select * from log"', "tasks"),
    ]  # fmt: skip
    for line in reading:
        forget()
        answered(line, capsys)
        assert not Path("ran").exists(), line
    Path("mine.py").unlink()
    for line in reading:  # nor is it missed where it is gone
        if "export" not in line and "plot" not in line:
            answered(line, capsys)
    files()
    forget()
    assert run(words("measure runs mine")) == 0
    assert Path("ran").read_text() == "once "


def test_a_file_that_changed_after_training_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files()
    assert run(words(f"train mine.npz {PLAIN}")) == 0
    np.savez("mine.npz", tokens=TOKENS, answers=ANSWERS[::-1])
    for line in ("measure runs mine", "fork runs mine --at 4 --weight-decay 2 --device cpu"):
        rejected(words(line), "'mine.npz' has changed: expected sha256", tmp_path, capsys)
    assert "FSD and rank are not defined" in answered("show runs mine", capsys)
    assert "not memorised" in answered("list runs", capsys)


def test_groups_held_out_and_missing_bases_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    files()
    assert run(words(f"train mine.npz {SEQUENCE}")) == 0
    shown = answered("show runs mine", capsys)
    assert "far accuracy" in shown
    assert "FSD and rank are not defined: mine.npz has no basis to read activations in" in shown
    assert "no basis to read activations in: mine.npz." in " ".join(answered("show runs", capsys).split())
    found = json.loads(answered('query runs "select step, far_accuracy, far_loss from log" --json', capsys))
    assert [row["step"] for row in found] == [0, 4, 8]
    assert all(0 <= row["far_accuracy"] <= 1 < row["far_loss"] for row in found)
    plotted = answered("plot runs mine --out one.svg", capsys)
    assert plotted == "wrote one.svg; FSD and rank are not defined: mine.npz has no basis to read activations in\n"
    assert "far" in Path("one.svg").read_text(encoding="utf-8")
    assert "step  validation_accuracy" in answered("measure runs mine", capsys)
    assert run(words("measure runs mine --measures fsd")) == 2
    assert capsys.readouterr().err == "grokscope: mine.npz has no basis to read activations in\n"


def test_real_answers_are_shown_by_their_errors(capsys: pytest.CaptureFixture[str]) -> None:
    files()
    line = "--kind mlp --layers 0 --loss mse --learning-rate 0.05 --weight-decay 0.01 --train-fraction 0.6 --steps 400"
    assert run(words(f"train real.npz {line} --evaluate-every 50 --device cpu --out runs")) == 0
    assert "grokked" in answered("list runs", capsys)
    shown = answered("show runs real", capsys)
    assert "train relative error  validation relative error" in shown
    assert "far loss" in shown
    assert "1 or less is success" in shown
    assert "FSD undefined" not in shown
    assert "times what counts as success" in answered("show runs", capsys)
    [row] = json.loads(answered('query runs "select min(validation_relative_error) as least from log" --json', capsys))
    assert row["least"] < 1
    assert answered("plot runs real --out one.svg", capsys).startswith("wrote one.svg; FSD and rank are not defined")
    assert "error" in Path("one.svg").read_text(encoding="utf-8")
    answered("report runs --out page.html", capsys)


KINDS = {
    "parity_n6_k2": PLAIN,
    "parity_n5_k2_tokens": SEQUENCE,
    "add3_mod5": SEQUENCE,
    "missing_mod5": SEQUENCE,
    "twohop_e12_d3_ood0.3": SEQUENCE,
    "latin7": SEQUENCE,
    "random7": PLAIN,
    "ridge_d4_n8": f"{PLAIN} --loss mse",
    "add_mod7": f"{PLAIN} --loss mse --activation square --biases False --initial-scale 2",
    "mine.npz": f"{PLAIN} --embedded True --width 4 --hidden-norm True",
}


@pytest.mark.parametrize("task", KINDS)
def test_every_kind_is_trained_forked_measured_and_reported(task: str, capsys: pytest.CaptureFixture[str]) -> None:
    files()
    assert "GiB for 1 run" in answered(f"train {task} {KINDS[task]} --dry-run", capsys)
    assert run(words(f"train {task} {KINDS[task]}")) == 0
    [trained] = open_runs("runs")
    assert run(words(f"fork runs {trained.name} --at 4 --weight-decay 2 --device cpu")) == 0
    assert "forked at" in answered("list runs", capsys)
    has_basis = bool(named_task(task).bases)
    for line in ("show runs", f"show runs {trained.name}", f"plot runs {trained.name} --no-null --out one.png"):
        assert ("FSD and rank are not defined" in answered(line, capsys)) == (not has_basis), line
    assert ("fsd" in answered(f"measure runs {trained.name}", capsys)) == has_basis
    answered(f"report runs --detail {trained.name} --out page.html", capsys)
    answered(f"export runs {trained.name}", capsys)
    assert "as it was written" in answered("doctor runs", capsys)
    assert "2 of 2 runs finished" in answered("watch runs --once", capsys)


def test_runs_of_different_models_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words(f"train add_mod7 {PLAIN}")) == 0
    assert run(words(f"train add_mod7 {SEQUENCE}")) == 0
    listed = answered("list runs", capsys)
    assert "kind" in listed.splitlines()[0]
    assert {line.split()[2] for line in listed.splitlines()[1:3]} == {"mlp", "transformer"}
    assert "–" in next(line for line in listed.splitlines() if " mlp " in line), "an MLP has no width"
