import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from some_groups import any_groups, named_groups

from grokscope.tasks import (
    Group,
    character_table,
    fourier_modes,
    group_modes,
    named_group,
    orthogonal_form,
    partitions,
)
from grokscope.tasks.young import partition_name

random_states = st.integers(0, 2**32)


def functions(group: Group, state: int, count: int = 3) -> np.ndarray:
    return np.random.default_rng(state).standard_normal((count, group.order))


@given(any_groups, random_states)
def test_plancherel(group: Group, state: int) -> None:
    phi = functions(group, state)
    powers = group_modes(group).power(phi)
    trivial = phi.sum(axis=1) ** 2 / group.order
    assert np.allclose(powers.sum(axis=1) + trivial, (phi**2).sum(axis=1))


@given(any_groups)
def test_projectors_are_idempotent_orthogonal_and_complete(group: Group) -> None:
    modes = group_modes(group)
    projectors = [modes.projector(m) for m in range(len(modes))]
    constant = np.full((group.order, group.order), 1 / group.order)
    assert np.allclose(sum(projectors, constant), np.eye(group.order))
    for i, p in enumerate(projectors):
        assert np.allclose(p @ p, p)
        assert round(np.trace(p)) == modes.modes[i].dimension
        for q in projectors[:i]:
            assert np.abs(p @ q).max() < 1e-10


@given(any_groups)
def test_projectors_are_those_of_the_characters(group: Group) -> None:
    """P_m[c, c'] = Σ_{ρ ∈ m} (d_ρ/|G|) χ_ρ(c·c'⁻¹), which is what the stored basis stands for."""
    table, modes = character_table(group), group_modes(group)
    quotient = group.class_of[group.table[:, group.inverse]]
    used: list[int] = []
    for m, mode in enumerate(modes.modes):
        expected = sum(table.dimensions[i] / group.order * table.values[i][quotient] for i in mode.irreps)
        assert np.allclose(modes.projector(m), expected)
        used += mode.irreps
    assert sorted(used) == list(range(1, len(group.classes)))


@given(any_groups, random_states)
def test_powers_are_invariant_under_translation(group: Group, state: int) -> None:
    phi, modes = functions(group, state, 1)[0], group_modes(group)
    g = state % group.order
    assert np.allclose(modes.power(phi[group.table[g]]), modes.power(phi))
    assert np.allclose(modes.power(phi[group.table[:, g]]), modes.power(phi))


@given(named_groups, random_states)
def test_powers_are_invariant_under_relabelling(group: Group, state: int) -> None:
    new_label = np.random.default_rng(state).permutation(group.order)
    phi = functions(group, state, 1)[0]
    relabelled = np.empty_like(phi)
    relabelled[new_label] = phi
    powers = group_modes(group).power(phi)
    other = group_modes(group.relabelled(new_label)).power(relabelled)
    assert np.allclose(np.sort(powers), np.sort(other))


@given(st.integers(2, 60), random_states)
def test_modes_of_a_cyclic_group_are_the_dft_frequencies(n: int, state: int) -> None:
    """From a bare table (no family, elements in natural order), against numpy's FFT."""
    table = np.add.outer(np.arange(n), np.arange(n)) % n
    phi = np.random.default_rng(state).standard_normal((2, n))
    spectrum = np.abs(np.fft.rfft(phi, axis=1)[:, 1:]) ** 2 / n
    spectrum[:, : (n - 1) // 2] *= 2
    for modes in (fourier_modes(n), group_modes(named_group(f"Z{n}"))):
        assert [mode.label for mode in modes.modes] == [str(f) for f in range(1, n // 2 + 1)]
        assert np.allclose(modes.power(phi), spectrum)
    bare = group_modes(Group("bare", table))
    assert len(bare) == n // 2
    assert np.allclose(np.sort(bare.power(phi)), np.sort(spectrum))
    assert sorted(bare.dimensions) == sorted(fourier_modes(n).dimensions)


def test_power_from_characters_equals_power_from_youngs_matrices_on_s5() -> None:
    """Eq. 4 as printed, with the matrices of Young's orthogonal form."""
    group = named_group("S5")
    phi = functions(group, 5, 20)
    modes = group_modes(group)
    powers = dict(zip([mode.label for mode in modes.modes], modes.power(phi).T, strict=True))
    for partition in partitions(5):
        if partition == (5,):
            continue
        matrices = orthogonal_form(group, partition)
        transform = np.einsum("bg,gij->bij", phi, matrices)
        expected = matrices.shape[1] / group.order * (transform**2).sum(axis=(1, 2))
        assert np.abs(powers[partition_name(partition)] - expected).max() < 1e-10


def test_conjugate_irreps_share_a_mode() -> None:
    modes = group_modes(named_group("Z3xA4")).modes
    assert {(mode.irrep_dimension, mode.dimension, len(mode.irreps)) for mode in modes} == {
        (1, 2, 2),
        (3, 9, 1),
        (3, 18, 2),
    }


def test_quaternionic_irreps_stand_alone() -> None:
    modes = group_modes(named_group("Q8")).modes
    assert [mode.dimension for mode in modes] == [1, 1, 1, 4]


def test_the_trivial_group_has_no_mode() -> None:
    assert len(group_modes(named_group("Z1"))) == 0
    assert group_modes(named_group("Z1")).power(np.ones((2, 1))).shape == (2, 0)


def test_a_group_of_order_1000_fits() -> None:
    modes = fourier_modes(1000)
    assert modes.basis.shape == (1000, 1000)
    assert np.allclose(modes.basis.T @ modes.basis, np.eye(1000))
