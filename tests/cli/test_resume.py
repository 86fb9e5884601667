"""`grokscope resume`, as the plan of a folder says, and `grokscope fork`, with something changed."""

from dataclasses import replace
from pathlib import Path

import pytest
from small_commands import EXECUTORS, TINY, rejected, trained_here, words

import grokscope
from grokscope.cli import run
from grokscope.runs import Store, keep_plan, run_name
from grokscope.specs import Fork, Plan

pytestmark = pytest.mark.usefixtures("here", "in_process")


def test_resume_remembers_how_training_was_started(capsys: pytest.CaptureFixture[str]) -> None:
    keep_plan(Plan("runs", (TINY, TINY.with_seed(1)), keep="forks", measures=("fsd",)), Store("runs"))
    assert run(words("resume runs")) == 0
    folder = Store("runs").find(run_name(TINY))
    assert not folder.checkpoints("weights")
    assert [row["step"] for row in folder.log("measures")] == [0, 4, 8]
    capsys.readouterr()
    assert run(words("resume runs")) == 0
    assert capsys.readouterr().out == "every run in runs is finished\n"


def test_runs_without_a_plan_take_the_storage_options() -> None:
    Store("runs").add(TINY)
    assert run(words("resume runs --keep none --measures fsd")) == 0
    folder = Store("runs").find(run_name(TINY))
    assert not folder.checkpoints("weights")
    assert [row["step"] for row in folder.log("measures")] == [0, 4, 8]


def test_an_option_without_effect_is_rejected(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep_plan(Plan("runs", (TINY,)), Store("runs"))
    sentence = "--keep, --measures would have no effect: a plan in runs names every unfinished run"
    rejected(words("resume runs --keep none --measures fsd"), sentence, here, capsys)
    rejected(words("resume runs --partition x"), "--partition has no effect with --executor local", here, capsys)
    (here / "nothing").mkdir()
    rejected(words("resume nothing"), "there are no runs in nothing", here, capsys)
    rejected(words("resume tiny.jso"), "there is no folder 'tiny.jso'\n", here, capsys)
    rejected(words("resume rns"), "there is no folder 'rns'; did you mean 'runs'?", here, capsys)


def test_the_options_of_an_executor_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, object]] = []

    def recorded(plan: Plan, report: object, **options: object) -> bool:
        seen.append(options)
        return trained_here(plan, lambda line: None)

    monkeypatch.setattr(f"{EXECUTORS}.find_spec", lambda library: library)
    for name in ("run_locally", "run_on_ray"):
        monkeypatch.setattr(f"{EXECUTORS}.{name}", recorded)
    keep_plan(Plan("runs", (TINY,)), Store("runs"))
    assert run(words("resume runs --retries 7")) == 0
    assert seen == [{"retries": 7}]
    keep_plan(Plan("more", (TINY,)), Store("more"))
    assert run(words("resume more --executor ray --cluster head:6379 --runs-per-shard 2 --memory-gib 0.5")) == 0
    assert seen[1] == {"address": "head:6379", "runs_per_shard": 2, "memory": 2**29, "retries": 3}


def test_forks_are_stored_with_their_parent(capsys: pytest.CaptureFixture[str]) -> None:
    run(words("train add_mod7 --spec tiny.json --out runs"))
    capsys.readouterr()
    assert run(words("fork runs add_mod7_s0 --at 5 --weight-decay 1 2 --steps 10")) == 0
    assert capsys.readouterr().out.count("at step 10, λ = ") == 2
    specs = {row.spec.training.weight_decay: row.spec for row in grokscope.open("runs") if row.spec.fork}
    assert specs.keys() == {1.0, 2.0}
    assert specs[2.0] == replace(
        TINY, fork=Fork(TINY.content_hash, 5), training=replace(TINY.training, weight_decay=2.0, steps=10)
    )


def test_a_dry_run_says_what_forks_cost_and_makes_none(capsys: pytest.CaptureFixture[str]) -> None:
    run(words("train add_mod7 --spec tiny.json --out runs"))
    capsys.readouterr()
    assert run(words("fork runs add_mod7_s0 --at 5 --weight-decay 1 2 --steps 10 --dry-run")) == 0
    assert "2, 10 steps in all" in capsys.readouterr().out
    assert not [one for one in grokscope.open("runs") if one.spec.fork]
    sentence = "--dry-run trains nothing: leave out --track"
    rejected(words("fork runs add_mod7_s0 --at 5 --dry-run --track tensorboard"), sentence, Path(), capsys)


def test_any_setting_of_training_can_be_changed() -> None:
    run(words("train add_mod7 --spec tiny.json --out runs"))
    assert run(words("fork runs add_mod7_s0 --at 5 --learning-rate 0.01 --gradient orthogonal --keep none")) == 0
    (found,) = [one for one in grokscope.open("runs") if one.spec.fork]
    assert found.spec.training == replace(TINY.training, learning_rate=0.01, gradient="orthogonal")
    assert not found.steps


def test_a_fork_keeps_what_is_not_changed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(words("train add_mod7 --spec tiny.json --out runs"))
    assert run(words(f"fork runs {TINY.content_hash} --at 5")) == 0
    assert "this fork changes nothing: it repeats its parent, as a control" in capsys.readouterr().err
    assert run(words(f"fork runs {TINY.content_hash} --at 5 --reset-moments")) == 0
    assert "changes nothing" not in capsys.readouterr().err
    kept, reset = (replace(TINY, fork=Fork(TINY.content_hash, 5, moments)) for moments in ("kept", "reset"))
    end = {spec: (here / "runs" / run_name(spec) / "state-00000008.safetensors") for spec in (TINY, kept, reset)}
    assert end[kept].read_bytes() == end[TINY].read_bytes()
    assert end[reset].read_bytes() != end[TINY].read_bytes()


def test_a_fork_that_cannot_be_made_is_rejected(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(words("train add_mod7 --seeds 0:2 --spec tiny.json --out runs"))
    for line, sentence in [
        ("runs add_mod7_s3 --at 4", "there is no run 'add_mod7_s3'"),
        ("runs add_mod7_s0 --at 8", "the fork's step must lie before the last step 8, got 8"),
        ("runs add_mod7_s0 --at -1", "the fork's step must be at least 0, got -1"),
        ("runs add_mod7_s0 --at 9 --steps 20", f"{run_name(TINY)} has states from step 0 to 8, got 9"),
        ("runs add_mod7_s0 --at 4 --steps 0", "steps must be at least 1, got 0"),
        ("runs add_mod7_s0 --at 4 --weight-decay -1", "weight_decay must be at least 0, got -1.0"),
        ("runs add_mod7_s0 --at 4 --out runs", "`grokscope fork` has no option '--out'"),
    ]:
        rejected(["fork", *words(line)], sentence, here, capsys)
