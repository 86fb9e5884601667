import numpy as np
import pytest
import torch
from own_models import SITE, Attended, attended

import grokscope
from grokscope import Monitor


def test_a_function_and_a_table_that_are_addition_are_read_as_addition() -> None:
    model = attended()
    named = Monitor("add_mod7", SITE).evaluate(model)
    table = [[(a + b) % 7 for b in range(7)] for a in range(7)]
    for operation in (table, np.array(table), torch.tensor(table)):
        assert Monitor(operation, SITE).evaluate(model) == named
    assert Monitor(lambda a, b: (a + b) % 7, SITE, symbols=7).evaluate(model) == named


def test_a_table_of_a_group_is_read_in_its_irreps() -> None:
    group = grokscope.named_group("S3")
    torch.manual_seed(0)
    model = Attended(7, 6)
    own, named = (Monitor(task, SITE, ["fsd_gen", "fsd", "rank"]).evaluate(model) for task in (group.table, "S3"))
    assert own == named


def test_an_operation_without_a_group_warns_and_has_the_rest() -> None:
    with pytest.warns(UserWarning, match=r"is not a group's .*: fsd, rank need a basis and are left out; accuracies"):
        monitor = Monitor(lambda a, b: max(a, b), SITE, symbols=7)
    row = monitor.evaluate(attended())
    assert "fsd" not in row
    assert 0 < row["answer_share"] < 1
    assert row["accuracy"] >= 0


def test_pairs_without_an_answer_are_left_out() -> None:
    with pytest.warns(UserWarning, match="need a basis"):
        monitor = Monitor(lambda a, b: None if b == 0 else a // b, SITE, symbols=7)
    assert len(monitor.task.inputs) == 42
    assert Monitor(lambda a, b: None if b == 0 else a * pow(b, -1, 7) % 7, SITE, symbols=7).task.name == "div_mod7"
