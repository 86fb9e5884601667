"""Who wins, and what planted logs show."""

from dataclasses import replace
from typing import Any

import pytest
from bakeoff_runs import FIXED, evidence, planted, record, specs_of

from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies.bakeoff.notes import describe_logs, describe_winner


@pytest.mark.parametrize(
    ("medians", "sentence"),
    [
        (
            {**FIXED, "closed loop": 500},
            "add_mod97: closed loop has the shortest median (800 steps; 1,800 with fixed λ = 3, a significant "
            "difference, p = ",
        ),
        (
            {**FIXED, "closed loop": 1700},
            "add_mod97: fixed λ = 3 has the shortest median (1,800 steps). The closed loop needs 2,000.",
        ),
        (
            {**FIXED, "Grokfast": 1400, "closed loop": None},
            "add_mod97: Grokfast has the shortest median (1,700 steps; 1,800 with fixed λ = 3, no significant "
            "difference, p = 0.38). With the closed loop fewer than half of the runs grok.",
        ),
        (
            {**dict.fromkeys(FIXED), "Grokfast": 500},
            "Grokfast has the shortest median (800 steps; with no fixed λ do half of the runs grok, a significant "
            "difference, p = ",
        ),
        (
            dict.fromkeys(FIXED),
            "add_mod97: in no configuration did half of the runs grok within the budget.",
        ),
        (FIXED, "The closed loop was not run."),
    ],
)
def test_the_sentence_names_the_winner_and_whether_it_is_the_closed_loop(medians: dict, sentence: str) -> None:
    found = describe_winner(evidence(planted(medians)), "add_mod97")
    assert sentence in found
    assert found.endswith(".")


def test_a_winner_whose_runs_do_not_all_grok_is_compared_with_those_whose_do() -> None:
    fast = {name: record(run, 500 if seed else None) for seed, (name, run) in enumerate(specs_of("Grokfast").items())}
    slow = {name: record(run, 900) for name, run in specs_of("fixed λ = 2").items()}
    missed = f"but only {len(fast) - 1} of its {len(fast)} runs grok"
    both, alone = (describe_winner(evidence(runs), "add_mod97") for runs in (fast | slow, fast))
    assert f"{missed}; of the configurations in which all runs grok, fixed λ = 2 is fastest (900)." in both
    assert f"{missed}; in no configuration do all runs grok." in alone


def ended(spec: RunSpec, memorized: int | None, grokked: int | None, log: dict[str, Any], **more: Any) -> RunRecord:
    outcome = RunOutcome("grokked", memorized=memorized, grokked=grokked, **more)
    return RunRecord(spec, outcome, {"step": [0, 100, 200], **log}, {})


def test_it_is_counted_whether_a_trigger_fired_in_time() -> None:
    fired = [(100, 200, 300), (200, 200, 300), (300, 200, 300), (None, 200, 300)]
    specs = specs_of("FSD trigger", n_seeds=4)
    own = {
        name: ended(run, memorized, grokked, {}, trigger={"fired_at": at, "restored_at": None})
        for (name, run), (at, memorized, grokked) in zip(specs.items(), fired, strict=True)
    }
    on_s5 = {
        name: ended(run, None, None, {}, trigger={"fired_at": 0, "restored_at": None})
        for name, run in specs_of("FSD trigger", "S5", n_seeds=2).items()
    }
    assert [sentence for sentence in describe_logs(evidence(on_s5 | own)) if "FSD trigger" in sentence] == [
        "Runs in which the FSD trigger fired before memorisation / between that and grokking / at grokking or later / "
        "never: add_mod97 1 / 1 / 1 / 1; S5 2 / 0 / 0 / 0."
    ]


def test_the_closed_loops_share_of_raised_evaluations_ends_at_grokking() -> None:
    (a, first), (b, second) = specs_of("closed loop", n_seeds=2).items()
    runs = {
        a: ended(first, 0, 100, {"weight_decay": [1.0, 2.0, 8.0]}),
        b: ended(second, 0, None, {"weight_decay": [1.0, 1.0, 1.0]}),
    }
    assert describe_logs(evidence(runs)) == (
        "Share of evaluations until grokking with λ above its initial value (closed loop), and the largest λ: "
        "add_mod97 20 %, up to 2.",
    )


def test_orthogonal_gradients_are_described_by_norm_and_loss_against_runs_that_grok() -> None:
    held = {"norm": [100.0, 101.0, 104.0], "train_loss": [4.0, 0.5, 0.002]}
    shrunk = {"norm": [100.0, 30.0, 20.0], "train_loss": [4.0, 0.5, 0.1]}
    (own, spec), *_ = specs_of("orthogonal gradient").items()
    (other, plain), *_ = specs_of("fixed λ = 1").items()
    runs = {own: ended(spec, 100, None, held)}
    assert describe_logs(evidence(runs)) == (), "there is nothing to compare it with"
    runs[other] = ended(plain, 100, 200, shrunk)
    (sentence,) = describe_logs(evidence(runs))
    assert sentence.startswith(
        "Of 1 runs with orthogonal gradients 1 memorise and 0 grok. ‖W‖ stays within 1.00 to 1.04 times"
    )
    assert "in runs of other configurations it is 0.20 to 0.20 times that" in sentence
    assert "Softmax collapse does not explain this: the lowest mean train loss is 0.002 nats, above" in sentence
    vanished = replace(runs[own], evaluations=runs[own].evaluations | {"train_loss": [4.0, 0.5, 1e-9]})
    (sentence,) = describe_logs(evidence(runs | {own: vanished}))
    assert "Softmax collapse is not ruled out: the lowest mean train loss is 1e-09 nats, not above" in sentence


def test_runs_that_grok_without_memorising_are_counted() -> None:
    events = [(None, 200), (None, None), (100, 200)]
    specs = specs_of("fixed λ = 5", n_seeds=3)
    runs = {name: ended(spec, *own, {}) for (name, spec), own in zip(specs.items(), events, strict=True)}
    (sentence,) = describe_logs(evidence(runs))
    assert "1 of these 2 runs grokked all the same" in sentence


def test_without_runs_there_is_no_sentence() -> None:
    assert describe_logs(evidence({})) == ()
