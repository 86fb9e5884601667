import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from gap.make_fixtures import compact, number, rebuild_table, run_gap, validate
from hypothesis import given
from some_groups import any_groups, named_groups

from grokscope.tasks import CharacterTable, Group, character_table, named_group

FIXTURES = sorted(Path(__file__).parent.joinpath("gap").glob("*.json"))


def load(path: Path) -> dict:
    return json.loads(path.read_text())


def gap_values(record: dict, group: Group) -> np.ndarray:
    """GAP's characters with its columns in the order of our classes, matched element by element."""
    values = np.array([[number(value) for value in row] for row in record["characters"]])
    gap_class = {element: i for i, members in enumerate(record["classes"]) for element in members}
    assert {frozenset(c) for c in record["classes"]} == {frozenset(c.tolist()) for c in group.classes}
    return values[:, [gap_class[int(g)] for g in group.representatives]]


def matched(ours: CharacterTable, theirs: np.ndarray) -> np.ndarray:
    """For each of our rows, GAP's row that equals it; every one of GAP's must be used once."""
    distance = np.abs(ours.values[:, None, :] - theirs[None, :, :]).max(axis=-1)
    nearest = distance.argmin(axis=1)
    assert sorted(nearest) == list(range(len(theirs)))
    assert distance.min(axis=1).max() < 1e-12
    return nearest


def test_there_are_enough_fixtures() -> None:
    assert len(FIXTURES) >= 24


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_characters_equal_gaps(path: Path) -> None:
    record = load(path)
    group = Group(path.stem, rebuild_table(record))
    table = character_table(group)
    rows = matched(table, gap_values(record, group))
    assert table.indicators.tolist() == [record["indicators"][row] for row in rows]


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_our_families_are_gaps_groups(path: Path) -> None:
    """The group we build under this name has GAP's characters, classes told apart by order, size and values."""
    ours, theirs = character_table(named_group(path.stem)), character_table(Group("gap", rebuild_table(load(path))))

    def fingerprint(table: CharacterTable) -> list:
        group = table.group
        columns = zip(group.orders[group.representatives], group.class_sizes, table.values.T, strict=True)
        return sorted((int(o), int(s), sorted(map(shape, column))) for o, s, column in columns)

    def shape(value: complex) -> tuple[float, float]:
        return (round(value.real, 6) + 0.0, round(value.imag, 6) + 0.0)

    assert fingerprint(ours) == fingerprint(theirs)
    assert ours.dimensions.tolist() == theirs.dimensions.tolist()
    assert sorted(ours.indicators) == sorted(theirs.indicators)


@pytest.mark.slow
def test_gap_still_says_the_same() -> None:
    if shutil.which("gap") is None:
        pytest.fail("GAP is not installed; `apt-get install gap-core` (make slow does it as root)")
    records = run_gap()
    assert set(records) == {path.stem for path in FIXTURES}
    for path in FIXTURES:
        validate(records[path.stem])
        fresh, stored = compact(records[path.stem]), load(path)
        for either in (fresh, stored):
            either.pop("gap_version")  # another version must agree on the mathematics only
        assert fresh == stored
        table = np.array(records[path.stem]["table"])
        assert np.array_equal(table, rebuild_table(stored))
        matched(character_table(Group(path.stem, table)), gap_values(stored, Group(path.stem, table)))


@given(any_groups)
def test_orthogonality(group: Group) -> None:
    table = character_table(group)
    weighted = table.values * group.class_sizes
    rows = weighted @ table.values.conj().T / group.order
    columns = table.values.conj().T @ weighted / group.order
    assert np.abs(rows - np.eye(len(rows))).max() < 1e-12
    assert np.abs(columns - np.eye(len(columns))).max() < 1e-12
    assert (table.dimensions**2).sum() == group.order
    assert (group.order % table.dimensions == 0).all()
    assert np.allclose(table.values[0], 1)


@given(any_groups)
def test_indicators(group: Group) -> None:
    table = character_table(group)
    everyone = np.arange(group.order)
    squares = group.class_of[group.table[everyone, everyone]]
    assert np.allclose(table.values[:, squares].sum(axis=1) / group.order, table.indicators)
    # Frobenius and Schur: Σ ν d counts the solutions of g² = e.
    solutions = (group.table[everyone, everyone] == group.identity).sum()
    assert (table.indicators * table.dimensions).sum() == solutions
    assert np.array_equal(table.conjugates == np.arange(len(table.values)), table.indicators != 0)


@given(named_groups)
def test_relabelling_changes_nothing(group: Group) -> None:
    new_label = np.random.default_rng(group.order).permutation(group.order)
    table, other = character_table(group), character_table(group.relabelled(new_label))
    as_functions = table.values[:, group.class_of]
    relabelled = other.values[:, other.group.class_of][:, new_label]
    overlap = np.abs(as_functions.conj() @ relabelled.T) / group.order
    assert np.allclose(overlap.max(axis=1), 1)


def test_names_of_irreps() -> None:
    assert character_table(named_group("Z5")).labels == ("0", "1", "2", "3", "4")
    assert set(character_table(named_group("S4")).labels) == {"(4)", "(3,1)", "(2,2)", "(2,1,1)", "(1,1,1,1)"}
    assert character_table(named_group("Q8")).labels == ("d1.1", "d1.2", "d1.3", "d1.4", "d2.1")


def test_cyclic_characters_are_the_roots_of_unity() -> None:
    group = named_group("Z12")
    k, g = np.meshgrid(np.arange(12), np.arange(12), indexing="ij")
    assert np.allclose(character_table(group).values[:, group.class_of], np.exp(2j * np.pi * k * g / 12), atol=1e-14)


def test_young_labels_are_the_known_ones() -> None:
    table = character_table(named_group("S5"))
    degrees = dict(zip(table.labels, table.dimensions.tolist(), strict=True))
    assert degrees == {
        "(5)": 1, "(4,1)": 4, "(3,2)": 5, "(3,1,1)": 6, "(2,2,1)": 5, "(2,1,1,1)": 4, "(1,1,1,1,1)": 1
    }  # fmt: skip
    transposition = table.group.class_of[table.group.elements.index("21345")]
    # on a transposition (4,1) has fixed points − 1 = 2, and (1,1,1,1,1) is the sign
    on_it = dict(zip(table.labels, table.values[:, transposition].real.round().astype(int).tolist(), strict=True))
    assert (on_it["(4,1)"], on_it["(2,1,1,1)"], on_it["(1,1,1,1,1)"]) == (2, -2, -1)
