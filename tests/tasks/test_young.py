import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope.errors import InputError
from grokscope.tasks import Group, named_group, orthogonal_form, partitions


def test_partition_counts() -> None:
    assert [len(list(partitions(n))) for n in range(1, 8)] == [1, 2, 3, 5, 7, 11, 15]


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_dimensions_follow_the_hook_length_formula(n: int) -> None:
    group = named_group(f"S{n}")
    total = 0
    for shape in partitions(n):
        columns = [sum(row > c for row in shape) for c in range(shape[0])]
        hooks = [shape[r] - c + columns[c] - r - 1 for r in range(len(shape)) for c in range(shape[r])]
        d = orthogonal_form(group, shape).shape[1]
        assert d == group.order // np.prod(hooks)
        total += d * d
    assert total == group.order


@given(st.integers(2, 5), st.integers(0, 10**6), st.integers(0, 10**6))
def test_representations_multiply_and_are_orthogonal(n: int, g: int, h: int) -> None:
    group = named_group(f"S{n}")
    g, h = g % group.order, h % group.order
    for shape in partitions(n):
        rho = orthogonal_form(group, shape)
        assert np.allclose(rho[g] @ rho[h], rho[group.table[g, h]])
        assert np.allclose(rho[g] @ rho[g].T, np.eye(rho.shape[1]))


@pytest.mark.parametrize("partition", [(2, 2), (1, 2), (3, 0), (), (4, -1)])
def test_only_partitions_of_its_letters_are_irreps(partition: tuple[int, ...]) -> None:
    with pytest.raises(InputError) as rejection:
        orthogonal_form(named_group("S3"), partition)
    assert str(rejection.value) == f"expected a partition of 3 such as (3,), got {partition}"


@pytest.mark.parametrize("group", [named_group("D3"), Group("bare S3", named_group("S3").table)])
def test_only_symmetric_groups_have_youngs_form(group: Group) -> None:
    with pytest.raises(InputError, match=f"is that of a symmetric group, got '{group.name}'"):
        orthogonal_form(group, (2, 1))


def test_known_representations() -> None:
    group = named_group("S4")
    assert (orthogonal_form(group, (4,)) == 1).all()
    odd = [sum(w[i] > w[j] for j in range(4) for i in range(j)) % 2 for w in group.elements]
    assert np.allclose(orthogonal_form(group, (1, 1, 1, 1))[:, 0, 0], 1 - 2 * np.array(odd))
    fixed = [sum(letter == str(i + 1) for i, letter in enumerate(w)) for w in group.elements]
    assert np.allclose(np.trace(orthogonal_form(group, (3, 1)), axis1=1, axis2=2), np.array(fixed) - 1)
