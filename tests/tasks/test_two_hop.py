from collections import Counter

import numpy as np
import pytest

from grokscope.errors import InputError
from grokscope.tasks import named_task, split

NAME = "twohop_e40_d6_r9_ood0.2"


def facts_of(name: str) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int, int], int]]:
    """Atomic and inferred facts, read from the rows."""
    task = named_task(name)
    assert task.tokens is not None
    padding = task.vocabulary - 2
    atomic, inferred = {}, {}
    for (h, r, second, _), t in zip(task.tokens.tolist(), task.answers.tolist(), strict=True):
        if second == padding:
            atomic[h, r] = t
        else:
            inferred[h, r, second] = t
    return atomic, inferred


def test_every_inferred_fact_follows_from_two_atomic_ones() -> None:
    atomic, inferred = facts_of(NAME)
    assert len(atomic) == 40 * 6
    assert set(Counter(h for h, _ in atomic).values()) == {6}
    assert all(t != h and 0 <= t < 40 <= r < 49 for (h, r), t in atomic.items())
    for (h, first, second), t in inferred.items():
        assert atomic[atomic[h, first], second] == t


def test_groups_are_those_of_two_hops_in_or_out_of_distribution() -> None:
    task = named_task(NAME)
    groups = {group.name: group.rows for group in task.row_groups}
    assert set(groups) == {"inferred", "atomic", "out_of_distribution"}
    atomic, _ = facts_of(NAME)
    assert task.tokens is not None

    def hops(row: int) -> tuple[tuple[int, int], tuple[int, int]]:
        h, first, second, _ = task.tokens[row].tolist()
        return (h, first), (atomic[h, first], second)

    within = {hop for row in groups["inferred"] for hop in hops(row)}
    outside = {hop for row in groups["out_of_distribution"] for hop in hops(row)}
    assert not within & outside
    assert len(outside) <= round(0.2 * len(atomic))
    # Every chain of two facts in distribution is a row.
    known = set(atomic) - outside
    chains = sum((t, r) in within for hop, t in atomic.items() if hop in within for (h, r) in known if h == t)
    assert chains == len(groups["inferred"])


def test_phi_is_inferred_over_atomic_facts_in_distribution() -> None:
    task = named_task("twohop_e100_d10_phi5")
    parts = split(task, 0.3, seed=1)
    inferred = next(group for group in task.row_groups if group.name == "inferred").rows
    trained = np.isin(parts.train, inferred).sum()
    assert abs(trained / 950 - 5) < 0.01  # 950 of 1,000 facts are in distribution
    atomic = next(group for group in task.row_groups if group.name == "atomic").rows
    assert np.isin(atomic, parts.train).all()


def test_graphs_depend_on_their_seed() -> None:
    one, other = (named_task(f"twohop_e20_d3{seed}") for seed in ("", "_seed1"))
    assert not np.array_equal(one.tokens, other.tokens)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("twohop_e20_d5_phi50", "phi of 'twohop_e20_d5_phi50' must lie between 0 and"),
        ("twohop_e20_d5_r4", "d facts of an entity need as many relations in 'twohop_e20_d5_r4', got 4"),
        ("twohop_e20_d1_ood0.9", "has no inferred fact in distribution: lower ood"),
        ("twohop_e90000_d900_r900", "a task may have at most 4,194,304 rows"),
        ("twohop_e20_d5_phi2.50", "is written with phi2.5, and not with 2.50"),
        ("twohop_e20_d5_ood0.05", "ood0.05 is the default and is left out of a name"),
    ],
)
def test_bad_names_are_one_sentence(name: str, sentence: str) -> None:
    with pytest.raises(InputError) as rejection:
        named_task(name)
    assert sentence in str(rejection.value)
