"""λ that was let go is reported as it is at the end, with the step and the reason, wherever a run is named."""

from dataclasses import replace

import pytest

from grokscope.cli import run as command
from grokscope.jobs import run_all
from grokscope.runs import Run, RunOutcome, Store, run_name
from grokscope.specs import Architecture, Cadence, ClosedLoop, Release, RunSpec, Training
from grokscope.steering import ReleasePhase
from grokscope.view.decay import EASED, REASONS, decay_path, describe_decay, describe_release
from grokscope.view.summary import summarize, summarize_run

RUN = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=16, batch_size=16, weight_decay=20.0, learning_rate=3e-3, optimizer="muon"),
    release=Release(at=("generalization", "norm_target"), every=2, norm_target=8.0),
    checkpoints=Cadence(every=16),
    measurements=Cadence(every=4),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("released"))
    assert RUN.release is not None
    never = replace(RUN, release=replace(RUN.release, norm_target=0.1))
    run_all([RUN, never, replace(RUN, release=None)], store, compiled=False)
    return store


def test_every_sign_has_its_reason() -> None:
    assert {*REASONS} == {phase.name.lower() for phase in ReleasePhase if phase.is_sign}
    assert {*EASED} == {phase.name.lower() for phase in ReleasePhase if phase.is_ease}


def test_what_was_eased_is_said_with_its_reasons_before_what_was_let_go() -> None:
    changes = [
        {"step": 1000, "weight_decay": 10.0, "reason": "unlearnt"},
        {"step": 2000, "weight_decay": 5.0, "reason": "stalled"},
        {"step": 2150, "weight_decay": 1.0, "reason": "generalization"},
    ]
    let_go = RunOutcome("grokked", control={"changes": changes})
    why = "the training set was not learnt, then what is held out was not learnt"
    assert describe_decay(RUN, let_go) == (
        f"λ = 20, eased to 5 by step 2,000 because {why}, let go to 1 at step 2,150 because it generalised"
    )
    assert describe_release(RUN, let_go) == "eased at 1,000, 2,000; 2,150: it generalised"
    never = RunOutcome("never", control={"changes": changes[:1]})
    assert describe_decay(RUN, never).endswith(
        "eased to 10 by step 1,000 because the training set was not learnt, never let go"
    )
    assert describe_release(RUN, never) == "eased at 1,000; never"


def test_a_gentle_start_is_said_with_when_strong_decay_began() -> None:
    assert RUN.release is not None
    gently = replace(RUN, release=replace(RUN.release, gentle=1.0))
    changes = [
        {"step": 0, "weight_decay": 1.0, "reason": "gentle"},
        {"step": 1000, "weight_decay": 0.5, "reason": "unlearnt"},
        {"step": 1500, "weight_decay": 10.0, "reason": "learnt"},
        {"step": 2500, "weight_decay": 5.0, "reason": "stalled"},
        {"step": 2600, "weight_decay": 0.5, "reason": "accuracy_breaks"},
    ]
    whole = RunOutcome("grokked", control={"changes": changes})
    assert describe_decay(gently, whole) == (
        "λ = 1, eased to 0.5 by step 1,000 because the training set was not learnt, 10 from step 1,500 because the "
        "training set was learnt, eased to 5 by step 2,500 because what is held out was not learnt, let go to 0.5 at "
        "step 2,600 because train accuracy fell"
    )
    expected = "eased at 1,000; strong at 1,500; eased at 2,500; 2,600: train accuracy fell"
    assert describe_release(gently, whole) == expected
    assert decay_path(gently, whole) == [1.0, 10.0, 0.5]
    begun = RunOutcome("never", control={"changes": changes[:1]})
    assert describe_decay(gently, begun) == "λ = 1, never let go"
    assert (describe_release(gently, begun), decay_path(gently, begun)) == ("never", [1.0])
    fork = RunOutcome("grokked", control={"changes": changes[4:]})
    assert describe_decay(gently, fork) == "λ = 20, let go to 0.5 at step 2,600 because train accuracy fell"


def test_what_is_annealed_has_the_last_of_its_changes() -> None:
    changes = [{"step": 100 * i, "weight_decay": 20.0 - i, "reason": "annealing"} for i in (1, 2)]
    annealed = RunOutcome("never", control={"changes": changes})
    assert describe_decay(RUN, annealed) == "λ = 20, 18 since step 200"
    assert decay_path(RUN, annealed) == [20.0, 18.0]


def test_list_and_show_say_when_and_why_it_was_let_go(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(store.find(run_name(RUN)))
    log = run.folder.log()
    step = [row["step"] for row in log if row["weight_decay"] == 20.0][-1]  # decided there, in force from there on
    assert log[-1]["weight_decay"] == 1.0
    expected = f"λ = 20, let go to 1 at step {step} because the norm was down to its target"
    assert summarize_run(run).endswith(expected)
    assert f"({expected})" in summarize([run])
    command(["list", str(store.path)])
    listed = {line.split("  ")[0]: line for line in capsys.readouterr().out.splitlines()}
    header, *_ = listed.values()
    assert "let go" in header
    lines = [line for name, line in listed.items() if name.startswith("add_mod7")]
    assert sum(f"{step}: the norm was down to its target" in line and "20 → 1" in line for line in lines) == 1
    assert sum("never" in line for line in lines) == 1


def test_what_has_no_release_is_written_as_before(store: Store) -> None:
    plain = Run(store.find(run_name(replace(RUN, release=None))))
    assert describe_decay(plain.spec, plain.record.outcome, plain.record.evaluations) == "λ = 20"
    assert describe_release(plain.spec, plain.record.outcome) is None


def test_a_run_that_is_not_finished_has_the_decay_of_its_last_evaluation() -> None:
    seen = {"step": [0, 50, 100], "weight_decay": [20.0, 20.0, 1.0]}
    assert describe_decay(RUN, RunOutcome(), seen) == "λ = 20, 1 at its last evaluation"
    assert describe_decay(RUN, RunOutcome(), {"step": [0], "weight_decay": [20.0]}) == "λ = 20"


def test_a_closed_loop_has_the_last_of_its_changes() -> None:
    changes = [{"step": 100 * i, "weight_decay": 1.5**i, "reason": "raising"} for i in (1, 2)]
    looped = replace(RUN, release=None, control=ClosedLoop(highest=50.0))
    assert describe_decay(looped, RunOutcome("grokked", control={"changes": changes})) == "λ = 20, 2.25 since step 200"
