import numpy as np
import pytest

from grokscope.errors import InputError
from grokscope.tasks import named_group


@pytest.mark.parametrize(
    ("name", "order", "classes"),
    [
        ("Z60", 60, 60),
        ("D12", 24, 9),
        ("D15", 30, 9),
        ("S5", 120, 7),
        ("S6", 720, 11),
        ("A5", 60, 5),
        ("A6", 360, 7),
        ("Q8", 8, 5),
        ("Aff7", 42, 7),
        ("Aff11", 110, 11),
        ("SL2_3", 24, 7),
        ("PSL2_7", 168, 6),
        ("PSL2_11", 660, 8),
        ("Z3xS4", 72, 15),
        ("Z2xZ2xZ5", 20, 20),
    ],
)
def test_orders_and_class_counts(name: str, order: int, classes: int) -> None:
    group = named_group(name)
    assert (group.name, group.order, len(group.classes)) == (name, order, classes)


def test_permutations_stand_in_lexicographic_order_and_compose_as_maps() -> None:
    group = named_group("S3")
    assert group.elements == ("123", "132", "213", "231", "312", "321")
    g, h = group.elements.index("213"), group.elements.index("132")
    assert group.elements[group.table[g, h]] == "231"  # x ↦ g(h(x)): 1 → 1 → 2, 2 → 3 → 3, 3 → 2 → 1


def test_affine_maps_compose() -> None:
    group = named_group("Aff5")
    f, g = group.elements.index("2x+1"), group.elements.index("3x+4")
    assert group.elements[group.table[f, g]] == "1x+4"  # 2(3x + 4) + 1 = 6x + 9


def test_matrices_multiply() -> None:
    group = named_group("SL2_3")
    s, t = group.elements.index("[0 2; 1 0]"), group.elements.index("[1 1; 0 1]")
    assert group.elements[group.table[s, t]] == "[0 2; 1 1]"


def test_a_product_acts_factor_by_factor() -> None:
    group, three, four = named_group("Z3xS4"), named_group("Z3"), named_group("S4")
    i, j, k, m = 2, 7, 1, 20
    assert group.table[i * 24 + j, k * 24 + m] == three.table[i, k] * 24 + four.table[j, m]


def test_dihedral_reflections_turn_back() -> None:
    group = named_group("D7")
    r, s = group.elements.index("r1"), group.elements.index("r0s")
    assert group.table[group.table[s, r], s] == group.inverse[r]
    assert (group.orders[7:] == 2).all()
    assert not np.array_equal(group.table, group.table.T)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("S7", "'S7' has more than 1000 elements; groups of up to 1000 are supported"),
        ("S99999", "has more than 1000 elements"),
        ("Z99999999999", "has more than 1000 elements"),
        ("S5xS5", "has more than 1000 elements"),
        ("Z0", "is not the name of a group"),
        ("Zx3", "is not the name of a group"),
        ("D2", "D needs n ≥ 3, got 2 in 'D2'"),
        ("Q9", "Q needs a multiple of 4 from 8 on, got 9"),
        ("Aff9", "Aff needs a prime > 2, got 9"),
        ("SL2_4", "SL2_ needs a prime, got 4"),
        ("", "'' is not the name of a group"),
        ("Z1٢", "is not the name of a group"),  # an Arabic two
    ],
)
def test_bad_names(name: str, sentence: str) -> None:
    with pytest.raises(InputError) as rejection:
        named_group(name)
    assert sentence in str(rejection.value)
