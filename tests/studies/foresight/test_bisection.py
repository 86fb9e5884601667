import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope.errors import InputError
from grokscope.studies.foresight.bisection import MIXED, next_fraction

BRACKET = (0.05, 0.45)


@given(edge=st.floats(0.06, 0.44), width=st.floats(0.01, 0.1))
def test_finds_a_mixed_fraction_wherever_the_boundary_is(edge: float, width: float) -> None:
    def share(fraction: float) -> float:
        return min(max(0.5 + (fraction - edge) / width, 0.0), 1.0)

    probes: dict[float, float] = {}
    for _ in range(8):
        fraction, is_own = next_fraction(probes, BRACKET)
        if is_own:
            break
        assert BRACKET[0] < fraction < BRACKET[1]
        assert fraction not in probes
        probes[fraction] = share(fraction)
    assert is_own
    assert fraction in probes
    assert len(probes) <= 6
    if width > 0.05:
        assert MIXED[0] <= probes[fraction] <= MIXED[1]


def test_a_boundary_that_is_not_there_ends_at_an_end() -> None:
    probes: dict[float, float] = {}
    while not (found := next_fraction(probes, BRACKET))[1]:
        probes[found[0]] = 0.0
    assert found[0] == next(iter(probes))
    assert len(probes) <= 6


@pytest.mark.parametrize("bracket", [(0.4, 0.1), (0.0, 0.4), (0.1, 1.0)])
def test_rejects_what_is_no_bracket(bracket: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="must lie in"):
        next_fraction({}, bracket)
    with pytest.raises(InputError, match="a share of seeds"):
        next_fraction({0.2: 1.2}, BRACKET)
