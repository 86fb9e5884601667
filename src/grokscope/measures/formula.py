"""A neuron's Fourier series as people read it, in plain characters and in TeX."""

import re
from dataclasses import dataclass, replace
from math import isnan, pi
from unicodedata import normalize

__all__ = ["Formula", "Wave"]

SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
TEX = {
    "undefined": r"\text{undefined}",
    "·cos": r" \cos",
    "·": r" \cdot ",
    "π": r"\pi",
    "−": "-",
    " (constant)": r"\ \text{(constant)}",
}


@dataclass(frozen=True)
class Wave:
    """amplitude · cos(2π · frequency · s/n − phase)."""

    amplitude: float
    """c > 0."""
    frequency: int
    """k."""
    phase: float
    """φ in (−π, π]."""


@dataclass(frozen=True)
class Formula:
    """A neuron's series, to be read.

    >>> print(Formula(97, (Wave(1.23e-4, 5, 1.2), Wave(2e-5, 1, -0.3)), 0.0521).text())
    0.052 + 1.2·10⁻⁴·cos(2π·5s/97 − 1.20) + 2.0·10⁻⁵·cos(2πs/97 + 0.30)
    """

    order: int
    """n, the elements of the group."""
    waves: tuple[Wave, ...]
    """The largest amplitude first; none for a constant neuron."""
    constant: float
    """a_0; left out of the text where it is exactly 0."""
    root: int | None = None
    """g, where the waves run over the discrete logarithm log_g(s) instead of s."""
    is_constant: bool = False
    """Whether the neuron does not vary, and has nothing to be fitted."""

    @property
    def variance(self) -> float:
        """Of its waves over the group: c²/2 for each, and c² for that at n/2, whose cosine is ±1."""
        return sum(wave.amplitude**2 / (1 if 2 * wave.frequency == self.order else 2) for wave in self.waves)

    def strongest(self, count: int) -> "Formula":
        """The same with so many of its waves, those of largest amplitude."""
        return replace(self, waves=self.waves[:count])

    def text(self, digits: int = 2) -> str:
        """In plain characters: `digits` significant digits of amplitudes, as many decimals of phases."""
        if isnan(self.constant):
            return "undefined"
        shown = [_number(abs(self.constant), digits)] if self.constant or not self.waves else []
        terms = " + ".join(shown + [self._term(wave, digits) for wave in self.waves])
        return f"{'−' if self.constant < 0 else ''}{terms}{' (constant)' if self.is_constant else ''}"

    def latex(self, digits: int = 2) -> str:
        r"""As TeX, without dollars.

        >>> print(Formula(97, (Wave(1.23e-4, 5, 1.2),), 0.0521).latex())
        0.052 + 1.2 \cdot 10^{-4} \cos(2\pi \cdot 5s/97 - 1.20)
        """
        found = re.sub("[⁻⁰¹²³⁴-⁹]+", lambda match: f"^{{{_digits(match[0])}}}", self.text(digits))
        found = re.sub("log([₀-₉]+)", lambda match: rf"\log_{{{_digits(match[1])}}}", found)
        for sign, command in TEX.items():
            found = found.replace(sign, command)
        return found

    def _term(self, wave: Wave, digits: int) -> str:
        variable = "s" if self.root is None else f"log{str(self.root).translate(SUBSCRIPT)}(s)"
        turns = variable if wave.frequency == 1 else f"{wave.frequency}{variable}"
        shift = f"{abs(wave.phase):.{digits}f}"
        sign = "−" if wave.phase > 0 or shift == f"{pi:.{digits}f}" else "+"  # ±π are one phase
        shift = f" {sign} {shift}" if float(shift) else ""
        dot = "" if turns == "s" else "·"
        return f"{_number(wave.amplitude, digits)}·cos(2π{dot}{turns}/{self.order}{shift})"


def _number(x: float, digits: int) -> str:
    """A number ≥ 0 to `digits` significant digits, with a power of ten where zeros would have to be counted."""
    if x == 0:
        return "0"
    mantissa, exponent = f"{x:.{digits - 1}e}".split("e")
    magnitude = int(exponent)
    if -2 <= magnitude <= 3:
        return f"{float(f'{mantissa}e{exponent}'):.{max(0, digits - 1 - magnitude)}f}"
    return f"{mantissa}·10{str(magnitude).translate(SUPERSCRIPT)}"


def _digits(raised: str) -> str:
    """Superscripts or subscripts as ordinary digits."""
    return normalize("NFKC", raised).replace("−", "-")
