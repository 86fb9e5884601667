import numpy as np
import pytest
from hypothesis import given
from some_groups import any_groups

from grokscope.errors import InputError
from grokscope.tasks import Group, character_table


@given(any_groups)
def test_the_axioms_hold(group: Group) -> None:
    everyone = np.arange(group.order)
    assert np.array_equal(group.table[group.identity], everyone)
    assert (group.table[everyone, group.inverse] == group.identity).all()
    if group.order <= 60:
        left, right = group.table[group.table], group.table[:, group.table]
        assert np.array_equal(left, right)


@given(any_groups)
def test_orders_and_powers(group: Group) -> None:
    for g in range(0, group.order, 7):
        seen, x = 1, g
        while x != group.identity:
            x, seen = int(group.table[x, g]), seen + 1
        assert group.orders[g] == seen
    assert (group.order % group.orders == 0).all()


@given(any_groups)
def test_classes_are_the_orbits_of_conjugation(group: Group) -> None:
    assert sorted(np.concatenate(group.classes)) == list(range(group.order))
    assert group.class_of[group.identity] == 0
    for members in group.classes:
        orbit = {int(group.table[group.table[x, members[0]], group.inverse[x]]) for x in range(group.order)}
        assert orbit == set(members.tolist())


@given(any_groups)
def test_generators_reach_everything(group: Group) -> None:
    reached = {group.identity}
    while True:
        grown = reached | {int(group.table[x, g]) for x in reached for g in group.generators}
        if grown == reached:
            break
        reached = grown
    assert len(reached) == group.order
    assert 2 ** len(group.generators) <= group.order


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ([[0, 1], [1]], "its table must be square, got rows of unequal length"),
        ([[0, 1, 2], [1, 2, 0]], "its table must be square, got shape (2, 3)"),
        ([], "its table must be square, got shape (0,)"),
        ([[0, 1], [1, 2]], "not closed: 1·1 = 2, expected an element 0 … 1"),
        ([[0.5, 1], [1, 0]], "its table must hold whole numbers, got"),
        ([["a", "b"], ["b", "a"]], "its table must hold whole numbers, got"),
        ([[1, 0], [0, 0]], "no identity"),
        ([[0, 1, 2], [1, 1, 1], [2, 1, 1]], "no inverse of 1"),
        # the smallest loop that is not a group
        (
            [[0, 1, 2, 3, 4], [1, 0, 3, 4, 2], [2, 4, 0, 1, 3], [3, 2, 4, 0, 1], [4, 3, 1, 2, 0]],
            "not associative: (x·y)·z ≠ x·(y·z) for x = ",
        ),
    ],
)
def test_a_table_that_is_no_group_is_told_why(table, sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        Group("mine", table)
    assert str(refusal.value).startswith("mine is not a group: ")
    assert sentence in str(refusal.value)


def test_the_failing_triple_really_fails() -> None:
    table = np.array([[0, 1, 2, 3, 4], [1, 0, 3, 4, 2], [2, 4, 0, 1, 3], [3, 2, 4, 0, 1], [4, 3, 1, 2, 0]])
    with pytest.raises(InputError) as refusal:
        Group("loop", table)
    words = str(refusal.value).replace(",", "").split()
    x, y, z = (int(words[i + 2]) for i, word in enumerate(words) if word in "xyz" and words[i + 1] == "=")
    assert table[table[x, y], z] != table[x, table[y, z]]


def test_too_large_a_table_is_refused() -> None:
    with pytest.raises(InputError, match="mine has 1001 elements; groups of up to 1000 are supported"):
        Group("mine", np.zeros((1001, 1001), dtype=int))


def test_a_group_cannot_be_changed_afterwards() -> None:
    group = Group("Z2", [[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="read-only"):
        group.table[0, 0] = 1
    assert character_table(group).dimensions.tolist() == [1, 1]
