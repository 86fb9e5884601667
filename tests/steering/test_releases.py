"""Strong decay is let go at the sign that the log shows, as a pure function of it, alone, resumed and in a stack."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grokscope.errors import InputError
from grokscope.jobs import Stopped, run_all, state_at
from grokscope.runs import RunFolder, Store, run_name
from grokscope.specs import Architecture, Cadence, ClosedLoop, Fork, Release, RunSpec, Training, Trigger
from grokscope.steering import ReleasePhase, released
from stacks import train_stack

NAN = float("nan")
SIGNS = ("generalization", "norm_slows", "norm_target", "accuracy_breaks", "loss_rises")


def log(**columns: list[float]) -> list[dict[str, float]]:
    """One evaluation every 50 steps; what is not named is calm."""
    length = len(next(iter(columns.values())))
    calm = {"train_accuracy": 1.0, "train_loss": 0.01, "validation_accuracy": 0.2, "norm": 50.0}
    return [{"step": 50 * i, **calm, **{name: own[i] for name, own in columns.items()}} for i in range(length)]


def released_at(release: Release, seen: list[dict[str, float]]) -> int | None:
    found = released(release, 5.0, seen)
    return found.changes[-1].step if found.phase.is_sign else None


@pytest.mark.parametrize(
    ("sign", "columns", "step"),
    [
        ("generalization", {"validation_accuracy": [0.1, 0.94, 0.95, 0.2]}, 100),
        ("norm_target", {"norm": [60.0, 20.1, 20.0, 30.0]}, 100),
        ("accuracy_breaks", {"train_accuracy": [0.1, 0.5, 0.99, 0.97, 0.969, 1.0]}, 200),
        ("loss_rises", {"train_loss": [5.0, 0.5, 0.1, 0.3, 0.31, 0.0]}, 200),
        # It falls by half every 50 steps, then by 5 % and less; at first the window still holds fast steps.
        ("norm_slows", {"norm": [640, 320, 160, 80, 40, 38, 37, 36.5, 36.4, 36.3]}, 400),
    ],
)
def test_each_sign_is_seen_where_its_definition_says(sign: str, columns: dict[str, list[float]], step: int) -> None:
    seen = log(**columns)
    assert released_at(Release(at=(sign,)), seen) == step
    assert released(Release(at=(sign,)), 5.0, seen).phase is ReleasePhase[sign.upper()]
    others = tuple(other for other in SIGNS if other != sign)
    assert released_at(Release(at=others), seen) is None
    assert released(Release(at=(sign,)), 5.0, seen[: step // 50]).weight_decay == 5.0


@pytest.mark.parametrize("sign", SIGNS)
def test_what_is_missing_or_no_number_is_no_sign(sign: str) -> None:
    release = Release(at=(sign,))
    assert released_at(release, [{"step": 50 * i} for i in range(9)]) is None
    nothing = [NAN] * 9
    columns = ("validation_accuracy", "norm", "train_accuracy", "train_loss")
    assert released_at(release, log(**dict.fromkeys(columns, nothing))) is None
    assert released_at(release, [{**one, "validation_accuracy": None} for one in log(norm=[50.0] * 9)]) is None


def test_what_was_never_learnt_does_not_break() -> None:
    poor = log(train_accuracy=[0.9, 0.5, 0.1], train_loss=[0.2, 2.0, 5.0])
    assert released_at(Release(at=("accuracy_breaks", "loss_rises", "norm_slows")), poor) is None


def test_a_norm_that_never_fell_does_not_slow() -> None:
    assert released_at(Release(at=("norm_slows",)), log(norm=[50.0] * 12)) is None
    slowly = [50 * math.exp(-0.01 * i) for i in range(12)]  # 4 % in 200 steps: below least_fall
    assert released_at(Release(at=("norm_slows",)), log(norm=slowly)) is None


def test_an_anneal_goes_down_linearly_and_a_sign_ends_it() -> None:
    release = Release(at=("generalization",), weight_decay=1.0, anneal_steps=200)
    assert [released(release, 5.0, log(norm=[50.0] * n)).weight_decay for n in range(1, 8)] == [5, 4, 3, 2, 1, 1, 1]
    assert released(release, 5.0, log(norm=[50.0] * 2)).phase is ReleasePhase.ANNEALING
    assert released(release, 5.0, log(norm=[50.0] * 6)).phase is ReleasePhase.ANNEALED
    grokked = log(validation_accuracy=[0.0, 0.96, 0.0, 0.0])
    assert [released(release, 5.0, grokked[:n]).weight_decay for n in range(1, 5)] == [5, 1, 1, 1]


EASING = Release(at=("generalization",), weight_decay=1.0, patience=150)


def eased(release: Release, seen: list[dict[str, float]], strong: float = 5.0) -> list[tuple[int, float, str]]:
    return [(one.step, one.weight_decay, one.phase.name) for one in released(release, strong, seen).changes]


def test_decay_that_keeps_the_training_set_from_being_learnt_is_eased_until_it_is() -> None:
    poor = {"train_accuracy": [0.1] + [0.7] * 9, "train_loss": [4.0] + [2.0] * 9, "validation_accuracy": [0.0] * 10}
    assert eased(EASING, log(**poor)) == [(200, 2.5, "UNLEARNT"), (350, 1.25, "UNLEARNT")]
    longer = {name: [*own, *own[-1:] * 3] for name, own in poor.items()}
    assert eased(EASING, log(**longer))[-1] == (500, 0.625, "UNLEARNT"), "no end but that it is learnt"
    assert eased(replace(EASING, ease=0.2), log(**poor))[0] == (200, 1.0, "UNLEARNT")
    assert eased(replace(EASING, patience=0), log(**longer)) == []


def test_learnt_and_not_generalising_it_is_eased_to_where_it_would_be_let_go() -> None:
    seen = log(train_accuracy=[0.5] + [1.0] * 14, validation_accuracy=[0.1] * 15)
    assert eased(EASING, seen) == [(150, 2.5, "STALLED"), (300, 1.25, "STALLED"), (450, 1.0, "STALLED")]
    assert eased(EASING, seen, strong=0.5) == [], "what is weaker already stays"


@pytest.mark.parametrize(
    ("column", "falls"),
    [
        ("train_loss", [4 * 0.94**i for i in range(12)]),
        ("train_accuracy", [1 - 0.94**i for i in range(12)]),
        ("validation_loss", [4 * 0.94**i for i in range(12)]),
        ("validation_accuracy", [1 - 0.94**i for i in range(12)]),
    ],
)
def test_any_progress_is_waited_for_and_a_slow_creep_is_none(column: str, falls: list[float]) -> None:
    still = {"train_loss": [4.0] * 12, "train_accuracy": [0.0] * 12, "validation_accuracy": [0.0] * 12}
    assert eased(EASING, log(**still)) != []
    assert eased(EASING, log(**(still | {column: falls}))) == []
    slowly = [falls[0] + (now - falls[0]) / 40 for now in falls]
    assert eased(EASING, log(**(still | {column: slowly}))) != []


def test_a_train_loss_that_falls_on_after_it_is_learnt_is_no_progress_and_what_generalised_does_not_stall() -> None:
    falling = [0.05 * 0.5**i for i in range(12)]
    assert eased(EASING, log(train_loss=falling, validation_accuracy=[0.1] * 12))[0] == (150, 2.5, "STALLED")
    otherwise = replace(EASING, at=("norm_target",))
    assert eased(otherwise, log(validation_accuracy=[0.96] * 12)) == []


def test_without_validation_only_what_is_not_learnt_is_eased() -> None:
    rows = [{"step": 50 * i, "train_loss": 3.0} for i in range(5)]
    assert eased(EASING, rows) == [(150, 2.5, "UNLEARNT")]
    assert eased(EASING, [{**row, "train_loss": 0.01} for row in rows]) == []
    assert eased(EASING, [{"step": 50 * i, "validation_accuracy": 0.1} for i in range(5)]) == [(150, 2.5, "STALLED")]
    assert eased(EASING, [{"step": 50 * i, "train_loss": NAN, "norm": 5.0} for i in range(9)]) == []


def test_what_was_eased_is_let_go_to_no_more_than_it_had() -> None:
    stuck = {"train_accuracy": [0.5] * 16, "train_loss": [3.0] * 16, "validation_accuracy": [0.1] * 15 + [0.97]}
    assert eased(EASING, log(**stuck))[-2:] == [(600, 0.3125, "UNLEARNT"), (750, 0.3125, "GENERALIZATION")]
    soon = {name: own[-8:] for name, own in stuck.items()}
    assert eased(EASING, log(**soon)) == [(150, 2.5, "UNLEARNT"), (300, 1.25, "UNLEARNT"), (350, 1.0, "GENERALIZATION")]


def test_a_fork_of_an_eased_run_begins_with_what_is_in_force() -> None:
    rows = [{"step": 600 + 50 * i, "train_loss": 3.0, "weight_decay": 1.25} for i in range(4)]
    assert eased(EASING, rows) == [(750, 0.625, "UNLEARNT")]


@given(
    st.lists(
        st.tuples(*(st.floats(0, 1) for _ in range(2)), st.floats(0, 3), st.floats(1, 100)), min_size=1, max_size=20
    ),
    st.sets(st.sampled_from(SIGNS), min_size=1),
    st.sampled_from((0, 50, 100)),
)
def test_what_has_been_decided_is_never_decided_again(
    rows: list[tuple[float, ...]], signs: set[str], patience: int
) -> None:
    """Every beginning of a log gives a beginning of the changes: so a restart changes nothing."""
    names = ("train_accuracy", "validation_accuracy", "train_loss", "norm")
    seen = log(**{name: [row[i] for row in rows] for i, name in enumerate(names)})
    release = Release(at=tuple(sorted(signs)), memorized=0.5, accuracy_drop=0.1, patience=patience)
    whole = released(release, 5.0, seen)
    for end in range(len(seen) + 1):
        part = released(release, 5.0, seen[:end])
        assert whole.changes[: len(part.changes)] == part.changes
        assert part.weight_decay in ([5.0 / 2**n for n in range(25)] if patience else (5.0,)) or part.weight_decay == 1
    assert len([change for change in whole.changes if change.phase.is_sign]) <= 1
    assert [one.weight_decay for one in whole.changes] == sorted([c.weight_decay for c in whole.changes], reverse=True)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Release(at=()), "at must name a sign, unless λ is annealed or begins gently"),
        (lambda: Release(at=("grokking",)), "at must be one of generalization"),
        (lambda: Release(at=("loss_rises", "loss_rises")), "at must name each sign once"),
        (lambda: Release(every=0), "every must be at least 1, got 0"),
        (lambda: Release(at=("norm_slows",), window=20), r"window must be at least every \(50 steps\), got 20"),
        (lambda: Release(patience=-1), "patience must be at least 0, got -1"),
        (lambda: Release(ease=1.0), r"ease must lie in \[0, 1\), got 1"),
        (lambda: Release(patience=100, anneal_steps=100), "patience must be 0 where λ is annealed"),
        (lambda: RunSpec(release=Release(weight_decay=1000.0)), "learning_rate × the release's weight_decay must stay"),
        (lambda: RunSpec(release=Release(), trigger=Trigger()), "a run has a release, a control, a trigger or a"),
        (lambda: RunSpec(release=Release(), control=ClosedLoop()), "a run has a release, a control, a trigger or a"),
    ],
)
def test_what_makes_no_sense_is_rejected(make, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()


# Trained, interrupted, forked and stacked.

STEPS = 16
# A norm that strong decay reaches within a few steps.
RELEASE = Release(at=("generalization", "norm_target"), every=2, norm_target=8.0)
# Nothing is learnt within so few steps: λ is eased at step 6, and again at 12.
EASED = Release(at=("generalization",), every=2, patience=6, ease=0.25)
RUN = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=STEPS, batch_size=16, weight_decay=20.0, learning_rate=3e-3, optimizer="muon"),
    release=RELEASE,
    checkpoints=Cadence(every=4, at=(6,)),
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


@pytest.fixture(scope="module")
def stuck() -> RunSpec:
    """λ so strong that nothing is learnt."""
    return replace(RUN, release=EASED, training=replace(RUN.training, weight_decay=300.0))


def test_an_eased_run_is_trained_as_its_log_says(stuck: RunSpec, straight: Store, tmp_path: Path) -> None:
    folder = run(straight, stuck)
    did = folder.outcome.control
    assert [change["reason"] for change in did["changes"]] == ["unlearnt"] * len(did["changes"]) != []
    assert did == released(EASED, 300.0, folder.log()).to_dict()
    schedule = tuple((change["step"], change["weight_decay"]) for change in did["changes"])
    known = replace(stuck, release=None, training=replace(stuck.training, weight_decay_schedule=schedule))
    other = run(Store(tmp_path), known)
    assert torch.equal(state_at(folder, STEPS, straight)["weights"], state_at(other, STEPS, Store(tmp_path))["weights"])


def test_an_eased_run_resumes_and_its_fork_goes_on_with_the_eased_decay(
    stuck: RunSpec, straight: Store, tmp_path: Path
) -> None:
    whole, store, calls = run(straight, stuck), Store(tmp_path), iter(range(1000))
    while True:
        try:
            run_all([stuck], store, compiled=False, should_stop=lambda: next(calls) % 3 == 2)
            break
        except Stopped:
            pass
    files = [{path.name: path.read_bytes() for path in one.path.iterdir()} for one in (store.find(whole.name), whole)]
    assert files[0] == files[1]
    step = whole.outcome.control["changes"][0]["step"]
    child = run(straight, replace(stuck, fork=Fork(stuck.content_hash, step + 2)))
    assert child.log()[0]["weight_decay"] == whole.outcome.control["changes"][0]["weight_decay"]
    assert all(row["weight_decay"] <= child.log()[0]["weight_decay"] for row in child.log())


def test_a_release_is_a_schedule_that_was_not_known_before(straight: Store, tmp_path: Path) -> None:
    folder = straight.find(run_name(RUN))
    did = folder.outcome.control
    assert did["phase"] == "norm_target"
    assert [row["step"] for row in folder.log()] == list(range(0, STEPS + 1, 2))
    assert did == released(RELEASE, 20.0, folder.log()).to_dict()
    schedule = tuple((change["step"], change["weight_decay"]) for change in did["changes"])
    assert 0 < schedule[0][0] < STEPS
    known = replace(RUN, release=None, training=replace(RUN.training, weight_decay_schedule=schedule))
    ends = [state_at(one, STEPS, straight)["weights"] for one in (folder, run(Store(tmp_path), known))]
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


def test_a_state_between_checkpoints_is_trained_again(straight: Store, tmp_path: Path) -> None:
    often = replace(RUN, checkpoints=Cadence(every=1))
    stored = state_at(run(Store(tmp_path), often, keep="state"), 11, Store(tmp_path), compiled=False)
    again = state_at(straight.find(run_name(RUN)), 11, straight, compiled=False)
    assert torch.equal(again["weights"], stored["weights"])
    assert float(again["weight_decay"]) == float(stored["weight_decay"])


def test_an_unchanged_fork_is_its_parent(straight: Store) -> None:
    child = run(straight, replace(RUN, fork=Fork(RUN.content_hash, 6)))
    for name, value in state_at(child, STEPS, straight).items():
        assert torch.equal(value, state_at(straight.find(run_name(RUN)), STEPS, straight)[name]), name


def test_releases_decide_for_their_own_run_in_a_stack(straight: Store, tmp_path: Path) -> None:
    store = Store(tmp_path)
    specs = [RUN, replace(RUN, release=None).with_seed(3), replace(RUN, release=replace(RELEASE, anneal_steps=8))]
    train_stack(store, specs)
    for spec in specs:
        stacked, alone = store.find(run_name(spec)), run(straight, spec)
        assert stacked.outcome.control == alone.outcome.control
        ends = [state_at(one, STEPS, where)["weights"] for one, where in ((stacked, store), (alone, straight))]
        assert torch.allclose(*ends, rtol=1e-9, atol=1e-11)
