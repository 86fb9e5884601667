"""The picture that `grokscope watch` shows."""

from dataclasses import replace
from math import inf, nan

import pytest
from watched_runs import shown

from grokscope.cli.frames import Ahead, Line, Watched

LINE = Line("add_mod97 λ=1 (3)", 3, 1, 2, 1, 0.5, (0.0, 0.5, 1.0, nan), (0.2, 0.4, 0.8, nan), 48.7, 90.0, 2.0)
STATE = Watched("runs/first", "runs that differ in seeds", (LINE,), ("12:00:00  a grokked at step 4,000",))


def test_a_frame_says_all_that_is_known() -> None:
    picture = shown(STATE)
    for words in ("runs/first: 1 of 3 runs finished, 49 run-steps/s", "50%", "▁▅█  1.00", "▂▄▇  0.80", "2 min"):
        assert words in picture
    assert "a line stands for runs that differ in seeds" in picture
    assert picture.rstrip().endswith("12:00:00  a grokked at step 4,000")
    assert shown(STATE) == picture


@pytest.mark.parametrize(("progress", "words"), [(0.29, " 29% "), (0.999, " 99% "), (1.0, " 100% ")])
def test_a_group_is_complete_only_once_it_is(progress: float, words: str) -> None:
    assert words in shown(replace(STATE, lines=(replace(LINE, progress=progress),)))


@pytest.mark.parametrize("width", [70, 80, 100, 140])
def test_a_frame_fits_the_window(width: int) -> None:
    long = replace(LINE, label="poly_a2+ab+b2_mod97 and 13 more 12×1024 λ=0.125–10 (10,000)", validation=(0.5,) * 24)
    lines = shown(replace(STATE, lines=(long, LINE), alerts=()), width).splitlines()
    table = [line for line in lines if "▅" in line or "validation" in line]
    assert len(table) == 3
    assert all(len(line) <= width for line in table)
    assert all(line.rstrip().endswith(("left", "2 min")) for line in table)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"finished": 3}, "finished"),
        ({"left": None, "rate": None, "quiet": 300.0}, "quiet 5 min"),
        ({"left": None, "rate": None, "quiet": None}, "waiting"),
    ],
)
def test_a_group_that_does_not_move_says_why(change: dict[str, float], words: str) -> None:
    assert words in shown(replace(STATE, lines=(replace(LINE, **change),)))


def test_a_terminal_without_blocks_gets_ascii_and_names_are_text() -> None:
    state = Watched("runs/[red]x", "x", (replace(LINE, label="[bold]x[/bold]"),), ("[link=x]y",))
    picture = shown(state, ascii_only=True)
    assert "_+#  1.00" in picture
    assert all(words in picture for words in ("runs/[red]x", "[bold]x[/bold]", "[link=x]y"))


def test_forecasts_and_advice_stand_below_the_table() -> None:
    ahead = Ahead(2, 0.876, (nan, 0.0, 0.5, 1.0, nan), 4149.0, 7760.0, inf, outside=1, stops=3, saves=21_000)
    picture = shown(replace(STATE, lines=(replace(LINE, ahead=ahead),)))
    assert "add_mod97 λ=1 (3): 2  ▁▅█ 88 %, 7,800 (4,100 to never); 1 unlike the runs fitted to" in picture
    assert "advice: stopping 3 of them now would save 21,000 steps" in picture
    grokked = replace(ahead, runs=0, probability=nan, outside=0)
    picture = shown(replace(STATE, lines=(replace(LINE, ahead=grokked),)))
    assert "forecast:" not in picture
    assert "advice: stopping 3" in picture
    assert "advice" not in shown(replace(STATE, lines=(replace(LINE, ahead=replace(ahead, stops=0)),)))
