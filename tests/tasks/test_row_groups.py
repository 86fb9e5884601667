import numpy as np
import pytest

from grokscope.errors import InputError
from grokscope.tasks import HELD_OUT, TRAIN, VALIDATION, RowGroup, Task, split, train_size

ROWS = 20


def task_of(*groups: RowGroup) -> Task:
    return Task("mine", "", np.arange(ROWS) % 3, 3, np.zeros((ROWS, 1), dtype=np.int64), None, 1, groups)


def some(name: str, rule, first: int, last: int, share: float | None = None) -> RowGroup:
    return RowGroup(name, rule, np.arange(first, last), share)


GROUPS = (
    some("facts", "drawn", 0, 10),
    some("more", "drawn", 10, 14, share=0.5),
    some("always", "train", 14, 16),
    some("never", "validation", 16, 17),
    some("far", "held_out", 17, 19),
    some("farther", "held_out", 19, 20),
)


def test_each_rule_says_what_rows_count_as() -> None:
    parts = split(task_of(*GROUPS), 0.3, seed=5)
    kinds = parts.kinds
    assert (kinds[14:16] == TRAIN).all()
    assert kinds[16] == VALIDATION
    assert kinds[17:].tolist() == [HELD_OUT, HELD_OUT, HELD_OUT + 1]
    assert (kinds[:10] == TRAIN).sum() == 3
    assert (kinds[10:14] == TRAIN).sum() == 2  # its own share, whatever the run's is
    assert set(kinds[:14]) == {TRAIN, VALIDATION}
    assert len(parts.train) == train_size(task_of(*GROUPS), 0.3) == 7
    assert {name: rows.tolist() for name, rows in parts.held_out.items()} == {"far": [17, 18], "farther": [19]}
    assert parts.mask.tolist() == (kinds == TRAIN).tolist()


def test_what_is_drawn_depends_on_the_seed_alone() -> None:
    task = task_of(*GROUPS)
    drawn = [split(task, 0.5, seed).train.tolist() for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    others = split(task_of(some("all", "drawn", 0, ROWS)), 0.5, 0).train
    assert len(others) == 10


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ([some("a", "drawn", 0, 12), some("b", "train", 11, 20)], "must not overlap, got row 11 in 'a' and 'b'"),
        ([some("a", "drawn", 0, 19)], "each row of mine must belong to a group, got row 19 in none"),
        ([some("a", "drawn", 0, 10), some("a", "train", 10, 20)], "mine has two groups of rows with the name 'a'"),
        ([some("a", "train", 0, 20)], "mine has no row for validation"),
        ([some("a", "validation", 0, 20)], "mine has no row to train on"),
        ([some("Far out", "held_out", 0, 20)], "needs a name of lower-case letters, digits and _, not train or"),
        ([some("train", "held_out", 0, 20)], "needs a name of lower-case letters, digits and _, not train or"),
        ([some("a", "drawn", 0, 21)], "rows of the group 'a' of mine must lie in 0 … 19"),
        ([some("a", "drawn", 0, 20), some("b", "held_out", 0, 0)], "the group 'b' of mine has no row"),
        ([some("a", "drawn", 0, 20, share=1.0)], "the share of the group 'a' of mine must lie in (0, 1), got 1.0"),
    ],
)
def test_groups_that_part_nothing_are_one_sentence(groups, sentence: str) -> None:
    with pytest.raises(InputError) as rejection:
        task_of(*groups)
    assert sentence in str(rejection.value)
    assert "\n" not in str(rejection.value)


def test_a_share_that_leaves_no_validation_is_rejected() -> None:
    task = task_of(some("a", "drawn", 0, 1, share=0.5), some("b", "train", 1, 20))
    assert train_size(task, 0.5) == 19  # none of the single row is drawn
    with pytest.raises(InputError, match="leaves no training row"):
        train_size(task_of(some("a", "drawn", 0, 1), some("b", "validation", 1, 20)), 0.5)
