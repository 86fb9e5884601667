from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope.specs import Trigger
from grokscope.steering import Decision, decision, drawn_step

NAN = float("nan")


def evaluations(
    fsd: Sequence[float], validation: Sequence[float] = (), train: Sequence[float] = ()
) -> list[dict[str, float]]:
    """One evaluation every 100 steps."""
    rest = [0.0] * len(fsd)
    columns = zip(fsd, validation or rest, train or rest, strict=True)
    return [
        {"step": 100 * i, "fsd": f, "validation_accuracy": v, "train_accuracy": t}
        for i, (f, v, t) in enumerate(columns)
    ]


@pytest.mark.parametrize(
    ("trigger", "fired"),
    [
        (Trigger(), 300),
        (Trigger(at_least=0.5), 200),
        (Trigger("train_accuracy"), 100),
        (Trigger("step"), 300),
        (Trigger("step", at_least=150), 200),
        (Trigger("random"), 400),
    ],
    ids=["fsd", "fsd 0.5", "memorised", "step 300", "step 150", "random"],
)
def test_each_signal_fires_at_the_first_look_that_reaches_it(trigger: Trigger, fired: int) -> None:
    seen = evaluations([NAN, 0.2, 0.6, 0.8, 0.1], train=[0.0, 0.99, 1.0, 1.0, 1.0])
    assert decision(trigger, 1.0, seen, at_random=301) == Decision(3.0, fired, None)
    assert decision(trigger, 1.0, seen[: fired // 100], at_random=301) == Decision(1.0, None, None)


def test_once_fired_it_stays_fired_whatever_the_signal_does() -> None:
    assert decision(Trigger(weight_decay=5.0), 1.0, evaluations([0.9, 0.1, NAN])).weight_decay == 5.0


def test_it_is_restored_after_grokking_only_where_asked_and_only_after_it_fired() -> None:
    grokked_later = evaluations([0.1, 0.9, 0.9, 0.9], validation=[0.96, 0.1, 0.5, 0.95])
    assert decision(Trigger(), 1.0, grokked_later) == Decision(3.0, 100, None)
    assert decision(Trigger(restore_after_grokking=True), 1.0, grokked_later) == Decision(1.0, 100, 300)
    assert decision(Trigger(restore_after_grokking=True), 1.0, grokked_later[:3]) == Decision(3.0, 100, None)


@given(st.lists(st.floats(0, 1) | st.just(NAN), max_size=8), st.lists(st.floats(0, 1) | st.just(NAN), max_size=8))
def test_what_is_seen_later_never_moves_a_firing(early: list[float], late: list[float]) -> None:
    before, after = (decision(Trigger(), 1.0, evaluations(values)) for values in (early, early + late))
    if before.fired_at is not None:
        assert after == before
    elif after.fired_at is not None:
        assert after.fired_at >= 100 * len(early)


@given(st.integers(0, 2**63 - 1), st.integers(1, 20_000))
def test_a_random_step_lies_within_the_run(seed: int, last: int) -> None:
    assert 1 <= drawn_step(seed, last) <= last
    assert drawn_step(seed, last) == drawn_step(seed, last)


def test_random_steps_are_spread_over_the_run() -> None:
    drawn = [drawn_step(seed, 1000) for seed in range(2000)]
    assert abs(sum(drawn) / len(drawn) - 500.5) < 4 * 289 / 2000**0.5
