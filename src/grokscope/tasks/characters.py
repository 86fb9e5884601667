"""All irreducible characters of a group, from its multiplication table alone.

The class sums of a group commute, so they have common eigenvectors, and these are the characters (Burnside 1911):
the class sum of C acts on the irrep ρ as the number |C| χ_ρ(C) / d_ρ.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from grokscope.shapes import Complex, Int
from grokscope.tasks.group import Group, frozen
from grokscope.tasks.young import partition_name, symmetric_characters

__all__ = ["CharacterTable", "character_table"]

# Eigenvalues nearer than this share of their range are separated by another random combination, not by digits.
SEPARATION = 1e-4


@dataclass(frozen=True, eq=False)
class CharacterTable:
    """The irreps of a group, by dimension and then by the values of their characters; the trivial one first."""

    group: Group
    """The group."""
    values: Complex[np.ndarray, "irreps classes"]
    """χ_ρ(C), as many irreps as classes."""
    dimensions: Int[np.ndarray, " irreps"]
    """d_ρ = χ_ρ(e), with Σ d_ρ² = |G|."""
    indicators: Int[np.ndarray, " irreps"]
    """Frobenius and Schur's ν_ρ = (1/|G|) Σ_g χ_ρ(g²): 1 real, 0 complex, −1 quaternionic."""
    labels: tuple[str, ...]
    """Frequency for Z_n, Young partition for S_n, else dimension and index."""

    @property
    def conjugates(self) -> Int[np.ndarray, " irreps"]:
        """The index of each irrep's complex conjugate."""
        sizes = self.group.class_sizes
        return ((self.values * sizes) @ self.values.T).real.argmax(axis=1)

    @property
    def orthogonality_error(self) -> float:
        """Largest |(1/|G|) Σ_C |C| χ_ρ(C) χ̄_σ(C) − δ_ρσ|."""
        gram = (self.values * self.group.class_sizes) @ self.values.conj().T / self.group.order
        return float(np.abs(gram - np.eye(len(gram))).max())


@lru_cache(maxsize=64)
def character_table(group: Group) -> CharacterTable:
    """The full complex character table.

    >>> from grokscope.tasks.families import named_group
    >>> character_table(named_group("S3")).values.real.round().astype(int).tolist()
    [[1, 1, 1], [1, -1, 1], [2, 0, -1]]
    """
    sizes = group.class_sizes
    vectors = _common_eigenvectors(group)
    raw = np.sqrt(group.order) * vectors.T / np.sqrt(sizes)
    raw = raw / (raw[:, :1] / np.abs(raw[:, :1]))  # χ(e) is real and positive
    values = _exact(group, raw)
    values = values[_canonical_order(group, values)]
    dimensions = values[:, 0].real.round().astype(np.int64)
    squares = group.class_of[group.powers[2][group.representatives]] if group.order > 1 else np.array([0])
    indicators = ((values[:, squares] * sizes).sum(axis=1).real / group.order).round().astype(np.int64)
    labels = _labels(group, values, dimensions)
    return CharacterTable(group, frozen(values), frozen(dimensions), frozen(indicators), labels)


def _common_eigenvectors(group: Group) -> Complex[np.ndarray, "classes irreps"]:
    """Orthonormal common eigenvectors of the class sums, in the basis of class sums divided by √|C|.

    Random Hermitian combinations are diagonalised; where eigenvalues come too near each other, another combination
    is drawn inside their common subspace, so that no eigenvector is mixed by rounding.
    """
    generator = np.random.Generator(np.random.PCG64(0))  # any generic draw will do: the result does not depend on it
    blocks = [np.eye(len(group.classes), dtype=complex)]
    done: list[np.ndarray] = []
    while blocks:
        combination = _class_sum_combination(group, generator)
        undecided: list[np.ndarray] = []
        for block in blocks:
            eigenvalues, inner = np.linalg.eigh(block.conj().T @ combination @ block)
            gaps = np.diff(eigenvalues) > SEPARATION * (np.abs(eigenvalues).max() + 1)
            for part in np.split(block @ inner, np.flatnonzero(gaps) + 1, axis=1):
                (done if part.shape[1] == 1 else undecided).append(part)
        blocks = undecided
    return np.concatenate(done, axis=1)


