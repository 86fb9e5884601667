"""`grokscope plot`: one run in one picture."""

from pathlib import Path

import pytest
from small_commands import TINY, rejected, words

from grokscope.cli import run
from grokscope.measures import fsd_null, surrogates
from grokscope.runs import Store, run_name
from grokscope.view.charts import run_chart

pytestmark = pytest.mark.usefixtures("here", "in_process")
BEGINNINGS = {"pdf": b"%PDF", "png": b"\x89PNG", "svg": b"<?xml"}


@pytest.fixture(autouse=True)
def trained(here: Path, in_process: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(fsd_null, "NULL_DRAWS", 4)
    run(words("train add_mod7 --spec tiny.json --out runs"))
    capsys.readouterr()


@pytest.mark.parametrize("ending", BEGINNINGS)
def test_a_picture_has_the_kind_of_its_ending(ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words(f"plot runs add_mod7_s0 --out curves.{ending}")) == 0
    assert capsys.readouterr().out == f"wrote curves.{ending}\n"
    assert Path(f"curves.{ending}").read_bytes().startswith(BEGINNINGS[ending])


def test_every_curve_and_the_null_is_in_it() -> None:
    assert run(words("plot runs add_mod7_s0 --out a.svg")) == 0
    text = Path("a.svg").read_text()
    for word in ("Accuracy", "FSD", "Fourier rank", "Norm ‖W‖", "step", "95 % of untrained networks", run_name(TINY)):
        assert word in text
    assert run(words("plot runs add_mod7_s0 --out b.svg --no-null")) == 0
    assert "untrained" not in Path("b.svg").read_text()


def test_a_null_that_was_measured_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"step": 0, "untrained_95": 0.25}
    folder = Store("runs").find("add_mod7_s0")
    outcome = folder.outcome
    folder.reopen()
    folder.append(row, "measures")
    folder.finish(outcome)
    monkeypatch.setattr(surrogates, "untrained_null", lambda *_, **__: pytest.fail("networks were drawn"))
    seen = []
    monkeypatch.setattr(run_chart, "run_chart", _noted(run_chart.run_chart, seen))
    assert run(words("plot runs add_mod7_s0 --out a.svg")) == 0
    assert seen == [0.25]


def _noted(chart, seen: list[float]):
    return lambda name, record, quantile: seen.append(quantile) or chart(name, record, quantile)


def test_bad_input(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.pdf").write_text("mine")
    Store("runs").add(TINY.with_seed(1))
    for line, sentence in [
        ("runs add_mod7_s0 --out a.jpg", "a picture is written as .pdf, .png or .svg, got 'a.jpg'"),
        ("runs add_mod7_s0 --out mine.pdf", "'mine.pdf' exists already; nothing was overwritten (--force replaces it)"),
        ("runs add_mod7_s0 --out no/a.pdf", "there is no folder 'no' to write 'a.pdf' in"),
        ("runs add_mod7_s1", f"{run_name(TINY.with_seed(1))} has no evaluations to plot yet"),
        ("runs add_mod7_s9", "there is no run 'add_mod7_s9'"),
    ]:
        rejected(["plot", *words(line)], sentence, here, capsys)
    assert run(words("plot runs add_mod7_s0 --no-null --out mine.pdf --force")) == 0
    assert Path("mine.pdf").read_bytes().startswith(b"%PDF")
