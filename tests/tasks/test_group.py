import numpy as np
import pytest
from hypothesis import given
from some_groups import any_groups

from grokscope.errors import InputError
from grokscope.tasks import Group, character_table, named_group


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
        ([[0, 1], [1, -1]], "not closed: 1·1 = -1, expected an element 0 … 1"),
        ([[0, 1], [1.5, 0]], "not closed: 1·0 = 1.5, expected"),
        ([[0, 1], [1, float("nan")]], "not closed: 1·1 = nan, expected"),
        ([[0, 1], [1, "a\n"]], r"not closed: 1·1 = 'a\n', expected"),
        ([[0, 10**30], [1, 0]], f"not closed: 0·1 = {10**30}, expected"),
        ([[0, None], [1, 0]], "not closed: 0·1 = None, expected"),
        (np.array([[0, 1], [1, 0]], dtype=bool), "not closed: 0·0 = False, expected"),
        (np.zeros((1, 1), dtype="i4,i4"), "not closed: 0·0 = (0, 0), expected"),
        ([[1, 0], [0, 0]], "no identity"),
        ([[0, 1, 2], [1, 1, 1], [2, 1, 1]], "no inverse of 1"),
        # 1·2 = e, but nothing gives e with 1 on its right
        ([[0, 1, 2], [1, 1, 0], [2, 1, 1]], "no inverse of 1: no h has g·h = h·g = e"),
        # 1·2 = e comes first but 2·1 is not e; the inverse of 1 is 3
        ([[0, 1, 2, 3], [1, 1, 0, 0], [2, 1, 1, 1], [3, 0, 1, 1]], "no inverse of 2: no h has g·h = h·g = e"),
        # the smallest loop that is not a group
        (
            [[0, 1, 2, 3, 4], [1, 0, 3, 4, 2], [2, 4, 0, 1, 3], [3, 2, 4, 0, 1], [4, 3, 1, 2, 0]],
            "not associative: (x·y)·z ≠ x·(y·z) for x = ",
        ),
    ],
)
def test_a_table_that_is_no_group_is_rejected_with_the_reason(table, sentence: str) -> None:
    with pytest.raises(InputError) as rejection:
        Group("mine", table)
    assert str(rejection.value).startswith("'mine' is not a group: ")
    assert sentence in str(rejection.value)


def test_the_failing_triple_really_fails() -> None:
    table = np.array([[0, 1, 2, 3, 4], [1, 0, 3, 4, 2], [2, 4, 0, 1, 3], [3, 2, 4, 0, 1], [4, 3, 1, 2, 0]])
    with pytest.raises(InputError) as rejection:
        Group("loop", table)
    words = str(rejection.value).replace(",", "").split()
    x, y, z = (int(words[i + 2]) for i, word in enumerate(words) if word in "xyz" and words[i + 1] == "=")
    assert table[table[x, y], z] != table[x, table[y, z]]


def test_too_large_a_table_is_rejected() -> None:
    with pytest.raises(InputError, match="'mine' has 1001 elements; groups of up to 1000 are supported"):
        Group("mine", np.zeros((1001, 1001), dtype=int))


@pytest.mark.parametrize("name", ["table", "inverse", "powers", "orders", "class_of"])
def test_a_group_cannot_be_changed_afterwards(name: str) -> None:
    group = Group("Z2", [[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="read-only"):
        getattr(group, name)[...] = 0
    assert character_table(group).dimensions.tolist() == [1, 1]


def test_objects_that_are_whole_numbers_make_a_table() -> None:
    assert Group("Z2", np.array([[0, 1], [1, 0]], dtype=object)).order == 2


def test_names_are_shown_and_never_printed_raw() -> None:
    loop = [[0, 1, 2, 3, 4], [1, 0, 3, 4, 2], [2, 4, 0, 1, 3], [3, 2, 4, 0, 1], [4, 3, 1, 2, 0]]
    with pytest.raises(InputError) as rejection:
        Group("\x1b[31m\n", loop, ["e", "\x1b]0;a", "b" * 5000, "c\n", "d"])
    assert str(rejection.value).isprintable()
    assert len(str(rejection.value)) < 500


def test_each_element_has_a_name_of_its_own() -> None:
    with pytest.raises(InputError, match="'mine' has two elements with the name 'a'"):
        Group("mine", [[0, 1, 2], [1, 2, 0], [2, 0, 1]], ["e", "a", "a"])


S3 = named_group("S3")


@pytest.mark.parametrize(
    ("family", "table", "elements"),
    [
        ("cyclic", [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]], ()),
        ("cyclic", S3.table, ()),
        ("cyclic", Group("", [[1, 0], [0, 1]]).table, ()),
        ("symmetric", S3.table, ()),
        ("symmetric", S3.table, S3.elements[::-1]),
        ("symmetric", S3.table.T, S3.elements),  # composed the other way round
        ("symmetric", named_group("Z6").table, S3.elements),
        ("symmetric", named_group("Z2").table, ("", "21")),
    ],
)
def test_a_family_without_its_order_is_rejected(family, table, elements) -> None:
    with pytest.raises(InputError, match=f"'mine' is not a {family} group in the order of its family"):
        Group("mine", table, elements, family)