def _class_sum_combination(group: Group, generator: np.random.Generator) -> Complex[np.ndarray, "classes classes"]:
    """Σ_C w_C M_C with (M_C)_{DE} = #{(x, y) ∈ C × D: x·y = z_E}, made Hermitian by w of the inverse class."""
    count = len(group.classes)
    weights = generator.standard_normal(count) + 1j * generator.standard_normal(count)
    weights = weights / np.sqrt(group.class_sizes)  # comparable shares for small and large classes
    inverse_class = group.class_of[group.inverse[group.representatives]]
    weights = weights + weights[inverse_class].conj()
    # x = z_E·y⁻¹ for each y: one look-up per (E, y), summed over the class of y.
    factors = weights[group.class_of][group.table[group.representatives][:, group.inverse]]
    by_class = np.zeros((count, count), dtype=complex)
    np.add.at(by_class.T, group.class_of, factors.T)
    scale = np.sqrt(group.class_sizes)
    symmetric = by_class.T / scale[:, None] * scale
    return (symmetric + symmetric.conj().T) / 2


def _exact(group: Group, raw: Complex[np.ndarray, "irreps classes"]) -> Complex[np.ndarray, "irreps classes"]:
    """The characters to the last digit: χ(gʲ) = Σ_k m_k e^{2πijk/o} with whole multiplicities m_k, o the order of g.

    The multiplicities are the discrete Fourier transform of χ along a cyclic subgroup; rounding them removes
    every numerical error, and their distance from whole numbers certifies the table.
    """
    values = raw.copy()
    done = np.zeros(len(group.classes), dtype=bool)
    for c in np.argsort(-group.orders[group.representatives], kind="stable"):
        if done[c]:  # a power of an element already seen
            continue
        g, order = group.representatives[c], int(group.orders[group.representatives[c]])
        along = group.class_of[group.powers[:order, g]]
        multiplicities = np.fft.fft(values[:, along], axis=1).real / order
        whole = multiplicities.round()
        if np.abs(multiplicities - whole).max() > 1e-3:
            raise ArithmeticError(f"characters of {group.name} did not converge")
        values[:, along] = np.fft.ifft(whole, axis=1) * order
        done[along] = True
    return values


def _canonical_order(group: Group, values: Complex[np.ndarray, "irreps classes"]) -> Int[np.ndarray, " irreps"]:
    """By dimension, then by descending values class after class, the trivial first; by frequency for Z_n."""
    if group.family == "cyclic":
        return np.argsort(_frequencies(group, values))
    keys = np.concatenate([values.real[:, :1], -values.real[:, 1:], -values.imag[:, 1:]], axis=1)
    return np.lexsort(keys.round(6).T[::-1])


def _frequencies(group: Group, values: Complex[np.ndarray, "irreps classes"]) -> Int[np.ndarray, " irreps"]:
    """The k of χ(g) = e^{2πikg/n}, read off the generator 1."""
    turns = np.angle(values[:, group.class_of[1 % group.order]]) * group.order / (2 * np.pi)
    return turns.round().astype(np.int64) % group.order


def _labels(group: Group, values: np.ndarray, dimensions: np.ndarray) -> tuple[str, ...]:
    if group.family == "cyclic":
        return tuple(map(str, _frequencies(group, values)))
    if group.family == "symmetric":
        known = symmetric_characters(group)
        return tuple(partition_name(min(known, key=lambda p: np.abs(known[p] - row).max())) for row in values)
    return tuple(f"d{d}.{1 + int((dimensions[:i] == d).sum())}" for i, d in enumerate(dimensions))
