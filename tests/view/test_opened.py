"""What `grokscope.open` gives: runs with plots, frames and a page, or one sentence."""

from pathlib import Path

import pytest

import grokscope
from grokscope import OpenedRun, OpenedRuns
from grokscope.errors import InputError
from grokscope.runs import Store
from grokscope.specs import RunSpec


def test_whatever_is_chosen_of_opened_runs_is_opened_too(tmp_path: Path) -> None:
    for seed in range(3):
        Store(tmp_path).add(RunSpec().with_seed(seed))
    runs = grokscope.open(tmp_path)
    assert [type(found) for found in (runs, runs[:2], runs.where(seed=1))] == [OpenedRuns] * 3
    assert [type(found) for found in (runs[0], runs["add_mod97_s1"], *runs.where(seed=2))] == [OpenedRun] * 3
    assert runs[:2][1] == runs[1]


def test_a_folder_without_runs_is_rejected_and_those_below_it_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^there are no runs in '.*'$"):
        grokscope.open(tmp_path)
    for seed in range(2):
        Store(tmp_path / "first").add(RunSpec().with_seed(seed))
    Store(tmp_path / "second").add(RunSpec())
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no runs in '.*'; '.*/first' has 2 runs, '.*/second' has 1 run$"):
        grokscope.open(tmp_path)


def test_a_run_without_evaluations_cannot_be_plotted(tmp_path: Path) -> None:
    folder = Store(tmp_path).add(RunSpec())
    with pytest.raises(InputError, match=rf"^{folder.name} has no evaluations to plot yet$"):
        grokscope.open(tmp_path)[0].plot()


def test_a_plot_is_a_figure_that_a_notebook_can_show(tmp_path: Path) -> None:
    figures = pytest.importorskip("matplotlib.figure")
    folder = Store(tmp_path).add(RunSpec())
    for step, accuracy in ((0, 0.0), (100, 1.0)):
        folder.append({"step": step, "train_accuracy": accuracy, "validation_accuracy": accuracy, "norm": 9.0})
    plot = grokscope.open(tmp_path)[0].plot()
    assert isinstance(plot, figures.Figure)
    assert plot._repr_png_().startswith(b"\x89PNG")
    plot.savefig(tmp_path / "plot.pdf")
    assert (tmp_path / "plot.pdf").read_bytes().startswith(b"%PDF")
