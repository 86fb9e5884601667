import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope.errors import InputError
from grokscope.specs import ClosedLoop, RunSpec, Training, Trigger
from grokscope.steering import Phase, controlled

NAN = float("nan")
DOUBLING = ClosedLoop(factor=2.0, highest=6.0, back_off=0.5)


def evaluations(
    train: Sequence[float], loss: Sequence[float] = (), validation: Sequence[float] = ()
) -> list[dict[str, int | float]]:
    """One evaluation every 100 steps."""
    columns = zip(train, loss or [0.01] * len(train), validation or [0.0] * len(train), strict=True)
    return [
        {"step": 100 * i, "train_accuracy": t, "train_loss": x, "validation_accuracy": v}
        for i, (t, x, v) in enumerate(columns)
    ]


def path(settings: ClosedLoop, seen: list[dict[str, int | float]], begins: float = 1.0) -> list[float]:
    """λ after each evaluation, each found anew from the log until there."""
    return [controlled(settings, begins, seen[: i + 1]).weight_decay for i in range(len(seen))]


def test_it_waits_for_the_training_set_then_rises_to_its_limit_and_holds() -> None:
    seen = evaluations([0.1, 0.9, 1.0, 1.0, 1.0, 1.0])
    assert path(DOUBLING, seen) == [1.0, 1.0, 2.0, 4.0, 6.0, 6.0]
    assert controlled(DOUBLING, 1.0, seen[:2]).phase is Phase.WAITING
    assert controlled(DOUBLING, 1.0, seen[:3]).phase is Phase.RAISING
    found = controlled(DOUBLING, 1.0, seen)
    assert found.phase is Phase.HOLDING
    assert [(change.step, change.weight_decay) for change in found.changes] == [(200, 2.0), (300, 4.0), (400, 6.0)]


def test_patience_counts_calm_looks_in_a_row() -> None:
    settings = ClosedLoop(factor=2.0, highest=6.0, patience=2)
    assert path(settings, evaluations([1.0, 0.9, 1.0, 1.0, 1.0, 1.0])) == [1.0, 1.0, 1.0, 2.0, 2.0, 4.0]


@pytest.mark.parametrize("bad", [{"train": 0.97}, {"loss": 0.2}, {"loss": NAN}, {"train": NAN}])
def test_a_spike_halves_it_and_what_was_too_much_is_not_tried_again(bad: dict[str, float]) -> None:
    train, loss = [1.0] * 7, [0.01] * 7
    train[2], loss[2] = bad.get("train", 1.0), bad.get("loss", 0.01)
    seen = evaluations(train, loss)
    # 4 was too much: 2 is as far as it goes from there on.
    assert path(DOUBLING, seen) == [2.0, 4.0, 2.0, 2.0, 2.0, 2.0, 2.0]
    assert controlled(DOUBLING, 1.0, seen[:3]).phase is Phase.BACKING_OFF
    assert controlled(DOUBLING, 1.0, seen).phase is Phase.HOLDING


def test_a_lasting_collapse_brings_it_back_to_where_it_began_and_no_lower() -> None:
    seen = evaluations([1.0, 1.0, 0.9, 0.5, 0.5, 0.5, 1.0, 1.0])
    assert path(DOUBLING, seen) == [2.0, 4.0, 2.0, 1.0, 1.0, 1.0, 2.0, 2.0]


def test_grokking_restores_it_for_good() -> None:
    seen = evaluations([1.0, 1.0, 1.0, 1.0, 0.5], validation=[0.1, 0.5, 0.95, 0.2, 0.1])
    assert path(DOUBLING, seen) == [2.0, 4.0, 1.0, 1.0, 1.0]
    found = controlled(DOUBLING, 1.0, seen)
    assert found.phase is Phase.RESTORED
    assert found.changes[-1].step == 200
    never = ClosedLoop(factor=2.0, highest=6.0, restore_after_grokking=False)
    assert path(never, seen)[2] == 6.0


def test_without_a_validation_set_it_works_and_restores_nothing() -> None:
    seen = [
        {key: value for key, value in row.items() if key != "validation_accuracy"} for row in evaluations([1.0] * 4)
    ]
    assert path(DOUBLING, seen) == [2.0, 4.0, 6.0, 6.0]


def test_it_begins_with_the_decay_in_force_at_its_first_look() -> None:
    seen = [row | {"weight_decay": 3.0} for row in evaluations([0.5, 1.0])]
    assert path(DOUBLING, seen) == [3.0, 6.0]
    assert controlled(DOUBLING, 1.0, []).weight_decay == 1.0


shares = st.floats(0, 1) | st.just(NAN)
logs = st.lists(st.tuples(shares, st.floats(0, 10) | st.just(NAN), shares), max_size=12).map(
    lambda rows: evaluations(*(list(column) for column in zip(*rows, strict=True))) if rows else []
)


@given(logs, logs)
def test_what_is_seen_later_changes_nothing_before_and_bounds_hold(early: list, late: list) -> None:
    late = [row | {"step": row["step"] + 100 * len(early)} for row in late]
    before, after = (controlled(DOUBLING, 1.0, seen) for seen in (early, early + late))
    assert after.changes[: len(before.changes)] == before.changes
    assert all(1.0 <= change.weight_decay <= 6.0 for change in after.changes)


@given(logs, shares)
def test_validation_accuracy_below_grokking_changes_nothing(seen: list, value: float) -> None:
    blind = [row | {"validation_accuracy": 0.0} for row in seen]
    known = [row | {"validation_accuracy": min(value, 0.94) if not math.isnan(value) else NAN} for row in seen]
    assert controlled(DOUBLING, 1.0, known) == controlled(DOUBLING, 1.0, blind)


def test_what_it_did_can_be_stored() -> None:
    seen = evaluations([1.0, 0.5], validation=[0.0, 0.0])
    assert controlled(DOUBLING, 1.0, seen).to_dict() == {
        "phase": "backing_off",
        "weight_decay": 1.0,
        "changes": [
            {"step": 0, "weight_decay": 2.0, "reason": "raising"},
            {"step": 100, "weight_decay": 1.0, "reason": "backing_off"},
        ],
    }


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ClosedLoop(factor=1.0), "factor must be above 1, got 1"),
        (lambda: ClosedLoop(back_off=1.0), r"back_off must lie in \[0, 1\), got 1"),
        (lambda: ClosedLoop(patience=0), "patience must be at least 1, got 0"),
        (lambda: ClosedLoop(train_loss=0.0), "train_loss must be positive, got 0"),
        (lambda: RunSpec(control=ClosedLoop(), trigger=Trigger()), "not two of them"),
        (lambda: RunSpec(control=ClosedLoop(), training=Training(weight_decay_schedule=((5, 2.0),))), "not two of"),
        (lambda: RunSpec(control=ClosedLoop(highest=2000.0)), "highest must stay below 1, got 2"),
        (lambda: RunSpec(control=ClosedLoop(), training=Training(weight_decay=9.0)), "at least weight_decay 9, got 5"),
        (lambda: RunSpec(control=ClosedLoop(), training=Training(weight_decay=0.0)), "weight_decay must be positive"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()
