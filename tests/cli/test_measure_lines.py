"""What is said of a long measurement where no bar can be drawn."""

import time

import pytest

from grokscope.cli import measure_lines
from grokscope.cli.measure_lines import PATIENCE, MeasuringLines


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_lines_are_two_seconds_apart_and_the_last_part_has_none(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = MeasuringLines("x", total=16, clock=clock)
    for now in (PATIENCE / 2, PATIENCE, 1.5 * PATIENCE, 20.0):
        clock.now = now
        lines.advance(4)
    out, err = capsys.readouterr()
    assert err == "measuring x: 8 of 16 checkpoints, about 2 s left\n"
    assert out == "", "a table that is piped holds nothing else"


def test_something_is_said_before_the_first_part_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(measure_lines, "PATIENCE", 0.01)
    with MeasuringLines("x\n\x1b[1m", total=1):
        time.sleep(0.3)
    said = capsys.readouterr().err
    assert said.startswith("measuring ")
    assert said.endswith(": 0 of 1 checkpoint\n")
    assert said.removesuffix("\n").isprintable(), "a name cannot move the cursor"


def test_nothing_is_said_of_what_is_fast_or_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(measure_lines, "PATIENCE", 0.05)
    with pytest.raises(KeyError), MeasuringLines("x", total=1):
        raise KeyError
    time.sleep(0.2)
    assert capsys.readouterr().err == ""
