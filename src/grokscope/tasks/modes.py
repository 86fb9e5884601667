"""The modes in which real activations over a group are read: its isotypic components, as real functions see them."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from grokscope.shapes import Float, Int
from grokscope.tasks.characters import CharacterTable, character_table
from grokscope.tasks.group import Group, frozen

__all__ = ["Mode", "Modes", "fourier_modes", "group_modes", "walsh_modes"]


@dataclass(frozen=True)
class Mode:
    """One isotypic component of the real functions on a group, the trivial one excluded as DC is."""

    label: str
    """Frequency for Z_n, Young partition for S_n, else the irrep's dimension and an index."""
    irrep_dimension: int
    """d_ρ."""
    dimension: int
    """Of its function space: d² for a real or quaternionic irrep, 2d² for a complex one and its conjugate together."""
    irreps: tuple[int, ...]
    """Rows of the character table that make it up: one, or a conjugate pair."""


@dataclass(frozen=True, eq=False)
class Modes:
    """All modes of a group, with one orthonormal basis of the functions on it, in column blocks.

    The projector on mode m is B_m B_mᵀ with B_m its block, so n² numbers hold all of them.
    """

    modes: tuple[Mode, ...]
    """In the order of the blocks."""
    basis: Float[np.ndarray, "n n"]
    """Orthogonal; the first column is the constant function, then a block of `dimension` columns for each mode."""

    def __len__(self) -> int:
        return len(self.modes)

    @property
    def dimensions(self) -> Int[np.ndarray, " modes"]:
        """Function-space dimension of each mode; with the trivial one they sum to n."""
        return np.array([mode.dimension for mode in self.modes], dtype=np.int64)

    @property
    def column_mode(self) -> Int[np.ndarray, " columns"]:
        """The mode to which each column after the first belongs."""
        return np.repeat(np.arange(len(self.modes)), self.dimensions)

    @property
    def is_fourier(self) -> bool:
        """Whether the elements are Z_n in order, so that a Fourier transform finds the modes."""
        return self is fourier_modes(len(self.basis))

    def block(self, mode: int) -> Float[np.ndarray, "n dimension"]:
        """An orthonormal basis of one mode."""
        start = 1 + int(self.dimensions[:mode].sum())
        return self.basis[:, start : start + self.modes[mode].dimension]

    def projector(self, mode: int) -> Float[np.ndarray, "n n"]:
        """P_m = B_m B_mᵀ = Σ_{ρ ∈ m} (d_ρ/|G|) χ_ρ(c·c'⁻¹), symmetric and idempotent."""
        return self.block(mode) @ self.block(mode).T

    def power(self, functions: Float[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch modes"]:
        """P(ρ) = (d_ρ/|G|) ‖Σ_c φ(c) ρ(c)‖²_F, summed over the mode's irreps: the squared norm of its projection.

        Paper: Eq. 4. On Z_n it is 2|Â_f|²/n, and |Â_f|²/n at f = n/2. Powers and the mean's add up to ‖φ‖²
        (Plancherel).
        """
        squares = (functions @ self.basis[:, 1:]) ** 2
        bounds = np.cumsum(self.dimensions) - self.dimensions
        return np.add.reduceat(squares, bounds, axis=-1) if len(self) else squares[..., :0]


@lru_cache(maxsize=64)
def group_modes(group: Group) -> Modes:
    """The real modes of any group, from its characters.

    >>> from grokscope.tasks.families import named_group
    >>> [(mode.label, mode.dimension) for mode in group_modes(named_group("S4")).modes]
    [('(1,1,1,1)', 1), ('(2,2)', 4), ('(3,1)', 9), ('(2,1,1)', 9)]
    """
    if group.family == "cyclic":
        return fourier_modes(group.order)
    table = character_table(group)
    modes = _merged(table)
    # One symmetric matrix Σ_m m·P_m (the trivial mode has m = 0) has every mode as the eigenspace of its own number,
    # so a single eigendecomposition yields all blocks, in order and one apart.
    class_function = np.zeros(len(group.classes))
    for number, mode in enumerate(modes, start=1):
        for irrep in mode.irreps:
            class_function += number * table.dimensions[irrep] * table.values[irrep].real / group.order
    matrix = class_function[group.class_of[group.table[:, group.inverse]]]
    numbers, basis = np.linalg.eigh((matrix + matrix.T) / 2)
    expected = np.repeat(np.arange(len(modes) + 1), [1, *(mode.dimension for mode in modes)])
    if np.abs(numbers - expected).max() > 1e-6:
        raise ArithmeticError(f"the modes of {group.name} did not separate")
    return Modes(modes, frozen(basis))


@lru_cache(maxsize=64)
def fourier_modes(n: int) -> Modes:
    """The ⌊n/2⌋ frequencies of Z_n: √(2/n) cos(2πfg/n), √(2/n) sin(2πfg/n), and √(1/n) (−1)^g at f = n/2.

    >>> [(mode.label, mode.dimension) for mode in fourier_modes(6).modes]
    [('1', 2), ('2', 2), ('3', 1)]
    """
    frequencies = np.arange(1, n // 2 + 1)
    # Reduced modulo n as whole numbers first: cos of a large angle loses digits.
    angles = 2 * np.pi * (np.outer(np.arange(n), frequencies) % n) / n
    waves = np.sqrt(2 / n) * np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(n, -1)
    if n % 2 == 0:
        waves = waves[:, :-1]
        waves[:, -1:] /= np.sqrt(2)
    modes = tuple(
        Mode(str(f), 1, 1 if 2 * f == n else 2, (f,) if 2 * f == n else (f, n - f)) for f in range(1, n // 2 + 1)
    )
    return Modes(modes, frozen(np.concatenate([np.full((n, 1), n**-0.5), waves], axis=1)))


@lru_cache(maxsize=8)
def walsh_modes(bits: int) -> Modes:
    """The 2^m − 1 characters of Z_2^m: χ_S(x) = ∏_{j ∈ S} (−1)^{x_j} for every set S of the m bits but the empty one.

    Element i has bit j of i as x_j. Sets are ordered by their size, and labelled by their bits, counted from 1.

    >>> [mode.label for mode in walsh_modes(2).modes], walsh_modes(2).basis[:, 3].tolist()
    (['1', '2', '1·2'], [0.5, -0.5, -0.5, 0.5])
    """
    elements = np.arange(2**bits)
    sizes = np.array([i.bit_count() for i in elements.tolist()])
    sets = np.lexsort((elements, sizes))
    odd = sizes[elements[:, None] & sets] % 2
    names = ["·".join(str(j + 1) for j in range(bits) if s >> j & 1) for s in sets.tolist()]
    modes = tuple(Mode(name, 1, 1, (i,)) for i, name in enumerate(names) if i)
    return Modes(modes, frozen((1 - 2 * odd) * 2 ** (-bits / 2)))


def _merged(table: CharacterTable) -> tuple[Mode, ...]:
    """Conjugate irreps together, the trivial one (row 0) left out."""
    found: list[Mode] = []
    for irrep, conjugate in enumerate(table.conjugates):
        if irrep == 0 or conjugate < irrep:
            continue
        irreps = (irrep,) if conjugate == irrep else (irrep, int(conjugate))
        d = int(table.dimensions[irrep])
        label = table.labels[irrep]
        if table.group.family == "other":
            label = f"d{d}.{1 + sum(mode.irrep_dimension == d for mode in found)}"
        found.append(Mode(label, d, len(irreps) * d * d, irreps))
    return tuple(found)
