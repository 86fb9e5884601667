"""Strong decay that waits until the training set is learnt: by the log alone, trained, resumed, forked and stacked."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grokscope.errors import InputError
from grokscope.jobs import Stopped, run_all, state_at
from grokscope.runs import RunFolder, Store, run_name
from grokscope.specs import Architecture, Cadence, Fork, Release, RunSpec, Training
from grokscope.steering import ReleasePhase, released
from stacks import train_stack

NAN = float("nan")
SIGNS = ("generalization", "norm_slows", "norm_target", "accuracy_breaks", "loss_rises")
GENTLE = Release(at=("generalization", "accuracy_breaks", "loss_rises"), gentle=1.0)


def log(**columns: list[float]) -> list[dict[str, float]]:
    """One evaluation every 50 steps."""
    length = len(next(iter(columns.values())))
    return [{"step": 50 * i, **{name: own[i] for name, own in columns.items()}} for i in range(length)]


def changes(release: Release, seen: list[dict[str, float]], **options: Any) -> list[tuple[int, float, str]]:
    found = released(release, 5.0, seen, **options)
    return [(one.step, one.weight_decay, one.phase.name) for one in found.changes]


def test_decay_is_strong_from_when_the_training_set_is_learnt_until_it_generalises() -> None:
    seen = log(train_accuracy=[0.1, 0.9, 0.99, 1.0, 1.0, 1.0], validation_accuracy=[0.0, 0.1, 0.1, 0.2, 0.96, 0.3])
    assert changes(GENTLE, seen) == [(0, 1.0, "GENTLE"), (100, 5.0, "LEARNT"), (200, 1.0, "GENERALIZATION")]
    assert changes(replace(GENTLE, gentle=None), seen) == [(200, 1.0, "GENERALIZATION")]
    assert released(GENTLE, 5.0, seen[:2]).phase is ReleasePhase.GENTLE
    assert not ReleasePhase.GENTLE.is_sign
    assert not ReleasePhase.LEARNT.is_sign


@pytest.mark.parametrize(
    ("column", "values"), [("train_loss", [4.0, 0.11, 0.1]), ("train_accuracy", [0.0, 0.989, 0.99])]
)
def test_it_is_learnt_by_what_is_known(column: str, values: list[float]) -> None:
    assert changes(GENTLE, log(**{column: values}))[1:] == [(100, 5.0, "LEARNT")]


def test_what_generalises_before_it_is_learnt_is_never_decayed_strongly() -> None:
    both = log(train_accuracy=[0.1, 0.9, 1.0], validation_accuracy=[0.1, 0.96, 0.9])
    assert changes(GENTLE, both) == [(0, 1.0, "GENTLE"), (50, 1.0, "GENERALIZATION")]
    together = log(train_accuracy=[0.1, 1.0, 1.0], validation_accuracy=[0.1, 0.96, 0.9])
    assert changes(GENTLE, together)[-1] == (50, 1.0, "GENERALIZATION")


@pytest.mark.parametrize("sign", SIGNS[1:])
def test_signs_of_what_strong_decay_does_count_only_once_it_is_in_force(sign: str) -> None:
    """A norm that is small and hardly falls, before and where the set is learnt, is none; what comes later may be."""
    poor, calm = {"train_accuracy": 0.985, "train_loss": 0.2}, {"train_accuracy": 1.0, "train_loss": 0.01}
    norms = [640, 320, 160, 80, 40, 38, 37, 36.5, 36.4, 36.3, 36.3, 36.3]
    seen = [{"step": 50 * i, "norm": norm, **(poor if i < 11 else calm)} for i, norm in enumerate(norms)]
    release = replace(GENTLE, at=(sign,), norm_target=37.0, memorized_loss=0.05, loss_factor=2.0)
    assert changes(release, seen) == [(0, 1.0, "GENTLE"), (550, 5.0, "LEARNT")]
    after = {"norm": 36.3, "train_accuracy": 0.9, "train_loss": 0.5}
    expected = {"norm_target", "accuracy_breaks", "loss_rises"}
    assert (len(changes(release, [*seen, {"step": 600, **after}])) == 3) is (sign in expected)


def test_the_norm_has_to_fall_under_strong_decay_before_it_can_slow() -> None:
    norms = [640, 320, 160, 80, 40, 40, 40, 40, 40, 20, 10, 5, 4.9, 4.9, 4.9, 4.9, 4.9]
    seen = log(norm=norms, train_accuracy=[0.1] * 4 + [1.0] * 13)
    at_once = changes(Release(at=("norm_slows",)), seen)
    late = changes(Release(at=("norm_slows",), gentle=1.0), seen)
    assert at_once == [(400, 1.0, "NORM_SLOWS")]
    assert late == [(0, 1.0, "GENTLE"), (200, 5.0, "LEARNT"), (750, 1.0, "NORM_SLOWS")]


def test_what_is_not_learnt_is_eased_and_the_strong_decay_with_it() -> None:
    easing = replace(GENTLE, patience=100)
    poor = log(train_accuracy=[0.1, 0.1, 0.1, 0.1, 0.1, 1.0, 1.0, 0.9])
    gently = [(0, 1.0, "GENTLE"), (100, 0.5, "UNLEARNT"), (200, 0.25, "UNLEARNT")]
    assert changes(easing, poor) == [*gently, (250, 1.25, "LEARNT"), (350, 0.25, "ACCURACY_BREAKS")]
    assert changes(replace(easing, ease=0.0), poor)[1:3] == [(100, 0.0, "UNLEARNT"), (350, 0.0, "ACCURACY_BREAKS")]


def test_the_wait_for_progress_begins_anew_with_the_strong_decay() -> None:
    slow = log(train_accuracy=[0.1, 0.1, 1.0, *[1.0] * 6], validation_accuracy=[0.1] * 9)
    found = changes(replace(GENTLE, patience=150), slow)
    assert found == [(0, 1.0, "GENTLE"), (100, 5.0, "LEARNT"), (250, 2.5, "STALLED"), (400, 1.25, "STALLED")]


def test_nothing_known_of_the_training_set_leaves_decay_gentle() -> None:
    for rows in (log(validation_accuracy=[0.1] * 9), log(train_accuracy=[NAN] * 9, train_loss=[NAN] * 9)):
        assert changes(replace(GENTLE, patience=100), rows) == [(0, 1.0, "GENTLE")]


def test_without_a_sign_what_has_become_strong_stays_so() -> None:
    seen = log(train_accuracy=[0.1, 1.0, 0.5], validation_accuracy=[0.1, 0.2, 1.0])
    assert changes(Release(at=(), gentle=1.0), seen) == [(0, 1.0, "GENTLE"), (50, 5.0, "LEARNT")]


def test_what_is_asked_to_be_weaker_than_gentle_stays() -> None:
    seen = log(train_accuracy=[0.1, 1.0, 1.0])
    assert released(GENTLE, 0.5, seen).changes == ()


def test_a_fork_goes_on_with_the_decay_in_force() -> None:
    """What is strong, eased or let go is not gentle again; what is gentle waits until it is learnt, as its parent."""

    def begun(decay: float, accuracies: list[float]) -> list[tuple[int, float, str]]:
        rows = log(train_accuracy=accuracies)
        return changes(
            GENTLE, [{**row, "step": row["step"] + 300, "weight_decay": decay} for row in rows], is_fork=True
        )

    assert begun(5.0, [0.98, 0.98, 1.0]) == []
    assert begun(5.0, [1.0, 1.0, 0.96]) == [(400, 1.0, "ACCURACY_BREAKS")]
    assert begun(2.5, [0.5, 1.0, 1.0]) == []
    assert begun(1.0, [1.0, 1.0, 1.0]) == [], "let go"
    assert begun(1.0, [0.5, 0.9, 1.0]) == [(400, 5.0, "LEARNT")]
    assert begun(0.5, [0.5, 0.9, 1.0]) == [(400, 5.0, "LEARNT")]
    first = [{**row, "weight_decay": 5.0} for row in log(train_accuracy=[0.0, 1.0])]
    assert changes(GENTLE, first, is_fork=True) == [(0, 1.0, "GENTLE"), (50, 5.0, "LEARNT")]


@given(
    st.lists(
        st.tuples(*(st.floats(0, 1) for _ in range(2)), st.floats(0, 3), st.floats(1, 100)), min_size=1, max_size=20
    ),
    st.sets(st.sampled_from(SIGNS), min_size=1),
    st.sampled_from((0, 50, 100)),
)
def test_it_is_decided_once_begins_once_and_goes_down_afterwards(
    rows: list[tuple[float, ...]], signs: set[str], patience: int
) -> None:
    """Every beginning of a log gives a beginning of the changes: so a restart changes nothing."""
    names = ("train_accuracy", "validation_accuracy", "train_loss", "norm")
    seen = log(**{name: [row[i] for row in rows] for i, name in enumerate(names)})
    release = Release(at=tuple(sorted(signs)), memorized=0.5, accuracy_drop=0.1, patience=patience, gentle=1.0)
    whole = released(release, 5.0, seen)
    for end in range(len(seen) + 1):
        part = released(release, 5.0, seen[:end])
        assert whole.changes[: len(part.changes)] == part.changes
        is_learnt = any(row["train_accuracy"] >= 0.5 or row["train_loss"] <= 0.1 for row in seen[:end])
        assert part.weight_decay <= (5.0 if is_learnt or not end else 1.0)
    begins = [i for i, one in enumerate(whole.changes) if one.phase is ReleasePhase.LEARNT]
    decays = [one.weight_decay for one in whole.changes]
    assert len(begins) <= 1
    for part in (decays[: begins[0]], decays[begins[0] :]) if begins else (decays,):
        assert part == sorted(part, reverse=True)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Release(gentle=-1.0), "gentle must be at least 0, got -1"),
        (lambda: Release(gentle=1.0, anneal_steps=100), "gentle must be left out where λ is annealed"),
    ],
)
def test_what_makes_no_sense_is_rejected(make: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()


def test_what_has_no_gentle_start_is_named_as_it_was_before_there_was_one() -> None:
    assert Release().content_hash == "a9f6b17f575d78da"
    assert RunSpec(release=Release(patience=1000)).content_hash == "c10e759fc9235f2e"


# Trained, interrupted, forked and stacked: a few steps, of which some learn "enough".

STEPS = 16
RUN = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=STEPS, batch_size=16, weight_decay=20.0, learning_rate=3e-3, optimizer="muon"),
    release=Release(at=("generalization", "norm_target"), every=2, norm_target=13.5, memorized_loss=2.02, gentle=0.5),
    checkpoints=Cadence(every=6),
    measurements=Cadence(every=4),
    precision="float64",
)


def run(store: Store, spec: RunSpec, **options: object) -> RunFolder:
    run_all([spec], store, compiled=False, **options)
    return store.find(run_name(spec))


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("straight"))
    run(store, RUN)
    return store


def test_a_run_is_trained_as_its_log_says(straight: Store, tmp_path: Path) -> None:
    folder = straight.find(run_name(RUN))
    did = folder.outcome.control
    assert [change["reason"] for change in did["changes"]] == ["gentle", "learnt", "norm_target"]
    assert did == released(RUN.release, 20.0, folder.log()).to_dict()
    (_, gentle), *later = ((change["step"], change["weight_decay"]) for change in did["changes"])
    assert 0 < later[0][0] < later[1][0] < STEPS
    training = replace(RUN.training, weight_decay=gentle, weight_decay_schedule=tuple(later))
    known = run(Store(tmp_path), replace(RUN, release=None, training=training))
    ends = [state_at(one, STEPS, straight)["weights"] for one in (folder, known)]
    assert torch.equal(*ends)


@pytest.mark.parametrize("often", [1, 3])
def test_resumed_equals_uninterrupted(often: int, straight: Store, tmp_path: Path) -> None:
    store, calls, stops = Store(tmp_path), iter(range(1000)), 0
    while True:
        try:
            run_all([RUN], store, compiled=False, should_stop=lambda: next(calls) % (often + 1) == often)
            break
        except Stopped:
            stops += 1
    assert stops
    files = [
        {path.name: path.read_bytes() for path in one.find(run_name(RUN)).path.iterdir()} for one in (store, straight)
    ]
    assert files[0] == files[1]


@pytest.mark.parametrize("step", [0, 3, 6, 8, 9, 11, 12, 13])
def test_an_unchanged_fork_is_its_parent_wherever_it_begins(step: int, straight: Store) -> None:
    """In the gentle phase, where the strong one begins, in it, and after it: also where no state was stored."""
    parent, child = straight.find(run_name(RUN)), run(straight, replace(RUN, fork=Fork(RUN.content_hash, step)))
    assert child.log()[-1]["weight_decay"] == parent.log()[-1]["weight_decay"]
    for name, value in state_at(child, STEPS, straight).items():
        assert torch.equal(value, state_at(parent, STEPS, straight)[name]), name


def test_they_decide_for_their_own_run_in_a_stack(straight: Store, tmp_path: Path) -> None:
    store = Store(tmp_path)
    specs = [RUN, replace(RUN, release=None).with_seed(3), RUN.with_seed(4)]
    train_stack(store, specs)
    for spec in specs:
        stacked, alone = store.find(run_name(spec)), run(straight, spec)
        assert stacked.outcome.control == alone.outcome.control
        ends = [state_at(one, STEPS, where)["weights"] for one, where in ((stacked, store), (alone, straight))]
        assert torch.allclose(*ends, rtol=1e-9, atol=1e-11)
