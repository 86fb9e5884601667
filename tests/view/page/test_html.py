"""The file: its size, what it may overwrite, and the command that writes it."""

import json
from pathlib import Path

import pytest
from page_runs import ROOT

from grokscope.cli import run as command
from grokscope.errors import InputError
from grokscope.view.page import source_of, write_page


def test_five_hundred_runs_stayed_under_three_megabytes_and_two_seconds_when_last_measured() -> None:
    measured = json.loads((ROOT / "benchmarks" / "results" / "report.json").read_text())["measured"]
    assert measured["runs"] >= 500
    assert measured["bytes"] < 3_000_000
    assert all(found["median_ms"] < 2000 for found in measured["usable_after"].values())


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


def test_report_writes_a_page_and_says_so(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    assert command(["report", str(store), "--out", str(out), "--detail", "add_mod7"]) == 0
    assert f"wrote {out}: 1 run, " in capsys.readouterr().out
    assert out.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["report", "nowhere"], "there is no folder 'nowhere'"),
        (["report", "runs", "--detail", "nobody"], "there is no run 'nobody' in 'runs'"),
        (["report", "runs", "--out", "no/report.html"], "there is no folder 'no' to write 'report.html' in"),
        (["report", "runs", "--out", "thesis.html"], "'thesis.html' exists already and is no report; nothing was"),
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
    Path("thesis.html").write_text("<html>my thesis</html>")
    monkeypatch.setattr("grokscope.view.page.source_of", lambda *read: pytest.fail("the runs were read first"))
    assert command(arguments) == 2
    shown = capsys.readouterr()
    assert sentence in shown.err
    assert shown.err.strip().count("\n") == 0
