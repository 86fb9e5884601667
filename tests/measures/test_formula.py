import math

import pytest

from grokscope.measures.formula import Formula, Wave


@pytest.mark.parametrize(
    ("amplitude", "shown"),
    [
        (0.41, "0.41"),
        (0.4149, "0.41"),
        (0.999, "1.0"),
        (12.34, "12"),
        (1234.5, "1200"),
        (9949.0, "9900"),
        (9951.0, "1.0·10⁴"),
        (0.0123, "0.012"),
        (0.00999, "0.010"),
        (0.0099, "9.9·10⁻³"),
        (1.2e-4, "1.2·10⁻⁴"),
        (1.26e-15, "1.3·10⁻¹⁵"),
        (3.0e20, "3.0·10²⁰"),
    ],
)
def test_numbers_are_rounded_and_small_ones_have_a_power_of_ten(amplitude: float, shown: str) -> None:
    formula = Formula(97, (Wave(amplitude, 5, 1.2),), 0.0)
    assert formula.text() == f"{shown}·cos(2π·5s/97 − 1.20)"
    assert Formula(97, (), amplitude).text() == shown


def test_the_papers_notation() -> None:
    assert Formula(97, (Wave(0.41, 5, 1.2),), 0.0).text() == "0.41·cos(2π·5s/97 − 1.20)"
    assert Formula(97, (Wave(0.41, 5, -1.2),), -0.5).text() == "−0.50 + 0.41·cos(2π·5s/97 + 1.20)"
    assert Formula(97, (Wave(0.41, 5, -3.1415),), 0.0).text() == Formula(97, (Wave(0.41, 5, 3.1415),), 0.0).text()
    assert Formula(97, (Wave(0.41, 1, 0.004),), 0.0).text() == "0.41·cos(2πs/97)"
    assert Formula(97, (Wave(0.41, 5, 1.23456),), 0.0).text(4) == "0.4100·cos(2π·5s/97 − 1.2346)"
    assert Formula(97, (Wave(0.41, 5, 1.2),), 0.0).latex() == r"0.41 \cos(2\pi \cdot 5s/97 - 1.20)"
    assert Formula(97, (), 3e-12, is_constant=True).latex() == r"3.0 \cdot 10^{-12}\ \text{(constant)}"
    assert Formula(97, (), math.nan).latex() == r"\text{undefined}"


def test_the_variance_of_a_formula_is_that_of_its_curve() -> None:
    formula = Formula(6, (Wave(0.5, 1, 0.3), Wave(0.2, 3, math.pi), Wave(0.1, 2, -1.0)), 4.0)

    def variance(some: Formula) -> float:
        angles = [[2 * math.pi * w.frequency * s / 6 - w.phase for w in some.waves] for s in range(6)]
        curve = [sum(w.amplitude * math.cos(x) for w, x in zip(some.waves, row, strict=True)) for row in angles]
        return sum(value**2 for value in curve) / 6

    assert formula.variance == pytest.approx(variance(formula))
    assert formula.strongest(2).variance == pytest.approx(variance(formula.strongest(2)))
    assert formula.strongest(2).variance < formula.variance
