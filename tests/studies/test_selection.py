"""Selections: each field narrows, names decide the order, and a run in two experiments counts once."""

import pytest
from planted import run

from grokscope.errors import InputError
from grokscope.studies import Selection
from grokscope.studies.selection import configuration
from grokscope.studies.synchronization.experiments import EXPERIMENTS

BASE = {name: run(spec) for name, spec in EXPERIMENTS["base"](None, "float32").items()}
FORK = {name: run(spec) for name, spec in EXPERIMENTS["fork"](2, "float32").items()}
RECORDS = {"base": BASE, "fork": FORK}


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (Selection(("base",), task="sub_*"), ["sub_mod97_s42", "sub_mod97_s123"]),
        (Selection(("base",), ("mult_mod97_s42", "add_mod53_s42")), ["mult_mod97_s42", "add_mod53_s42"]),
        (Selection(("fork",), weight_decays=(10.0,)), ["add_mod97_s42_x10", "add_mod97_s0_x10"]),
        (Selection(("fork",), configuration="add_mod97_x3"), ["add_mod97_s42_x3", "add_mod97_s0_x3"]),
        (Selection(("base", "fork"), task="add_mod97", forks=False, names=("add_mod97_s1",)), ["add_mod97_s1"]),
        (Selection(("base",), forks=True), []),
        (Selection(("nothing",)), []),
    ],
)
def test_every_field_narrows(selection: Selection, names: list[str]) -> None:
    assert list(selection.select(RECORDS)) == names


def test_a_run_of_two_experiments_counts_once_under_its_first_name() -> None:
    one, other = BASE["add_mod97_s42"], FORK["add_mod97_s42_x3"]
    assert Selection(("base", "again")).select({"base": {"a": one}, "again": {"a": one, "b": one}}) == {"a": one}
    with pytest.raises(InputError, match=f"{one.name} and {other.name} are both called a"):
        Selection(("base", "again")).select({"base": {"a": one}, "again": {"a": other}})


def test_what_differs_is_in_the_words_and_in_the_data() -> None:
    some = [
        Selection(("base",)),
        Selection(("base",), task="add_*"),
        Selection(("base",), configuration="add_*"),
        Selection(("base",), forks=True),
        Selection(("base",), weight_decays=(1.0,)),
        Selection(("base",), ("a",)),
        Selection(("base",), ("b",)),
    ]
    assert len({one.describe() for one in some}) == len({str(one.data) for one in some}) == len(some)


def test_a_configuration_is_the_name_without_seeds() -> None:
    assert configuration("S5_f0.7_s42") == "S5_f0.7"
    assert configuration("shuffled_s3") == "shuffled"
