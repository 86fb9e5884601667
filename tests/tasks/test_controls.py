from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grokscope.tasks import named_task
from grokscope.tasks.controls import latin_square

SQUARES_OF_ORDER_4 = 576


@settings(max_examples=20)
@given(st.integers(3, 24), st.integers(0, 10**6))
def test_each_symbol_stands_once_in_every_row_and_column(n: int, seed: int) -> None:
    square = latin_square(n, seed)
    everything = np.arange(n)
    assert (np.sort(square, axis=0) == everything[:, None]).all()
    assert (np.sort(square, axis=1) == everything).all()


@pytest.mark.slow
def test_squares_of_order_four_are_equally_likely() -> None:
    """χ² of 4,000 squares over all 576 of them; its standard deviation is 34."""
    draws = 4000
    found = Counter(latin_square.__wrapped__(4, seed).tobytes() for seed in range(draws))
    expected = draws / SQUARES_OF_ORDER_4
    missing = SQUARES_OF_ORDER_4 - len(found)
    chi = sum((count - expected) ** 2 / expected for count in found.values()) + missing * expected
    assert abs(chi - 575) < 4 * 34


def test_a_random_square_is_no_group() -> None:
    """The quadrangle criterion: in a group's table equal corners give equal fourth corners (Brandt)."""
    square, cyclic = latin_square(11), np.add.outer(np.arange(11), np.arange(11)) % 11

    def holds(table: np.ndarray) -> bool:
        for r in range(1, 5):
            for c in range(1, 5):
                places = [np.argwhere(table[a] == table[0, 0])[0][0] for a in range(11)]
                for a in range(11):
                    shifted = np.argwhere(table[a] == table[0, c])[0][0]
                    below = np.argwhere(table[:, places[a]] == table[r, 0])[0][0]
                    if table[below, shifted] != table[r, c]:
                        return False
        return True

    assert holds(cyclic)
    assert not holds(square)


@pytest.mark.parametrize("name", ["latin11", "random11"])
def test_controls_are_tables_of_pairs_without_a_basis(name: str) -> None:
    task = named_task(name)
    assert task.pairs is not None
    assert not task.bases
    assert (task.rows, task.symbols) == (121, 11)
    assert not np.array_equal(task.answers, named_task(f"{name}_seed1").answers)


def test_random_tables_have_every_answer_about_as_often() -> None:
    counts = np.bincount(named_task("random97").answers, minlength=97)
    assert ((counts - 97) ** 2 / 97).sum() < 96 + 5 * (2 * 96) ** 0.5
