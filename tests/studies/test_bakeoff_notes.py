"""Planted logs, and what is said of them beside the medians."""

from typing import Any

from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies.bakeoff.configurations import ARMS, bakeoff_plan
from grokscope.studies.bakeoff.notes import what_logs_show


def runs_of(name: str, task: str = "add_mod97", n_seeds: int = 4) -> list[RunSpec]:
    return [run for run in bakeoff_plan("runs", [task], n_seeds=n_seeds).runs if ARMS[name].has(run)]


def ended(spec: RunSpec, memorized: int | None, grokked: int | None, log: dict[str, Any], **more: Any) -> RunRecord:
    outcome = {"outcome": "grokked", "failed_at": None, "memorized": memorized, "grokked": grokked, **more}
    return RunRecord(spec, RunOutcome.from_dict(outcome), {"step": [0, 100, 200], **log}, {})


def test_a_trigger_is_told_by_whether_it_was_in_time() -> None:
    fired = [(100, 200, 300), (200, 200, 300), (300, 200, 300), (None, 200, 300)]
    records = [
        ended(run, memorized, grokked, {}, trigger={"fired_at": at, "restored_at": None})
        for run, (at, memorized, grokked) in zip(runs_of("FSD trigger"), fired, strict=True)
    ]
    on_s5 = [
        ended(run, None, None, {}, trigger={"fired_at": 0, "restored_at": None})
        for run in runs_of("FSD trigger", "S5", n_seeds=2)
    ]
    said = [sentence for sentence in what_logs_show([*on_s5, *records]) if "FSD trigger" in sentence]
    assert said == [
        "Runs in which the FSD trigger fired before memorisation / between that and grokking / at grokking or later / "
        "never: add_mod97 1 / 1 / 1 / 1; S5 2 / 0 / 0 / 0."
    ]


def test_the_closed_loops_share_of_raised_looks_ends_at_grokking() -> None:
    first, second = runs_of("closed loop", n_seeds=2)
    records = [
        ended(first, 0, 100, {"weight_decay": [1.0, 2.0, 8.0]}),
        ended(second, 0, None, {"weight_decay": [1.0, 1.0, 1.0]}),
    ]
    assert what_logs_show(records) == (
        "Looks until grokking at which the closed loop had raised λ: add_mod97 20 %, up to 2.",
    )


def test_orthogonal_gradients_are_told_by_norm_and_loss_beside_those_who_grok() -> None:
    held = {"norm": [100.0, 101.0, 104.0], "train_loss": [4.0, 0.5, 0.002]}
    shrunk = {"norm": [100.0, 30.0, 20.0], "train_loss": [4.0, 0.5, 0.1]}
    records = [ended(runs_of("orthogonal gradient")[0], 100, None, held)]
    assert what_logs_show(records) == (), "there is nobody to compare it with"
    records.append(ended(runs_of("fixed λ = 1")[0], 100, 200, shrunk))
    (said,) = what_logs_show(records)
    assert said.startswith("Of 1 runs with orthogonal gradients 1 memorise and 0 grok. ‖W‖ stays at 1.00 to 1.04 of")
    assert "runs of other arms have 0.20 to 0.20 of it" in said
    assert "Softmax collapse is not what holds them: mean train loss is 0.002 nats" in said
    vanished = {**held, "train_loss": [4.0, 0.5, 1e-9]}
    records[0] = ended(runs_of("orthogonal gradient")[0], 100, None, vanished)
    assert "Softmax collapse is not ruled out: mean train loss is 1e-09 nats" in what_logs_show(records)[0]


def test_runs_that_grok_without_memorising_are_counted() -> None:
    first, second, third, _ = runs_of("fixed λ = 5")
    said = what_logs_show([ended(first, None, 200, {}), ended(second, None, None, {}), ended(third, 100, 200, {})])
    assert len(said) == 1
    assert "1 of these 2 runs grokked all the same" in said[0]


def test_nothing_is_said_of_nothing() -> None:
    assert what_logs_show([]) == ()
