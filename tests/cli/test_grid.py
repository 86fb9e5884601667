"""Which runs a command line describes."""

from pathlib import Path

import pytest
from small_commands import TINY

from grokscope.cli.grid import combinations, parse_seeds, read_specs
from grokscope.errors import InputError
from grokscope.specs import RunSpec


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", [0]), ("0,1,42", [0, 1, 42]), ("0:3", [0, 1, 2]), ("7:8", [7]), ("0:2,1,5", [0, 1, 5]), (" 3 ", [3])],
)
def test_seeds(text: str, expected: list[int]) -> None:
    assert parse_seeds(text) == expected


def test_every_combination_once_with_seeds_fastest() -> None:
    found = list(combinations(TINY, {"weight_decay": (1.0, 2.0), "width": (16, 32)}, [3, 4]))
    assert len(found) == len(set(found)) == 8
    assert [spec.seeds.split for spec in found[:3]] == [3, 4, 3]
    assert {(spec.training.weight_decay, spec.architecture.width) for spec in found} == {
        (decay, width) for decay in (1.0, 2.0) for width in (16, 32)
    }


def test_without_values_and_seeds_the_base_is_the_run() -> None:
    assert list(combinations(TINY, {})) == [TINY]


def test_specs_of_one_file_and_of_many_lines(tmp_path: Path) -> None:
    one, many = tmp_path / "one.json", tmp_path / "many.jsonl"
    one.write_text(TINY.to_json())
    many.write_text("\n".join([TINY.to_json(), "", RunSpec().to_json()]))
    assert read_specs(one) == [TINY]
    assert read_specs(many) == [TINY, RunSpec()]
    many.write_text(f"{TINY.to_json()}\n{{}}x\n")
    with pytest.raises(InputError, match=r"line 2 of .*many.jsonl': RunSpec is not valid JSON"):
        read_specs(many)
