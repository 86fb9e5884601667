import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope.errors import InputError
from grokscope.tasks import named_task, shuffled_labels, split


@given(st.sampled_from(["add_mod97", "div_mod11", "S4"]), st.floats(0.05, 0.95), st.integers(0, 2**63 - 1))
def test_a_split_covers_every_pair_once(name: str, fraction: float, seed: int) -> None:
    task = named_task(name)
    parts = split(task, fraction, seed)
    assert sorted([*parts.train, *parts.validation]) == list(range(len(task.inputs)))
    assert abs(parts.train.size - fraction * len(task.inputs)) <= 1
    assert np.flatnonzero(parts.mask).tolist() == sorted(parts.train)


def test_golden_values() -> None:
    parts = split(named_task("add_mod97"), 0.3, seed=42)
    assert parts.train.size == 2822
    assert parts.train[:8].tolist() == [403, 4561, 5143, 5868, 7970, 837, 7570, 9170]
    assert split(named_task("S5"), 0.7, seed=0).train[:4].tolist() == [6918, 6533, 3556, 13650]


def test_labels_are_drawn_apart_from_the_split() -> None:
    task = named_task("add_mod97")
    labels = shuffled_labels(task, seed=42)
    assert labels[:8].tolist() == [85, 2, 46, 34, 91, 65, 59, 59]
    parts = split(task, 0.3, seed=42)
    assert not np.array_equal(labels, task.answers[np.concatenate([parts.train, parts.validation])])


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_is_a_word_of_63_bits(seed: int) -> None:
    for stream, draw in (("split", lambda: split(named_task("Z5"), 0.5, seed)),
                         ("labels", lambda: shuffled_labels(named_task("Z5"), seed))):  # fmt: skip
        with pytest.raises(InputError, match=rf"the seed of the {stream} must lie in \[0, 2\^63\), got {seed}"):
            draw()


def test_something_is_always_left_to_validate_on() -> None:
    assert split(named_task("Z5"), 0.9999999999999999, 0).validation.size == 1


def test_the_fraction_is_read_as_written() -> None:
    assert split(named_task("Z10"), 0.29, 0).train.size == 29  # 0.29 * 100 is 28.999999999999996


def test_shuffled_labels_keep_their_counts_and_lose_the_rule() -> None:
    task = named_task("add_mod97")
    labels = shuffled_labels(task, 3)
    assert np.array_equal(np.bincount(labels), np.bincount(task.answers))
    assert abs((labels == task.answers).mean() - 1 / 97) < 0.01
    assert not np.array_equal(labels, shuffled_labels(task, 4))


@pytest.mark.parametrize(
    ("fraction", "sentence"),
    [
        (1.0, "train_fraction must lie in (0, 1), got 1.0"),
        (0.01, "train_fraction 0.01 of the 25 rows of Z5 leaves no training row"),
    ],
)
def test_bad_fractions(fraction: float, sentence: str) -> None:
    with pytest.raises(InputError) as rejection:
        split(named_task("Z5"), fraction, 0)
    assert sentence in str(rejection.value)
