"""Values that cannot be parsed are rejected in one sentence."""

import pytest

from grokscope.cli import COMMANDS
from grokscope.cli.commands import arguments_of
from grokscope.cli.values import check_values
from grokscope.errors import InputError


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("--steps 10 x", "--steps takes a whole number, got 'x'"),
        ("--weight_decay 1 --dropout=a", "--dropout takes a number, got 'a'"),
        ("--executor slrum", "--executor takes one of local, slurm, ray, got 'slrum'; did you mean 'slurm'?"),
        ("--gradient plain fast", "--gradient takes one of plain, grokfast, orthogonal, grokfast_window, got 'fast'"),
        ("--embedded true", "--embedded takes one of True, False, got 'true'; did you mean 'True'?"),
    ],
)
def test_a_value_of_another_kind_is_rejected(line: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        check_values(line.split(), arguments_of(COMMANDS["train"]))
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "line",
    ["--steps 1 -2 --keep none S5", "--out x --dry-run S5", "S5 --seeds 0:2 x", "--retries 1 S5", "-- --steps x"],
)
def test_other_words_are_left_to_the_parser(line: str) -> None:
    check_values(line.split(), arguments_of(COMMANDS["train"]))
