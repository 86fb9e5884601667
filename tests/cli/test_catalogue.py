"""The catalogue of measures."""

import json
import re
from pathlib import Path

import pytest
import torch
from small_commands import rejected

import grokscope
from grokscope.cli import run
from grokscope.measures import fsd_null, patching
from grokscope.measures.catalogue import MEASURES
from grokscope.specs import Architecture, RunSpec


@pytest.fixture(autouse=True)
def few_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fsd_null, "NULL_DRAWS", 4)


@pytest.mark.parametrize("width", ["40", "80", "200"])
def test_the_list_has_every_measure_in_its_order(
    width: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert run(["measure"]) == 0
    shown = capsys.readouterr().out
    listed = [line.split()[0] for line in shown.splitlines() if re.match(r"\w", line)]
    assert listed == ["measure", *MEASURES]
    for word in ("the", "Nanda", "Chughtai"):
        assert word in shown


def test_the_list_for_programs_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert list(facts) == list(MEASURES)
    for name, one in MEASURES.items():
        words_of = {word: getattr(one, word) for word in ("title", "formula", "source", "cost", "null", "undefined")}
        assert facts[name] == words_of | {"columns": dict(one.columns)}
    assert run(["measure", "--measures", "rank", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"rank": facts["rank"]}


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_is_explained_with_an_example_that_was_computed(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patching, "PATCHED_PAIRS", 20)
    assert run(["measure", "--measures", name]) == 0
    shown, one = capsys.readouterr().out, MEASURES[name]
    for text in (one.title, one.formula, one.source, one.cost, one.null, one.undefined, *one.columns.values()):
        assert text in shown
    assert f"grokscope measure runs/first add_mod97_s0 --measures {name}\n" in shown
    compares = "trajectory" in one.needs
    networks = "a network that adds modulo 7, after 110 and 120 steps (checkpoints every 10)"
    networks = networks if compares else "two untrained networks that add modulo 7 (seeds 0 and 1)"
    worked = shown.partition(f"on {networks}\n")[2].splitlines()
    assert worked
    for line in worked:
        assert re.fullmatch(r"  [A-Za-z0-9_.]+: (-?[0-9.]+(e-?\d+)?), (-?[0-9.]+(e-?\d+)?)", line), line


def test_the_worked_example_is_true(capsys: pytest.CaptureFixture[str]) -> None:
    """FSD of the example's first network, from a plain module and a plain transform."""
    spec = RunSpec(task="add_mod7", architecture=Architecture(width=16, mlp_width=32))
    subject = grokscope.activations.subject_of([spec], grokscope.training.Cohort([spec]).initial())
    hidden = subject.read("blocks.0.mlp.hook_post")[0].double()
    answers = torch.tensor(subject.task.answers)
    means = torch.stack([hidden[answers == s].mean(dim=0) for s in range(7)])
    strongest = torch.fft.rfft(means, dim=0)[1:].abs().argmax(dim=0)
    peak = strongest.bincount(minlength=3).max().item() / 32
    assert run(["measure", "--measures", "fsd"]) == 0
    assert f"\n  fsd: {(peak - 1 / 3) / (2 / 3):.4g}, " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("fds", "there is no measure 'fds'; did you mean 'fsd'?"),
        ("FSD_NULL", "did you mean 'fsd_null'?"),
        ("restricted", "_restricted'?"),
        ("[red]x", "there is no measure '[red]x'"),
        ("a\nb", r"there is no measure 'a\nb'"),
        ("", "there is no measure ''"),
    ],
)
def test_an_unknown_measure_is_rejected_with_the_nearest(
    name: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rejected(["measure", "--measures", name], sentence, tmp_path, capsys)
    rejected(["measure", "--measures", name, "--json"], sentence, tmp_path, capsys)
