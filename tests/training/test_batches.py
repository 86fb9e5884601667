from functools import lru_cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_runs import PlainRun, small_run

from grokscope.randomness import bits, permutation
from grokscope.training.batches import batches

whole_seeds = st.integers(0, 2**63 - 1)


def plain_batch(seed: int, step: int, count: int, size: int, replacement: bool) -> list[int]:
    """The definition, for one run and one step."""
    if replacement:
        words = bits(torch.tensor(seed), "order", torch.tensor(step), size).tolist()
        return [(word % 2**64 >> 1) % 2**62 % count for word in words]
    epoch = batch = 0
    while True:  # epoch after epoch, cut after cut
        order = order_of(seed, epoch, count)
        for start in range(0, count, size):
            if batch == step:
                return order[start : start + size]
            batch += 1
        epoch += 1


@lru_cache(maxsize=10_000)
def order_of(seed: int, epoch: int, count: int) -> list[int]:
    return permutation(torch.tensor(seed), "order", torch.tensor(epoch), count).tolist()


@settings(max_examples=50)
@given(
    st.lists(st.tuples(whole_seeds, st.integers(0, 30)), min_size=1, max_size=3),
    st.integers(1, 12),
    st.integers(1, 20),
    st.integers(1, 20),
    st.booleans(),
)
def test_batches_equal_a_loop(
    runs: list[tuple[int, int]], steps: int, count: int, size: int, replacement: bool
) -> None:
    size = min(size, count)
    seeds, first = (torch.tensor(column) for column in zip(*runs, strict=True))
    rows, used = batches(seeds, first, steps, count, size, replacement)
    assert rows.shape == (steps, len(runs), size)
    assert used.shape == (steps, len(runs))
    assert rows.min() >= 0
    assert rows.max() < count  # rows past the used ones are read too, and must exist
    for slot, (seed, start) in enumerate(runs):
        for step in range(steps):
            expected = plain_batch(seed, start + step, count, size, replacement)
            assert rows[step, slot, : used[step, slot]].tolist() == expected


@pytest.mark.parametrize("count", range(1, 7))
def test_every_place_in_an_epoch_can_be_the_first(count: int) -> None:
    first = range(9)  # each run begins elsewhere
    for size in range(1, count + 1):
        for steps in range(1, 8):
            rows, used = batches(torch.full((9,), 5), torch.tensor(first), steps, count, size, False)
            for slot, start in enumerate(first):
                found = [rows[step, slot, : used[step, slot]].tolist() for step in range(steps)]
                assert found == [plain_batch(5, start + step, count, size, False) for step in range(steps)]


@given(whole_seeds, st.integers(1, 40), st.integers(1, 40), st.integers(0, 5))
def test_an_epoch_sees_every_pair_once(seed: int, count: int, size: int, epoch: int) -> None:
    size = min(size, count)
    per_epoch = -(-count // size)
    rows, used = batches(torch.tensor([seed]), torch.tensor([epoch * per_epoch]), per_epoch, count, size, False)
    seen = [row for step in range(per_epoch) for row in rows[step, 0, : used[step, 0]].tolist()]
    assert sorted(seen) == list(range(count))
    assert used[-1, 0] == count - (per_epoch - 1) * size


def test_epochs_differ() -> None:
    rows, _ = batches(torch.tensor([3]), torch.tensor([0]), 4, 50, 50, False)
    assert len({tuple(rows[step, 0].tolist()) for step in range(4)}) == 4


def test_replacement_draws_every_row_equally_often() -> None:
    rows, used = batches(torch.tensor([3]), torch.tensor([0]), 400, 7, 16, True)
    assert (used == 16).all()
    shares = torch.bincount(rows.flatten(), minlength=7) / rows.numel()
    assert shares.tolist() == pytest.approx([1 / 7] * 7, abs=4 * (6 / 49 / 6400) ** 0.5)


def test_the_plain_loop_of_these_tests_cuts_the_same_batches() -> None:
    run = small_run("add_mod7", 11)
    plain = PlainRun(run)
    assert [plain.batch(step) for step in range(7)] == [plain_batch(11, step, 24, 16, False) for step in range(7)]
