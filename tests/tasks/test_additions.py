from itertools import product

import numpy as np
import pytest

from grokscope.errors import InputError
from grokscope.tasks import named_task


def test_sums_have_every_row_once() -> None:
    task = named_task("add3_mod5")
    assert task.tokens is not None
    assert task.tokens.tolist() == [[*terms, 5] for terms in product(range(5), repeat=3)]
    assert task.answers.tolist() == [sum(terms) % 5 for terms in product(range(5), repeat=3)]
    assert task.basis().name == "additive"


def test_large_sums_are_sampled_without_repetition() -> None:
    task = named_task("add4_mod23_rows1000")
    assert task.tokens is not None
    assert len(np.unique(task.tokens, axis=0)) == task.rows == 1000
    assert np.array_equal(task.answers, task.tokens[:, :4].sum(axis=1) % 23)
    assert named_task("add3_mod47").rows == 100_000  # of 103,823


def test_the_missing_number_completes_the_equation() -> None:
    task = named_task("missing_mod7")
    assert task.tokens is not None
    assert task.rows == 3 * 49
    for row, answer in zip(task.tokens.tolist(), task.answers.tolist(), strict=True):
        assert row.count(8) == 1
        a, b, c = (answer if token == 8 else token for token in row[:3])
        assert (a + b) % 7 == c
    assert len({tuple(row) for row in task.tokens.tolist()}) == task.rows
    assert (task.length, task.vocabulary, task.classes) == (4, 9, 7)


def test_two_terms_are_the_table_of_pairs() -> None:
    assert named_task("add_mod7").pairs is not None
    with pytest.raises(InputError, match=r"the number of 'add2_mod7' must lie between 3 and 8, got 2"):
        named_task("add2_mod7")
