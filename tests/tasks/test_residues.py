import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope.tasks.residues import is_prime, parse_polynomial, polynomial_values, primitive_root, root_powers


@given(st.sampled_from([p for p in range(3, 400) if is_prime(p)]))
def test_root_powers_are_all_units(p: int) -> None:
    powers = root_powers(p)
    assert sorted(powers) == list(range(1, p))
    logarithm = {int(x): k for k, x in enumerate(powers)}
    a, b = 1 + p // 2, p - 1
    assert logarithm[a * b % p] == (logarithm[a] + logarithm[b]) % (p - 1)
    assert powers[1 % (p - 1)] == primitive_root(p) % p or p == 3


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=4))
def test_polynomials_read_back(terms: list[tuple[int, int, int]]) -> None:
    def written(coefficient: int, i: int, j: int) -> str:
        return f"{'-' if coefficient < 0 else '+'}{abs(coefficient)}{f'a{i}' if i else ''}{f'b{j}' if j else ''}"

    text = "".join(written(*term) for term in terms).removeprefix("+")
    assert parse_polynomial(text) == tuple(terms)
    a, b = np.arange(11), np.arange(11)[::-1].copy()
    expected = [sum(c * int(x) ** i * int(y) ** j for c, i, j in terms) % 11 for x, y in zip(a, b, strict=True)]
    assert polynomial_values(tuple(terms), a, b, 11).tolist() == expected


@pytest.mark.parametrize("exponent", [0, 1, 2, 99])
def test_large_powers_are_reduced(exponent: int) -> None:
    a = np.arange(997)
    assert polynomial_values(((1, exponent, 0),), a, a, 997).tolist() == [pow(x, exponent, 997) for x in range(997)]
