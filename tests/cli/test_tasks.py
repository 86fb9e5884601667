"""`grokscope tasks`: what can be learnt."""

import json

import pytest

from grokscope.cli import run


def test_tasks_lists_and_explains(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tasks"]) == 0
    listed = capsys.readouterr().out
    for name in ("add_mod97", "div_mod97", "poly_a2+ab+b2_mod97", "PSL2_7", "table:FILE"):
        assert name in listed
    assert run(["tasks", "mult_mod97", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["rows_per_answer"] == [96, 193]
    assert [basis["name"] for basis in facts["bases"]] == ["multiplicative", "additive"]


def test_every_example_in_the_list_is_a_task(capsys: pytest.CaptureFixture[str]) -> None:
    run(["tasks", "--json"])
    for row in json.loads(capsys.readouterr().out):
        if "FILE" not in row["example"]:
            assert run(["tasks", row["example"]]) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ad_mod97"], "did you mean 'add_mod97'?"),
        (["mult_mod96"], "mult needs a prime modulus, got 96"),
        (["table:nope.json"], "cannot be read: No such file or directory"),
        (["Z1"], "train_fraction 0.3 of the 1 rows of Z1 leaves no training row"),
        (["--group"], "--group needs the name of a group, such as S5"),
        (["S7", "--group"], "has more than 1000 elements"),
        (["sub_mod97", "--group"], "is not a group's operation"),
        (["table:\ud800.json", "--group"], r"a printable name, as in table:my_group.json, got 'table:\ud800.json'"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(arguments, sentence, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tasks", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.strip().count("\n") == 0
    assert sentence in shown.err
