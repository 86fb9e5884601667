"""Runs told apart and selected by their settings."""

from dataclasses import replace
from pathlib import Path

import pytest

from grokscope.errors import InputError
from grokscope.runs import Store
from grokscope.runs.settings import differing, is_selected, settings_of, suffixes
from grokscope.specs import Architecture, Fork, RunSpec

SPEC = RunSpec().with_seed(1)
STRONG = SPEC.with_values({"weight_decay": 2.0})
WIDE = SPEC.with_values({"width": 64})
FORK = replace(STRONG, fork=Fork(SPEC.content_hash, 1000))
LATE = replace(STRONG, fork=Fork(SPEC.content_hash, 2000))


def test_every_setting_has_a_name() -> None:
    found = settings_of(FORK)
    assert (found["weight_decay"], found["layers"], found["seeds.split"], found["fork.step"]) == (2.0, 2, 1, 1000)
    assert found == settings_of(FORK.to_dict())
    assert found.keys() == settings_of(SPEC).keys(), "and those of a part that a run does not have are none"
    assert "fork" not in found
    assert settings_of(SPEC)["fork.step"] is None


def test_what_differs_tells_runs_apart() -> None:
    assert differing([SPEC, STRONG]) == {"weight_decay": [1.0, 2.0]}
    assert differing([SPEC, SPEC]) == {}
    assert suffixes([SPEC, STRONG]) == [":weight_decay=1", ":weight_decay=2"]
    assert suffixes([FORK, LATE]) == [":fork.step=1000", ":fork.step=2000"]
    both = [SPEC, STRONG, WIDE, WIDE.with_values({"weight_decay": 2.0})]
    found = suffixes(both)
    assert found is not None
    assert sorted(found[0].split(":")[1:]) == ["weight_decay=1", "width=128"]
    for place, suffix in enumerate(found):
        assert [is_selected(spec, suffix.split(":")[1:]) for spec in both] == [i == place for i in range(4)]


def test_runs_that_differ_in_too_much_are_not_told_apart() -> None:
    grid = [
        replace(SPEC, architecture=Architecture(layers=a, heads=b, width=c, mlp_width=d))
        for a in (1, 2)
        for b in (1, 2)
        for c in (8, 16)
        for d in (4, 5)
    ]
    assert suffixes(grid) is None


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("weight_decay=2", True),
        ("weight_decay=2.0", True),
        ("weight_decay=2e0", True),
        ("weight_decay=20", False),
        ("weight_decay=two", False),
        ("fork.step=1000", True),
        ("fork.step=none", False),
        ("trigger.at_least=none", True),
        ("shuffled_labels=false", True),
        ("task=ADD_mod97", True),
        ("task=", False),
    ],
)
def test_a_condition_compares_numbers_as_numbers(condition: str, holds: bool) -> None:
    assert is_selected(FORK, [condition]) is holds


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        ("weight_deacy=2", "a run has no setting 'weight_deacy'; did you mean 'weight_decay'"),
        ("weight_decay", "a run is selected as in NAME:weight_decay=2, got 'weight_decay'"),
        ("", "got ''"),
    ],
)
def test_a_condition_that_means_nothing_is_rejected(condition: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        is_selected(SPEC, [condition])


def test_a_store_finds_runs_by_what_differs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for spec in (SPEC, STRONG, WIDE, FORK, LATE):
        store.add(spec)
    with pytest.raises(InputError, match="'add_mod97_s1' names 5 runs, such as ") as caught:
        store.find("add_mod97_s1")
    first, *_ = str(caught.value).partition("such as ")[2].split(", ")
    assert store.find(first).spec in (SPEC, STRONG, WIDE, FORK, LATE), "the names in the sentence can be used"
    assert store.find("add_mod97_s1:weight_decay=2").spec == STRONG, "the run, not its forks"
    assert store.find("add_mod97_s1:width=64").spec == WIDE
    assert store.find("add_mod97_s1:weight_decay=2:fork.step=2000").spec == LATE
    for name, sentence in [
        ("add_mod97_s1:weight_decay=3", "there is no run 'add_mod97_s1:weight_decay=3'"),
        ("add_mod97_s1:wieght=3", "a run has no setting 'wieght'"),
        ("add_mod97_s1:seeds.split=1", "names 5 runs"),
    ]:
        with pytest.raises(InputError, match=sentence):
            store.find(name)


def test_many_runs_are_named_without_reading_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grokscope.runs.store.MOST_COMPARED", 2)
    store = Store(tmp_path)
    names = [store.add(SPEC.with_seed(seed)).name for seed in range(3)]
    with pytest.raises(InputError, match=f"such as {names[0]}, {names[1]} and {names[2]}"):
        store.find("add_mod97")
