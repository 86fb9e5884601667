"""Lists on the command line."""

import pytest

from grokscope.cli import COMMANDS
from grokscope.cli.commands import arguments_of
from grokscope.cli.lists import separate


@pytest.mark.parametrize(
    ("command", "line", "expected"),
    [
        ("train", "a,b --out x,y", "a b --out x,y"),
        ("train", "table:a,b.json --dry-run S5,S4", "table:a,b.json --dry-run S5 S4"),
        ("train", "--seeds 0 1 2 S5", "--seeds 0,1,2 S5"),
        ("train", "--seeds=0,1 S5,S4", "--seeds=0,1 S5 S4"),
        ("train", "--weight_decay 1,2 --measures=fsd,rank", "--weight_decay 1 2 --measures fsd rank"),
        ("train", "--seeds a,b", "--seeds a,b"),
        ("train", "S5 -- a,b --x", "S5 -- a,b --x"),
        ("measure", "runs a,b --at 1,2", "runs a,b --at 1 2"),
        ("query", "runs a,b", "runs a,b"),
        ("reproduce", "x --from a,b --only c,d", "x --from a,b --only c d"),
    ],
)
def test_commas_separate_where_several_values_may_follow(command: str, line: str, expected: str) -> None:
    assert separate(line.split(), arguments_of(COMMANDS[command])) == expected.split()
